package oracle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	rbacvalidation "k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// objects serves a policy to the authorizer as its informers would.
type objects struct {
	roles           map[string]*rbacv1.Role // namespace/name
	clusterRoles    map[string]*rbacv1.ClusterRole
	bindings        map[string][]*rbacv1.RoleBinding // by namespace
	clusterBindings []*rbacv1.ClusterRoleBinding
}

func policyOf(list []leastpriv.Object) *objects {
	p := &objects{roles: map[string]*rbacv1.Role{}, clusterRoles: map[string]*rbacv1.ClusterRole{},
		bindings: map[string][]*rbacv1.RoleBinding{}}
	for _, o := range list {
		switch o := o.(type) {
		case *rbacv1.Role:
			p.roles[o.Namespace+"/"+o.Name] = o
		case *rbacv1.ClusterRole:
			p.clusterRoles[o.Name] = o
		case *rbacv1.RoleBinding:
			p.bindings[o.Namespace] = append(p.bindings[o.Namespace], o)
		case *rbacv1.ClusterRoleBinding:
			p.clusterBindings = append(p.clusterBindings, o)
		}
	}
	return p
}

func (p *objects) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	if r, ok := p.roles[namespace+"/"+name]; ok {
		return r, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: "roles"}, name)
}

func (p *objects) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	if r, ok := p.clusterRoles[name]; ok {
		return r, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}, name)
}

func (p *objects) ListRoleBindings(_ context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	return p.bindings[namespace], nil
}

func (p *objects) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return p.clusterBindings, nil
}

// judge is the real authorizer on one policy, with the check it makes on writers of roles.
type judge struct {
	rbac  *rbac.RBACAuthorizer
	rules rbacvalidation.AuthorizationRuleResolver
}

func judgeOn(list []leastpriv.Object) judge {
	p := policyOf(list)
	return judge{rbac.New(p, p, p, p), rbacvalidation.NewDefaultRuleResolver(p, p, p, p)}
}

func (j judge) allows(t *testing.T, q *leastpriv.Question) bool {
	t.Helper()
	a := &q.Attributes
	who := &user.DefaultInfo{Name: a.User, Groups: a.Groups}
	decision, _, err := j.rbac.Authorize(t.Context(), authorizer.AttributesRecord{User: who, Verb: a.Verb, Namespace: a.Namespace,
		APIGroup: a.APIGroup, APIVersion: "v1",
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path})
	if err != nil && decision == authorizer.DecisionAllow {
		t.Fatalf("%+v: %v", a, err)
	}
	if decision == authorizer.DecisionAllow {
		return true
	}
	if !q.Alternative {
		return false
	}
	ctx := request.WithUser(request.WithNamespace(t.Context(), a.Namespace), who)
	return rbacvalidation.ConfirmNoEscalation(ctx, j.rules, q.Rules) == nil
}

