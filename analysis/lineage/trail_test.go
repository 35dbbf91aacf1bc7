package lineage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/state"
)

// at moves an event, gives it an audit ID and an address.
func at(e *event.Event, id, ip string, after time.Duration) *event.Event {
	e.AuditID, e.SourceIPs = id, []string{"10.9.9.9", ip}
	e.RequestReceivedTimestamp, e.StageTimestamp = noon.Add(after), noon.Add(after+time.Millisecond)
	return e
}

func impersonating(e *event.Event, name string) *event.Event {
	e.ImpersonatedUser = &event.User{Username: name}
	return e
}

func reading(e *event.Event, uri string) *event.Event {
	e.RequestURI = uri
	return e
}

func refused401(id, ip string, after time.Duration) *event.Event {
	e := at(by(event.User{}), id, ip, after)
	e.Stage, e.ResponseStatus = event.StageResponseStarted, &event.Status{Code: 401, Message: "Unauthorized"}
	return e
}

func podOn(node, podUID, id string) event.User {
	return account(extra(event.ExtraCredentialID, id, event.ExtraNodeName, node, event.ExtraPodName, "p-"+podUID, event.ExtraPodUID,
		podUID))
}

// TestTrail: contradictions that take several events. Every case is observed in several orders; the order
// must not count.
func TestTrail(t *testing.T) {
	minute := time.Minute
	alice, bob := user("alice", "", "devs", authn.GroupAuthenticated), user("bob", "", "devs", authn.GroupAuthenticated)
	cert := func(u event.User) event.User { return withExtra(u, event.ExtraCredentialID, certID) }
	var burst, trickle []*event.Event
	for i := range 60 {
		burst = append(burst, refused401(fmt.Sprint("b", i), "192.0.2.9", time.Duration(i)*time.Second))
		trickle = append(trickle, refused401(fmt.Sprint("t", i), "192.0.2.9", time.Duration(i)*minute))
	}
	cases := []struct {
		name   string
		events []*event.Event
		want   []string
	}{
		{"case 67: two users under one audit ID", []*event.Event{at(by(alice), "id", "192.0.2.1", 0), at(by(bob), "id", "192.0.2.1",
			minute)}, []string{authn.ContradictionAuditID}},
		{"two URIs under one audit ID", []*event.Event{at(by(alice), "id", "192.0.2.1", 0), at(reading(by(alice), "/version"), "id",
			"192.0.2.1", 0)}, []string{authn.ContradictionAuditID}},
		{"stages of one request", []*event.Event{at(by(alice), "id", "192.0.2.1", 0), at(by(alice), "id", "192.0.2.1", 0)}, nil},
		{"case 65: a request and its twin behind an aggregator", []*event.Event{
			at(reading(impersonating(by(bob), "alice"), "/apis/metrics.k8s.io/v1beta1/pods?limit=5&watch=0"), "id", "192.0.2.1", 0),
			at(reading(by(alice), "/apis/metrics.k8s.io/v1beta1/pods?watch=0&limit=5"), "id", "10.0.0.1", time.Millisecond)}, nil},

		{"one certificate, two users", []*event.Event{at(by(cert(alice)), "1", "192.0.2.1", 0), at(by(cert(bob)), "2", "192.0.2.1", 0)},
			[]string{authn.ContradictionCertDrift}},
		{"one certificate, two sets of groups", []*event.Event{at(by(cert(alice)), "1", "192.0.2.1", 0),
			at(by(cert(user("alice", "", "ops", authn.GroupAuthenticated))), "2", "192.0.2.1", 0)}, []string{authn.ContradictionCertDrift}},
		{"one certificate, groups in another order", []*event.Event{at(by(cert(user("alice", "", "a", "b", authn.GroupAuthenticated))), "1",
			"192.0.2.1", 0), at(by(cert(user("alice", "", "b", "a", authn.GroupAuthenticated))), "2", "192.0.2.1", 0)}, nil},
		{"a provider's token, mapped otherwise from some time on", []*event.Event{at(by(withExtra(alice, event.ExtraCredentialID, tokenID)),
			"1", "192.0.2.1", 0), at(by(withExtra(alice, event.ExtraCredentialID, tokenID)), "2", "192.0.2.1", minute),
			at(by(withExtra(bob, event.ExtraCredentialID, tokenID)), "3", "192.0.2.1", 2*minute)}, nil},
		{"a provider's token, two users by turns", []*event.Event{at(by(withExtra(alice, event.ExtraCredentialID, tokenID)), "1",
			"192.0.2.1", 0), at(by(withExtra(bob, event.ExtraCredentialID, tokenID)), "2", "192.0.2.1", minute),
			at(by(withExtra(alice, event.ExtraCredentialID, tokenID)), "3", "192.0.2.1", 2*minute)}, []string{authn.ContradictionJTIDrift}},
		{"one token, two users", []*event.Event{at(by(withExtra(alice, event.ExtraCredentialID, tokenID)), "1", "192.0.2.1", 0),
			at(by(withExtra(bob, event.ExtraCredentialID, tokenID)), "2", "192.0.2.1", 0)}, []string{authn.ContradictionJTIDrift}},

		{"a pod's token from two places by turns", []*event.Event{
			at(by(podOn("n1", "u1", tokenID)), "1", "10.0.0.5", 0), at(by(podOn("n1", "u1", tokenID)), "2", "203.0.113.5", minute),
			at(by(podOn("n1", "u1", tokenID)), "3", "10.0.0.5", 2*minute), at(by(podOn("n1", "u1", tokenID)), "4", "203.0.113.5",
				3*minute)}, []string{authn.ContradictionReusedElsewhere}},
		{"a pod's token after its sandbox was made anew", []*event.Event{
			at(by(podOn("n1", "u1", tokenID)), "1", "10.0.0.5", 0), at(by(podOn("n1", "u1", tokenID)), "2", "10.0.0.5", minute),
			at(by(podOn("n1", "u1", tokenID)), "3", "10.0.0.6", 2*minute)}, nil},
		{"a pod's token behind its node's address at times", []*event.Event{
			at(by(podOn("n1", "u1", tokenID)), "1", "10.0.0.5", 0), at(by(podOn("n1", "u1", tokenID)), "2", "192.0.2.11", minute),
			at(by(podOn("n1", "u1", tokenID)), "3", "10.0.0.5", 2*minute), at(by(podOn("n1", "u1", tokenID)), "4", "192.0.2.11", 3*minute),
			at(by(withExtra(user("system:node:n1", "", authn.GroupNodes, authn.GroupAuthenticated), event.ExtraCredentialID, certID)), "5",
				"192.0.2.11", 0)}, nil},
		{"a pod's token behind gateways", []*event.Event{
			at(by(podOn("n1", "u1", tokenID)), "1", "198.51.100.1", 0), at(by(podOn("n1", "u1", tokenID)), "2", "198.51.100.2", minute),
			at(by(podOn("n1", "u1", tokenID)), "3", "198.51.100.1", 2*minute), at(by(podOn("n1", "u1", tokenID)), "4", "198.51.100.2",
				3*minute),
			at(by(podOn("n2", "u2", "JTI=2")), "5", "198.51.100.1", 0), at(by(podOn("n2", "u2", "JTI=2")), "6", "198.51.100.2", 0)}, nil},
		{"a token of both address families", []*event.Event{
			at(by(podOn("n1", "u1", tokenID)), "1", "10.0.0.5", 0), at(by(podOn("n1", "u1", tokenID)), "2", "fd00::5", minute),
			at(by(podOn("n1", "u1", tokenID)), "3", "10.0.0.5", 2*minute), at(by(podOn("n1", "u1", tokenID)), "4", "fd00::5", 3*minute)},
			nil},

		{"a burst of refusals", burst, []string{authn.ContradictionFailureBurst}},
		{"refusals now and then", trickle, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(5) {
				events := slices.Clone(tc.events)
				rand.New(rand.NewPCG(seed, 1)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
				tr := NewTrail(TrailConfig{})
				for _, e := range events {
					tr.Observe(e)
				}
				tr.Settle(nil)
				var got []string
				for _, f := range tr.Found() {
					got = append(got, f.Name)
				}
				if !slices.Equal(got, tc.want) {
					t.Fatalf("order %d: found %v, want %v", seed, tr.Found(), tc.want)
				}
				about := tr.About(events[0])
				if (len(about) > 0) != (len(tc.want) > 0) {
					t.Fatalf("order %d: about %s: %v", seed, events[0].AuditID, about)
				}
			}
		})
	}
}

