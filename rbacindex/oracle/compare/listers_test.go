package compare

import (
	"context"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/retrial-io/retrial/rbacindex"
)

// informed returns the real authorizer over the listers an apiserver gives it.
func informed(t *testing.T, p *Policy) *rbac.RBACAuthorizer {
	t.Helper()
	in := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Rbac().V1()
	for _, k := range p.keys {
		var err error
		switch o := p.objects[k].(type) {
		case *rbacv1.Role:
			err = in.Roles().Informer().GetIndexer().Add(o)
		case *rbacv1.ClusterRole:
			err = in.ClusterRoles().Informer().GetIndexer().Add(o)
		case *rbacv1.RoleBinding:
			err = in.RoleBindings().Informer().GetIndexer().Add(o)
		case *rbacv1.ClusterRoleBinding:
			err = in.ClusterRoleBindings().Informer().GetIndexer().Add(o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return rbac.New(&rbac.RoleGetter{Lister: in.Roles().Lister()}, &rbac.RoleBindingLister{Lister: in.RoleBindings().Lister()},
		&rbac.ClusterRoleGetter{Lister: in.ClusterRoles().Lister()},
		&rbac.ClusterRoleBindingLister{Lister: in.ClusterRoleBindings().Lister()})
}

// TestPolicyServesAsListersDo: what the real code is given in this package is what it is given
// in an apiserver, to the text of the errors.
func TestPolicyServesAsListersDo(t *testing.T) {
	allowed, failed := 0, 0
	for i := range uint64(60) {
		g := newGenerator(17, i)
		p := NewPolicy(g.policy()...)
		there, here := informed(t, p), NewReal(p)
		for range 60 {
			a := g.request(p)
			decision, reason, err := there.Authorize(context.Background(), attributes(&a))
			answer := here.answer(&Question{Asked: AskDecision, Request: a})
			if err != nil || answer.Allowed != (decision == authorizer.DecisionAllow) {
				t.Fatalf("%+v: listers %v %v, policy %t", a, decision, err, answer.Allowed)
			}
			// Listers list in any order, and the first grant is the reason.
			if reason != answer.Reason && (answer.Allowed && !slices.Contains(answer.Grants, reason[len(allowedBy):]) ||
				!answer.Allowed && len(reason) != len(answer.Reason)) {
				t.Fatalf("%+v: listers %q, policy %q", a, reason, answer.Reason)
			}
			switch {
			case answer.Allowed:
				allowed++
			case reason != "":
				failed++
			}
		}
	}
	if allowed < 200 || failed < 200 {
		t.Errorf("%d allowed, %d with errors", allowed, failed)
	}
}

// FuzzDecision lets the fuzzer choose a policy by number and a request by its strings.
func FuzzDecision(f *testing.F) {
	for seed := range uint64(6) {
		f.Add(seed, "alice", "ops", "get", "apps", "pods", "log", "a", "default", "/healthz")
		f.Add(seed, "system:serviceaccount:default:sa", "system:authenticated", "*", "*", "*", "*", "", "n", "*")
	}
	f.Fuzz(func(t *testing.T, seed uint64, user, group, verb, apiGroup, resource, sub, name, ns, path string) {
		g := newGenerator(seed, 0)
		writes := g.policy()
		p := NewPolicy(writes...)
		s, err := rbacindex.New(p.Objects()...)
		if err != nil {
			t.Fatal(err)
		}
		c, r := &checker{ours: Index()}, NewReal(p)
		a := rbacindex.Attributes{User: user, Groups: []string{group, "ops"}, Verb: verb, Namespace: ns, APIGroup: apiGroup,
			Resource: resource, Subresource: sub, Name: name, ResourceRequest: true}
		url := rbacindex.Attributes{User: user, Groups: []string{group}, Verb: verb, Path: path}
		aimed := a
		g.aim(p, &aimed)
		for _, a := range []rbacindex.Attributes{a, url, aimed} {
			for _, asked := range []Asked{AskDecision, AskRules} {
				q := Question{Asked: asked, Request: a}
				if text := c.check(s, r, &q); text != "" {
					t.Fatal(fmt.Sprint(text, "\n", (&Disagreement{Case: Case{Writes: writes, Question: q}, Text: text,
						Repeats: true}).Error()))
				}
			}
		}
	})
}
