package authn

import (
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
)

// FuzzEvaluate: whatever an event says of its user, it is judged, every contradiction is one of the
// set and has its evidence, and what explains it is an authenticator.
func FuzzEvaluate(f *testing.F) {
	for _, u := range []event.User{account(podToken()), user(UserAnonymous, "", GroupUnauthenticated), user("alice", "u1", "devs",
		GroupAuthenticated), user("system:node:", "", GroupNodes), user("system:bootstrap:", ""), {}} {
		f.Add(event.AppendJSON(nil, by(u)))
	}
	known := map[string]bool{}
	for _, name := range contradictions(f) {
		known[name] = true
	}
	names := map[string]bool{}
	for _, n := range (&sets{}).names(1<<ranks - 1) {
		names[n] = true
	}
	full := with(func(c *config.APIServer) {
		frontProxy(config.RequestHeader{GroupHeaders: []string{"g"}})(c)
		issuers(config.JWT{Issuer: "i", Username: config.Claim{Claim: "sub", Prefix: "i:"},
			UserRules: []config.Rule{{Expression: "user.groups.all(g, g != 'root')"}}})(c)
		c.Authentication.Anonymous.Paths = []string{"/livez"}
	})
	ev := New(Config{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := event.Decode(raw)
		if err != nil {
			t.Skip()
		}
		for _, s := range []State{nil, shop(), &fakeState{blind: true}} {
			for _, cfg := range []*config.APIServer{nil, full, {Minor: 5}, {Minor: 24}} {
				r := ev.Evaluate(e, cfg, s)
				for _, x := range r.Contradictions {
					if !known[x.Name] || x.Evidence == "" || len(x.Evidence) > maxEvidence+len("…") {
						t.Errorf("contradiction %q with evidence %q", x.Name, x.Evidence)
					}
				}
				for _, n := range r.Explained {
					if !names[n] {
						t.Errorf("explained by %q", n)
					}
				}
				ev.Answers(e, cfg, s)
			}
		}
	})
}
