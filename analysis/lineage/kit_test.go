package lineage

import (
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/state"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	apiUID  = "6f1d0a52-0000-4000-8000-000000000001"
	tokenID = "JTI=837044ff-be3c-44f3-a302-a28a6bf4377a"
	certID  = "X509SHA256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// fakeState knows credentials; one that it has no entry for was never issued, or is unknown when blind.
type fakeState struct {
	blind       bool
	credentials map[string]state.Credential
}

func (s *fakeState) Credential(id string) (state.Credential, state.Known) {
	c, ok := s.credentials[id]
	switch {
	case ok:
		return c, state.Present
	case s.blind:
		return c, state.Unknown
	}
	return c, state.Absent
}

// by makes an event of a user received at noon.
func by(u event.User) *event.Event {
	return &event.Event{
		User: u, Verb: "get", RequestURI: "/api/v1/namespaces/shop/configmaps/c", Stage: event.StageResponseComplete,
		SourceIPs: []string{"192.0.2.7"}, RequestReceivedTimestamp: noon, StageTimestamp: noon.Add(time.Millisecond),
	}
}

func user(name, uid string, groups ...string) event.User {
	return event.User{Username: name, UID: uid, Groups: groups}
}

func withExtra(u event.User, kv ...string) event.User {
	u.Extra = extra(kv...)
	return u
}

func extra(kv ...string) (x event.Extra) {
	for i := 0; i < len(kv); i += 2 {
		x = append(x, event.ExtraEntry{Key: kv[i], Values: []string{kv[i+1]}})
	}
	return x
}

// account returns the user of a token of shop/api.
func account(x event.Extra) event.User {
	groups := []string{authn.GroupServiceAccounts, authn.GroupServiceAccounts + ":shop", authn.GroupAuthenticated}
	return event.User{Username: "system:serviceaccount:shop:api", UID: apiUID, Groups: groups, Extra: x}
}

// podToken returns the extra of a token that is bound to a pod on node n1.
func podToken() event.Extra {
	return extra(event.ExtraCredentialID, tokenID, event.ExtraNodeName, "n1", event.ExtraNodeUID, "6f1d0a52-0000-4000-8000-000000000003",
		event.ExtraPodName, "api-0", event.ExtraPodUID, "6f1d0a52-0000-4000-8000-000000000002")
}
