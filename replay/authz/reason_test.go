package authz

import (
	"testing"

	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// TestReasonsNameTheirAuthorizer: since 1.37 the reason of a refusal has the authorizer's name
// before each line; where the release is not known either form is the chain's own, never a
// mixture.
func TestReasonsNameTheirAuthorizer(t *testing.T) {
	const (
		text  = "no relationship found between node 'n' and this object"
		plain = text + "\nNo policy matched.\nEverything is forbidden."
		names = "node: " + text + "\nabac: No policy matched.\nalwaysdeny: Everything is forbidden."
		mixed = "node: " + text + "\nNo policy matched.\nalwaysdeny: Everything is forbidden."
	)
	chain := func(minor int) *config.APIServer {
		return &config.APIServer{Minor: minor, Authorization: config.Authorization{Authorizers: []config.Authorizer{
			{Type: config.Node, Name: "node"}, {Type: config.ABAC, Name: "abac", Policy: &config.Policy{}}, {Type: config.AlwaysDeny,
				Name: "alwaysdeny"},
		}}}
	}
	m := Moment{Graph: pods(graph.Absent)}
	for _, tc := range []struct {
		name    string
		c       *Chain
		given   []string
		others  []string
		refusal string
	}{
		{"1.36", New(chain(36)), []string{plain}, []string{names, mixed, ""}, plain},
		{"1.37", New(chain(37)), []string{names}, []string{plain, mixed, "", names + "\n"}, names},
		{"no release", New(chain(0)), []string{plain, names}, []string{mixed, ""}, plain},
		{"1.37 behind a server of 1.37", Delegated(&config.APIServer{Minor: 37, Source: "shop"}, chain(37)),
			[]string{delegateName + ": " + names}, []string{names, plain, delegateName + ": " + plain}, delegateName + ": " + names},
		{"1.37 behind a server of 1.36", Delegated(&config.APIServer{Minor: 36, Source: "shop"}, chain(37)), []string{names},
			[]string{delegateName + ": " + names, plain}, names},
		{"1.36 behind a server of no known release", Delegated(&config.APIServer{Source: "shop"}, chain(36)),
			[]string{plain, delegateName + ": " + plain}, []string{names}, plain},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ans := tc.c.Authorize(&kubelet, &getOne, &m, nil)
			if ans.Decision != verdict.DecisionForbid {
				t.Fatalf("%v, want a refusal", ans.Decision)
			}
			for _, reason := range tc.given {
				if !ans.Gives(reason, nil) {
					t.Errorf("does not give %q", reason)
				}
			}
			for _, reason := range tc.others {
				if ans.Gives(reason, nil) {
					t.Errorf("gives %q", reason)
				}
			}
			if got := ans.Refusal(); got != tc.refusal {
				t.Errorf("refuses with %q, want %q", got, tc.refusal)
			}
		})
	}
}
