package authn

import (
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeState holds objects that are there from one moment to another; what it has no entry for
// is absent, or unknown when blind.
type fakeState struct {
	blind       bool
	accounts    map[string][]state.Version
	pods        map[string]state.Pod
	nodes       map[string][]span
	secrets     map[string][]secretSpan
	credentials map[string]state.Credential
}

type span struct {
	uid      string
	from, to time.Time
}

type secretSpan struct {
	kept.Secret
	from, to time.Time
}

func (s *fakeState) none() state.Known {
	if s.blind {
		return state.Unknown
	}
	return state.Absent
}

func during(from, to, at time.Time) bool { return !at.Before(from) && (to.IsZero() || at.Before(to)) }

func (s *fakeState) ServiceAccount(namespace, name string, at time.Time) (string, state.Known) {
	uid, known := "", s.none()
	for _, v := range s.accounts[namespace+"/"+name] {
		if v.NotAfter.After(at) {
			break
		}
		uid, known = v.UID, state.Present
		if v.Deleted {
			uid, known = "", state.Absent
		}
	}
	return uid, known
}

func (s *fakeState) History(resource, namespace, name string) (out []state.Version) {
	add := func(uid string, from, to time.Time) {
		out = append(out, state.Version{UID: uid, NotBefore: from, NotAfter: from})
		if !to.IsZero() {
			out = append(out, state.Version{Deleted: true, NotBefore: to, NotAfter: to})
		}
	}
	switch resource {
	case kept.Nodes:
		for _, n := range s.nodes[name] {
			add(n.uid, n.from, n.to)
		}
	case kept.Secrets:
		for _, x := range s.secrets[namespace+"/"+name] {
			add(x.UID, x.from, x.to)
		}
	default:
		return s.accounts[namespace+"/"+name]
	}
	return out
}

func (s *fakeState) Pod(namespace, name string, at time.Time) (state.Pod, state.Known) {
	for _, p := range s.pods {
		if p.Namespace == namespace && p.Name == name && during(p.Created, p.Gone, at) {
			return p, state.Present
		}
	}
	return state.Pod{}, s.none()
}

func (s *fakeState) PodByUID(uid string) (state.Pod, state.Known) {
	if p, ok := s.pods[uid]; ok {
		return p, state.Present
	}
	return state.Pod{}, s.none()
}

func (s *fakeState) Node(name string, at time.Time) (string, state.Known) {
	for _, n := range s.nodes[name] {
		if during(n.from, n.to, at) {
			return n.uid, state.Present
		}
	}
	return "", s.none()
}

func (s *fakeState) Secret(namespace, name string, at time.Time) (kept.Secret, state.Known) {
	for _, x := range s.secrets[namespace+"/"+name] {
		if during(x.from, x.to, at) {
			return x.Secret, state.Present
		}
	}
	return kept.Secret{}, s.none()
}

func (s *fakeState) Credential(id string) (state.Credential, state.Known) {
	if c, ok := s.credentials[id]; ok {
		return c, state.Present
	}
	return state.Credential{}, s.none()
}

const (
	apiUID  = "6f1d0a52-0000-4000-8000-000000000001"
	podUID  = "6f1d0a52-0000-4000-8000-000000000002"
	nodeUID = "6f1d0a52-0000-4000-8000-000000000003"
	tokenID = "JTI=837044ff-be3c-44f3-a302-a28a6bf4377a"
	certID  = "X509SHA256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// shop returns a state with service account shop/api, a pod of it on node n1, and the token and
// certificate above issued to them, all since an hour before noon.
func shop() *fakeState {
	long := noon.Add(-time.Hour)
	return &fakeState{
		accounts: map[string][]state.Version{"shop/api": {{UID: apiUID, NotBefore: long, NotAfter: long}}},
		pods: map[string]state.Pod{podUID: {Namespace: "shop", Name: "api-0", UID: podUID, ServiceAccount: "api", Node: "n1",
			Created: long, Bound: long}},
		nodes:   map[string][]span{"n1": {{nodeUID, long, time.Time{}}}},
		secrets: map[string][]secretSpan{},
		credentials: map[string]state.Credential{tokenID: {ID: tokenID, Issued: long, Namespace: "shop", ServiceAccount: "api", UID: apiUID,
			By: "system:node:n1", AuditID: "issue"}},
	}
}

// by makes an event of a user received at noon.
func by(u event.User) *event.Event {
	return &event.Event{
		User: u, Verb: "get", RequestURI: "/api/v1/namespaces/shop/configmaps/c", Stage: event.StageResponseComplete,
		SourceIPs: []string{"192.0.2.7"}, RequestReceivedTimestamp: noon, StageTimestamp: noon.Add(time.Millisecond),
	}
}

func extra(kv ...string) (x event.Extra) {
	for i := 0; i < len(kv); i += 2 {
		x = append(x, event.ExtraEntry{Key: kv[i], Values: []string{kv[i+1]}})
	}
	return x
}

// account returns the user of a token of shop/api.
func account(x event.Extra) event.User {
	return event.User{Username: "system:serviceaccount:shop:api", UID: apiUID, Groups: []string{GroupServiceAccounts, GroupServiceAccounts +
		":shop", GroupAuthenticated}, Extra: x}
}

func podToken() event.Extra {
	return extra(event.ExtraCredentialID, tokenID, event.ExtraNodeName, "n1", event.ExtraNodeUID, nodeUID, event.ExtraPodName, "api-0",
		event.ExtraPodUID, podUID)
}

func contradictionNames(r Result) (out []string) {
	for _, f := range r.Contradictions {
		out = append(out, f.Name)
	}
	return out
}
