package rbacindex_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// allowedAfter applies changes and asks again.
func allowedAfter(t *testing.T, s *rbacindex.Snapshot, a *rbacindex.Attributes, objects ...any) bool {
	t.Helper()
	var changes []rbacindex.Change
	for _, o := range objects {
		k, err := rbacindex.KeyOf(o)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, rbacindex.Change{Key: k, Object: o})
	}
	next, err := s.Apply(changes...)
	if err != nil {
		t.Fatal(err)
	}
	return next.Authorize(a, nil).Allowed
}

// bindTo makes a binding of a user to a role where a request is.
func bindTo(role rbacindex.Key, a *rbacindex.Attributes) any {
	kind := role.Kind.String()
	if a.Namespace == "" {
		return clusterBinding("new", kind, role.Name, user(a.User))
	}
	return namespaceBinding(a.Namespace, "new", kind, role.Name, user(a.User))
}

// TestNearestMissTurnsDenialsIntoAllows applies everything that is said to help.
func TestNearestMissTurnsDenialsIntoAllows(t *testing.T) {
	t.Parallel()
	var denied, roles, bindings, almost int
	for seed := range policies(t, 120) {
		g := newGenerator(seed + 1<<38)
		objects := g.policy()
		s, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			a := g.aimed(objects)
			if !a.ResourceRequest {
				a.Namespace = ""
			}
			if g.IntN(2) == 0 {
				a.User = pick(g, genUsers...)
			}
			if s.Authorize(a, nil).Allowed {
				continue
			}
			denied++
			m := s.NearestMiss(a, 1000)
			fail := func(what string, args ...any) {
				t.Helper()
				t.Fatalf("seed %d request %+v: %s", seed, *a, fmt.Sprintf(what, args...))
			}
			least := clusterRole("least", m.Rule)
			if !allowedAfter(t, s, a, least, bindTo(rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "least"}, a)) {
				fail("%+v does not allow it", m.Rule)
			}
			offered := map[rbacindex.Key]bool{}
			for i, o := range m.Roles {
				offered[o.Key] = true
				if roles++; !allowedAfter(t, s, a, bindTo(o.Role, a)) || i > 0 && m.Roles[i-1].Width > o.Width {
					fail("role %+v", o)
				}
			}
			for i, o := range m.Bindings {
				offered[o.Key] = true
				b, _ := s.Get(o.Key)
				bindings++
				var with any
				switch b := b.(type) {
				case *rbacv1.RoleBinding:
					c := *b
					c.Subjects = append([]rbacv1.Subject{user(a.User)}, c.Subjects...)
					with = &c
				case *rbacv1.ClusterRoleBinding:
					c := *b
					c.Subjects = append([]rbacv1.Subject{user(a.User)}, c.Subjects...)
					with = &c
				}
				if !allowedAfter(t, s, a, with) || i > 0 && m.Bindings[i-1].Width > o.Width {
					fail("binding %+v", o)
				}
			}
			// No role or binding that helps is left out.
			s.All(func(k rbacindex.Key, o any) bool {
				switch o := o.(type) {
				case *rbacv1.Role:
					if k.Namespace == a.Namespace && allowedAfter(t, s, a, bindTo(k, a)) && !offered[k] {
						fail("%s is left out", k)
					}
				case *rbacv1.ClusterRole:
					if allowedAfter(t, s, a, bindTo(k, a)) && !offered[k] {
						fail("%s is left out", k)
					}
				case *rbacv1.RoleBinding:
					if role, ok := roleOf(k, o); ok && k.Namespace == a.Namespace && offered[role] != offered[k] {
						fail("%s is left out", k)
					}
				case *rbacv1.ClusterRoleBinding:
					if role, ok := roleOf(k, o); ok && role.Kind == rbacindex.KindClusterRole && offered[role] != offered[k] {
						fail("%s is left out", k)
					}
				}
				return true
			})
			for _, x := range m.Almost {
				almost++
				checkAlmost(t, s, *a, x)
			}
		}
	}
	if !testing.Short() && (denied < 200 || roles < 50 || bindings < 25 || almost < 40) {
		t.Errorf("%d denials, %d roles, %d bindings, %d rules that lack one thing", denied, roles, bindings, almost)
	}
}

// checkAlmost supplies what a rule is said to lack.
func checkAlmost(t *testing.T, s *rbacindex.Snapshot, a rbacindex.Attributes, x rbacindex.Almost) {
	t.Helper()
	o, _ := s.Get(x.RoleKey())
	var r rbacv1.PolicyRule
	switch o := o.(type) {
	case *rbacv1.Role:
		r = o.Rules[x.Rule()]
	case *rbacv1.ClusterRole:
		r = o.Rules[x.Rule()]
	}
	if rbacindex.RuleAllows(&a, &r) != (x.Lack == rbacindex.LackNamespace) {
		t.Fatalf("%+v is said to lack a %s for %+v", r, x.Lack, a)
	}
	switch x.Lack {
	case rbacindex.LackVerb:
		r.Verbs = []string{a.Verb}
	case rbacindex.LackName:
		r.ResourceNames = nil
	case rbacindex.LackSubresource:
		r.Resources = []string{a.Resource}
		if a.Subresource != "" {
			r.Resources = []string{a.Resource + "/" + a.Subresource}
		}
	case rbacindex.LackGroup:
		r.APIGroups = []string{a.APIGroup}
	case rbacindex.LackNamespace:
		if a.Namespace = x.BindingNamespace(); a.Namespace == "" {
			t.Fatalf("%s holds everywhere", x.Reason())
		}
	}
	if !rbacindex.RuleAllows(&a, &r) {
		t.Fatalf("%+v lacks more than a %s for %+v", r, x.Lack, a)
	}
}

