package authn

import (
	"fmt"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
)

const benchPods = 100_000

// crowd returns a state of 100,000 pods of 1,000 service accounts on 1,000 nodes, each with a token,
// and events of 4,096 of them mixed with certificates, static users and the apiserver's own.
func crowd() (*fakeState, []*event.Event) {
	long := noon.Add(-time.Hour)
	s := &fakeState{accounts: map[string][]state.Version{}, pods: map[string]state.Pod{}, nodes: map[string][]span{},
		credentials: map[string]state.Credential{}}
	var events []*event.Event
	for i := range 1000 {
		s.accounts[fmt.Sprintf("ns-%d/api", i)] = []state.Version{{UID: fmt.Sprint("sa-", i), NotBefore: long, NotAfter: long}}
		s.nodes[fmt.Sprint("node-", i)] = []span{{fmt.Sprint("nu-", i), long, time.Time{}}}
	}
	for i := range benchPods {
		uid, ns, node, id := fmt.Sprintf("6f1d0a52-0000-4000-8000-%012d", i), i%1000, i/100,
			fmt.Sprintf("JTI=837044ff-be3c-44f3-a302-%012d", i)
		s.pods[uid] = state.Pod{Namespace: fmt.Sprint("ns-", ns), Name: fmt.Sprint("api-", i), UID: uid, ServiceAccount: "api",
			Node: fmt.Sprint("node-", node), Created: long, Bound: long}
		s.credentials[id] = state.Credential{ID: id, Issued: long, Namespace: fmt.Sprint("ns-", ns), ServiceAccount: "api",
			UID: fmt.Sprint("sa-", ns)}
		if i%32 != 0 {
			continue
		}
		events = append(events, by(event.User{
			Username: fmt.Sprintf("system:serviceaccount:ns-%d:api", ns), UID: fmt.Sprint("sa-", ns), Groups: []string{GroupServiceAccounts,
				fmt.Sprintf("%s:ns-%d", GroupServiceAccounts, ns), GroupAuthenticated},
			Extra: extra(event.ExtraCredentialID, id, event.ExtraNodeName, fmt.Sprint("node-", node), event.ExtraNodeUID,
				fmt.Sprint("nu-", node), event.ExtraPodName, fmt.Sprint("api-", i), event.ExtraPodUID, uid),
		}))
		switch len(events) % 4 {
		case 1:
			e := by(user(UserLoopback, "u", GroupAuthenticated, GroupMasters))
			e.SourceIPs = []string{"127.0.0.1"}
			events = append(events, e)
		case 2:
			events = append(events, by(withExtra(user(fmt.Sprint("system:node:node-", node), "", GroupNodes, GroupAuthenticated),
				event.ExtraCredentialID, certID)))
		case 3:
			events = append(events, by(user("alice", "u1", "devs", "ops", GroupAuthenticated)))
		}
	}
	return s, events
}

func benchConfig() *config.APIServer {
	return with(frontProxy(config.RequestHeader{GroupHeaders: []string{"g"}, ExtraPrefixes: []string{"x"}, UIDHeaders: []string{"u"}}))
}

// BenchmarkEvaluate is the steady state: nothing to report.
func BenchmarkEvaluate(b *testing.B) {
	s, events := crowd()
	ev, cfg := New(Config{}), benchConfig()
	for name, cfg := range map[string]*config.APIServer{"configured": cfg, "unknown": nil} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if r := ev.Evaluate(events[i%len(events)], cfg, s); len(r.Contradictions) > 0 {
					b.Fatal(r.Contradictions)
				}
				i++
			}
		})
	}
}

// TestNothingToReportAllocatesNothing is the property the benchmark shows.
func TestNothingToReportAllocatesNothing(t *testing.T) {
	s, ev, cfg := shop(), New(Config{}), benchConfig()
	loop := by(user(UserLoopback, "u", GroupAuthenticated, GroupMasters))
	loop.SourceIPs = []string{"::1"}
	for _, e := range []*event.Event{
		by(account(podToken())), loop, by(user("alice", "u1", "devs", "ops", GroupAuthenticated)),
		by(user(UserAnonymous, "", GroupUnauthenticated)),
		by(withExtra(user("system:node:n1", "", GroupNodes, GroupAuthenticated), event.ExtraCredentialID, certID)),
		by(withExtra(user("sso", "", GroupAuthenticated), "k", "v")),
	} {
		ev.Evaluate(e, cfg, s)
		if n := testing.AllocsPerRun(100, func() {
			if r := ev.Evaluate(e, cfg, s); len(r.Contradictions) > 0 || len(r.Explained) != 1 {
				t.Fatal(r)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", e.User.Username, n)
		}
	}
}
