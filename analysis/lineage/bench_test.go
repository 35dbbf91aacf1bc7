package lineage

import (
	"fmt"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/test/golden"
)

// BenchmarkTrail observes events of credentials that are known already: tokens of pods, kubelets' certificates and users without any.
func BenchmarkTrail(b *testing.B) {
	var events []*event.Event
	for i := range 4096 {
		node := fmt.Sprint("node-", i%1000)
		u := account(extra(event.ExtraCredentialID, fmt.Sprintf("JTI=837044ff-be3c-44f3-a302-%012d", i), event.ExtraNodeName, node,
			event.ExtraPodName, fmt.Sprint("api-", i), event.ExtraPodUID, fmt.Sprintf("6f1d0a52-0000-4000-8000-%012d", i)))
		switch i % 4 {
		case 1:
			u = withExtra(user("system:node:"+node, "", authn.GroupNodes, authn.GroupAuthenticated), event.ExtraCredentialID, certID)
		case 2:
			u = user("alice", "u1", "devs", "ops", authn.GroupAuthenticated)
		}
		events = append(events, by(u))
	}
	tr := NewTrail(TrailConfig{})
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		tr.Observe(events[i%len(events)])
		i++
	}
}

// FuzzTrail: whatever events say, each contradiction is one of the closed set and has its evidence.
func FuzzTrail(f *testing.F) {
	for _, u := range []event.User{account(podToken()), user("alice", "u1", "devs", authn.GroupAuthenticated), user("system:node:", "",
		authn.GroupNodes), {}} {
		f.Add(event.AppendJSON(nil, by(u)))
	}
	known := map[string]bool{}
	for _, name := range golden.Constants(f, "replay/authn/contradictions.go", "Contradiction") {
		known[name] = true
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := event.Decode(raw)
		if err != nil {
			t.Skip()
		}
		again := *e
		again.User.UID += "x"
		again.RequestURI += "/x"
		tr := NewTrail(TrailConfig{Credentials: 4, Requests: 4, Burst: 1})
		tr.Observe(e)
		tr.Observe(&again)
		tr.Settle(&fakeState{})
		for _, x := range append(tr.About(e), tr.About(&again)...) {
			if !known[x.Name] || x.Evidence == "" {
				t.Errorf("contradiction %q with evidence %q", x.Name, x.Evidence)
			}
		}
	})
}