// TestUnrequestedCertificate: a node that gets its certificates by request appears with another
// one.
func TestUnrequestedCertificate(t *testing.T) {
	const other = "X509SHA256=ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	kubelet := user("system:node:n1", "", authn.GroupNodes, authn.GroupAuthenticated)
	requested := map[string]state.Credential{certID: {CommonName: "system:node:n1", Organizations: []string{authn.GroupNodes}, CSR: "csr-1",
		Issued: noon}}
	cases := []struct {
		name  string
		first time.Duration // of the other certificate, from the issue of the requested one
		state *fakeState
		want  int
	}{
		{"seen first after the requested one was issued", time.Minute, &fakeState{credentials: requested}, 1},
		{"seen before: the one the node was set up with", -time.Minute, &fakeState{credentials: requested}, 0},
		{"no certificate was ever requested", time.Minute, &fakeState{}, 0},
		{"the log is not complete", time.Minute, &fakeState{credentials: requested, blind: true}, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			tr := NewTrail(TrailConfig{})
			tr.Observe(at(by(withExtra(kubelet, event.ExtraCredentialID, certID)), "1", "192.0.2.1", time.Hour))
			e := at(by(withExtra(kubelet, event.ExtraCredentialID, other)), "2", "192.0.2.1", tc.first)
			tr.Observe(e)
			tr.Settle(tc.state)
			if len(tr.Found()) != tc.want || len(tr.About(e)) != tc.want {
				t.Errorf("found %v", tr.Found())
			}
		})
	}
}

