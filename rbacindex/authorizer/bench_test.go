package authorizer_test

import (
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	ours "github.com/retrial-io/retrial/rbacindex/authorizer"
)

// BenchmarkDecision is one decision through k8s.io/apiserver's interface, and BenchmarkUpdate
// an informer's event until decisions see it, by the number of ClusterRoleBindings.
func BenchmarkDecision(b *testing.B) {
	c := large(b, 10_000)
	for _, tt := range []struct{ name, who string }{{"allow", "user7777"}, {"deny", "nobody"}} {
		b.Run(tt.name, func(b *testing.B) {
			var request authorizer.Attributes = &authorizer.AttributesRecord{User: &user.DefaultInfo{Name: tt.who,
				Groups: []string{"system:authenticated"}},
				Verb: "get", Namespace: "shop", Resource: "pods", ResourceRequest: true}
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.Authorize(ctx, request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{1000, 50_000} {
		b.Run(fmt.Sprint("bindings=", n), func(b *testing.B) {
			c := large(b, n)
			versions := [2]any{bindCluster("b7", "view", "user7"), bindCluster("b7", "view", "other")}
			i := 0
			for b.Loop() {
				_, replaced := c.Snapshot()
				c.clusterRoleBindings.handler.OnUpdate(versions[i&1], versions[1-i&1])
				<-replaced
				i++
			}
		})
	}
}

func large(b *testing.B, bindings int) *cluster {
	c := newCluster(b, ours.Config{})
	objects := []any{clusterRole("view", "get")}
	for i := range bindings {
		objects = append(objects, bindCluster(fmt.Sprint("b", i), "view", fmt.Sprint("user", i)))
	}
	c.list(objects...)
	return c
}

// TestDecisionAllocations: a refusal allocates nothing, an allowance its reason.
func TestDecisionAllocations(t *testing.T) {
	c := newCluster(t, ours.Config{})
	c.list(clusterRole("view", "get"), bindCluster("alice", "view", "alice"))
	for _, tt := range []struct {
		who  string
		most float64
	}{{"alice", 1}, {"nobody", 0}} {
		var request authorizer.Attributes = &authorizer.AttributesRecord{User: &user.DefaultInfo{Name: tt.who}, Verb: "get",
			Resource: "pods", ResourceRequest: true}
		got := testing.AllocsPerRun(100, func() {
			if _, _, err := c.Authorize(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		})
		if got > tt.most {
			t.Errorf("%s: %v allocations a decision, want %v", tt.who, got, tt.most)
		}
	}
}