// recorded takes in the bundled recording.
func recorded(t *testing.T) (*leastpriv.Collector, *state.State) {
	t.Helper()
	c, st := leastpriv.NewCollector(), state.New("sample")
	if _, err := evaluate.Run(t.Context(), evaluate.Options{
		Engine: replay.New(replay.Config{}), State: st,
		States: []evaluate.Input{{Name: sample.StateName, Open: sample.OpenState}},
		Events: []evaluate.Input{{Name: sample.AuditLogName, Open: sample.OpenAuditLog}},
		Sink: func(e *event.Event, v *verdict.Verdict) error {
			c.Observe(e, v)
			return nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	return c, st
}

// TestRealAuthorizerConfirmsProofs puts every question of every proof on the recording to
// the real RBAC authorizer, on the objects `retrial suggest --final` prints: each suggestion
// alone, and all of them together, in every form. It also drops each rule of each exact suggestion, and
// each verb on each resource of each narrowed role: the real authorizer must then refuse something, unless the
// suggestion says why it is there.
func TestRealAuthorizerConfirmsProofs(t *testing.T) {
	c, st := recorded(t)
	for name, form := range map[string]leastpriv.Options{"narrow": {}, "no added verbs": {NoAddedVerbs: true}, "strict": {Strict: true}} {
		t.Run(name, func(t *testing.T) {
			confirm(t, c, c.Advise(st, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), form), form.Strict)
		})
	}
}

func confirm(t *testing.T, c *leastpriv.Collector, advisor *leastpriv.Advisor, strict bool) {
	var all []*leastpriv.Suggestion
	questions := map[string][]leastpriv.Question{}
	for _, name := range c.Subjects() {
		s, err := advisor.Suggest(name)
		if err != nil {
			t.Fatal(err)
		}
		if questions[name], err = advisor.Questions(name); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	var needed, refusals, allowed, parts int
	ask := func(j judge, s *leastpriv.Suggestion, what string) {
		t.Helper()
		newly := 0
		for i := range questions[s.Subject] {
			q := &questions[s.Subject][i]
			switch ok := j.allows(t, q); {
			case q.Needed && !ok:
				t.Errorf("%s: %s: the real authorizer refuses %+v", what, s.Subject, q.Attributes)
			case !q.Needed && ok && !q.Explained:
				t.Errorf("%s: %s: the real authorizer newly allows %+v", what, s.Subject, q.Attributes)
			case !q.Needed && ok:
				newly++
			}
		}
		allowed += newly
		if p := s.Proof; newly != p.AllowedBefore+p.AllowedByKept+p.AllowedToday+p.Implied && what == "alone" {
			t.Errorf("%s: %s: the real authorizer allows %d refusals, the proof names %+v", what, s.Subject, newly, s.Proof)
		}
	}
	for _, s := range all {
		plan, err := advisor.Together([]*leastpriv.Suggestion{s})
		if err != nil {
			t.Fatal(err)
		}
		ask(judgeOn(plan.Final), s, "alone")
		for _, q := range questions[s.Subject] {
			if q.Needed {
				needed++
			} else {
				refusals++
			}
		}
		for _, o := range s.Apply {
			for what, less := range lessOf(o, strict) {
				parts++
				at := place(t, plan.Final, o)
				weaker := append(slices.Delete(slices.Clone(plan.Final), at, at+1), less)
				if !addedTo(s, what) && !refusesSomething(t, judgeOn(weaker), questions[s.Subject]) {
					t.Errorf("%s: nothing needs %+v", s.Subject, what)
				}
			}
		}
	}
	plan, err := advisor.Together(all)
	if err != nil {
		t.Fatal(err)
	}
	j := judgeOn(plan.Final)
	for _, s := range all {
		ask(j, s, "together")
	}
	t.Logf("%d subjects, %d needs, %d refusals (%d explained, twice), %d rules or verbs on resources", len(all), needed, refusals, allowed,
		parts)
	if len(all) < 90 || needed < 3000 || refusals < 500 || parts < 300 {
		t.Error("that is not the whole recording")
	}
}

// part is what is dropped of a role: a rule, or a verb on a resource or path of it.
type part struct {
	role           string
	rule           int
	verb, resource string
}

// lessOf returns a role without each of its rules, or without each verb on each resource of them.
func lessOf(o leastpriv.Object, rules bool) map[part]leastpriv.Object {
	k, _ := rbacindex.KeyOf(o)
	out := map[part]leastpriv.Object{}
	for n, r := range rulesOf(o) {
		if rules {
			out[part{role: k.String(), rule: n}] = without(o, n)
			continue
		}
		for _, verb := range r.Verbs {
			for _, on := range slices.Concat(r.Resources, r.NonResourceURLs) {
				other := func(s string) bool { return s == on }
				// The rule for the other resources, and one for the other verbs on this.
				rest, verbs := *r.DeepCopy(), *r.DeepCopy()
				rest.Resources = slices.DeleteFunc(rest.Resources, other)
				rest.NonResourceURLs = slices.DeleteFunc(rest.NonResourceURLs, other)
				verbs.Verbs = slices.DeleteFunc(verbs.Verbs, func(s string) bool { return s == verb })
				text := on
				if len(r.NonResourceURLs) > 0 {
					verbs.NonResourceURLs = []string{on}
				} else {
					verbs.Resources = []string{on}
					name, sub, found := strings.Cut(on, "/")
					text = strings.TrimSuffix(name+"."+r.APIGroups[0], ".")
					if found {
						text += "/" + sub
					}
				}
				out[part{k.String(), n, verb, text}] = with(without(o, n), rest, verbs)
			}
		}
	}
	return out
}

// addedTo reports whether a suggestion says why it holds a verb that nobody used.
func addedTo(s *leastpriv.Suggestion, p part) bool {
	return slices.ContainsFunc(s.Added, func(a leastpriv.Added) bool {
		return a.Verb == p.verb && a.Resource == p.resource && a.Reason != ""
	})
}

// with returns a role with more rules.
func with(o leastpriv.Object, more ...rbacv1.PolicyRule) leastpriv.Object {
	switch r := o.(type) {
	case *rbacv1.Role:
		r.Rules = append(r.Rules, more...)
	case *rbacv1.ClusterRole:
		r.Rules = append(r.Rules, more...)
	}
	return o
}

func refusesSomething(t *testing.T, j judge, list []leastpriv.Question) bool {
	t.Helper()
	for i := range list {
		if list[i].Needed && !j.allows(t, &list[i]) {
			return true
		}
	}
	return false
}

func place(t *testing.T, list []leastpriv.Object, o leastpriv.Object) int {
	t.Helper()
	want, err := rbacindex.KeyOf(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if k, err := rbacindex.KeyOf(list[i]); err == nil && k == want {
			return i
		}
	}
	t.Fatal(errors.New("an applied object is not in the final state"))
	return 0
}

func rulesOf(o leastpriv.Object) []rbacv1.PolicyRule {
	switch r := o.(type) {
	case *rbacv1.Role:
		return r.Rules
	case *rbacv1.ClusterRole:
		return r.Rules
	}
	return nil
}

func without(o leastpriv.Object, n int) leastpriv.Object {
	switch r := o.(type) {
	case *rbacv1.Role:
		c := r.DeepCopy()
		c.Rules = slices.Delete(c.Rules, n, n+1)
		return c
	case *rbacv1.ClusterRole:
		c := r.DeepCopy()
		c.Rules = slices.Delete(c.Rules, n, n+1)
		return c
	}
	return o
}