// TestLineage: case 29 from issue to use, and case 68 of a shortened user agent.
func TestLineage(t *testing.T) {
	long := strings.Repeat("a", 1024) + "...TRUNCATED"
	issue := at(by(user("system:node:n1", "", authn.GroupNodes, authn.GroupAuthenticated)), "issue", "192.0.2.11", 0)
	issue.Verb, issue.RequestURI = "create", "/api/v1/namespaces/shop/serviceaccounts/api/token"
	issue.Annotations = event.Pairs{{Key: authn.AnnotationIssued, Value: tokenID}}
	issue.UserAgent = "kubelet"

	tr := NewTrail(TrailConfig{})
	tr.Observe(issue)
	for i := range 3 {
		e := at(by(account(podToken())), fmt.Sprint("use", i), "10.0.0.5", time.Duration(i+1)*time.Minute)
		e.UserAgent = long
		received := *e
		received.Stage = event.StageRequestReceived
		tr.Observe(&received)
		tr.Observe(e)
		tr.Observe(e) // a copy
	}
	other := at(by(account(podToken())), "other", "10.0.0.5", time.Hour)
	other.UserAgent = "curl"
	tr.Observe(other)
	tr.Settle(nil)

	l, ok := tr.Lineage(tokenID)
	if !ok || l.Issue == nil {
		t.Fatalf("no lineage: %+v", l)
	}
	if l.Issue.By != "system:node:n1" || l.Issue.AuditID != "issue" || l.Issue.ServiceAccount != "api" || l.Issue.UserAgent != "kubelet" ||
		l.Issue.SourceIP != "192.0.2.11" {
		t.Errorf("issue %+v", l.Issue)
	}
	if l.Count != 4 || len(l.Uses) != 2 || l.More != 0 {
		t.Fatalf("uses %+v", l)
	}
	if u := l.Uses[0]; len(u.UserAgent) != 1036 || u.Count != 3 || u.Pod != "api-0" || u.Node != "n1" || u.SourceIP != "10.0.0.5" ||
		!u.Last.Equal(noon.Add(3*time.Minute)) {
		t.Errorf("use %+v", u)
	}
	if !l.First.Equal(noon) || !l.Last.Equal(noon.Add(time.Hour)) {
		t.Errorf("from %s to %s", l.First, l.Last)
	}
	if _, ok := tr.Lineage("JTI=none"); ok {
		t.Error("a credential nobody used has a lineage")
	}
}

// TestTrailIsBounded: what is remembered stays within its limits, and what was forgotten is
// counted.
func TestTrailIsBounded(t *testing.T) {
	tr := NewTrail(TrailConfig{Credentials: 100, Requests: 100})
	for i := range 10_000 {
		e := at(by(account(extra(event.ExtraCredentialID, fmt.Sprint("JTI=", i)))), fmt.Sprint(i), "10.0.0.5", time.Duration(i)*time.Second)
		tr.Observe(e)
		hot := at(by(account(extra(event.ExtraCredentialID, tokenID))), fmt.Sprint("hot", i), "10.0.0.5", time.Duration(i)*time.Second)
		hot.UserAgent = fmt.Sprint("client-", i)
		tr.Observe(hot)
	}
	n := 0
	tr.credentials.visit(func(string, *trace) { n++ })
	if n > 101 || tr.Forgotten() < 10_000 {
		t.Errorf("%d credentials remembered, %d forgotten", n, tr.Forgotten())
	}
	l, ok := tr.Lineage(tokenID)
	if !ok || l.Count != 10_000 || len(l.Uses) != maxUses || l.More != 10_000-maxUses {
		t.Errorf("the credential always in use: count %d, uses %d, more %d", l.Count, len(l.Uses), l.More)
	}
}