func TestNearestMiss(t *testing.T) {
	s, err := rbacindex.New(
		clusterRole("view", parseRules("get,list - pods,pods/log,secrets")...),
		clusterRole("edit", parseRules("get,list,delete - pods,pods/log,secrets", "get,delete apps deployments")...),
		clusterRole("admin", parseRules("* * *")...), clusterBinding("admins", "ClusterRole", "admin", group("admins")),
		namespaceRole("n", "deleter", parseRules("delete - pods")...), namespaceBinding("n", "ops", "Role", "deleter", group("ops")),
		namespaceBinding("n", "alice", "ClusterRole", "view", user("alice")), namespaceBinding("m", "alice", "ClusterRole", "edit",
			user("alice")),
		namespaceRole("n", "named", parseRules("update - configmaps a,b", "get extensions deployments", "get - nodes", "post /x")...),
		namespaceBinding("n", "named", "Role", "named", user("alice")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name                           string
		a                              rbacindex.Attributes
		limit                          int
		rule, roles, bindings, nearest string
	}{
		{"a verb", rbacindex.Attributes{Verb: "delete", Resource: "pods", Name: "x", Namespace: "n", ResourceRequest: true}, 9,
			`[delete] [""] [pods] [x]`,
			"Role/n/deleter ClusterRole/edit ClusterRole/admin", "RoleBinding/n/ops ClusterRoleBinding/admins",
			"alice#0 verb, alice#0 namespace"},
		{"no more than asked for", rbacindex.Attributes{Verb: "delete", Resource: "pods", Namespace: "n", ResourceRequest: true}, 1,
			`[delete] [""] [pods] []`,
			"Role/n/deleter", "RoleBinding/n/ops", "alice#0 verb"},
		{"a name", rbacindex.Attributes{Verb: "update", Resource: "configmaps", Name: "c", Namespace: "n", ResourceRequest: true}, 9,
			`[update] [""] [configmaps] [c]`,
			"ClusterRole/admin", "ClusterRoleBinding/admins", "named#0 name"},
		{"a subresource", rbacindex.Attributes{Verb: "get", Resource: "pods", Subresource: "exec", Namespace: "n", ResourceRequest: true},
			9, `[get] [""] [pods/exec] []`,
			"ClusterRole/admin", "ClusterRoleBinding/admins", "alice#0 subresource"},
		{"a group", rbacindex.Attributes{Verb: "get", APIGroup: "apps", Resource: "deployments", Namespace: "n", ResourceRequest: true}, 9,
			`[get] ["apps"] [deployments] []`,
			"ClusterRole/edit ClusterRole/admin", "ClusterRoleBinding/admins", "named#1 group, alice#1 namespace"},
		{"in no namespace", rbacindex.Attributes{Verb: "delete", Resource: "pods", ResourceRequest: true}, 9, `[delete] [""] [pods] []`,
			"ClusterRole/edit ClusterRole/admin", "ClusterRoleBinding/admins", "alice#0 namespace"},
		{"a path", rbacindex.Attributes{Verb: "get", Path: "/x", Namespace: "n"}, 9, `[get] [/x]`, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.a.User = "alice"
			m := s.NearestMiss(&c.a, c.limit)
			rule := fmt.Sprintf("%v %q %v %v", m.Rule.Verbs, m.Rule.APIGroups, m.Rule.Resources, m.Rule.ResourceNames)
			if len(m.Rule.NonResourceURLs) > 0 {
				rule = fmt.Sprintf("%v %v", m.Rule.Verbs, m.Rule.NonResourceURLs)
			}
			var roles, bindings, nearest []string
			for _, o := range m.Roles {
				roles = append(roles, o.Key.String())
			}
			for _, o := range m.Bindings {
				bindings = append(bindings, o.Key.String())
			}
			for _, x := range m.Almost {
				nearest = append(nearest, fmt.Sprintf("%s#%d %s", x.Binding(), x.Rule(), x.Lack))
			}
			if rule != c.rule || strings.Join(roles, " ") != c.roles || strings.Join(bindings, " ") != c.bindings ||
				strings.Join(nearest, ", ") != c.nearest {
				t.Errorf("rule %s\nroles %s\nbindings %s\nnearest %s", rule, roles, bindings, nearest)
			}
		})
	}
}
