package state_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
)

// wentAway is the answer to a deletion by which an object went.
const wentAway = `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"p","uid":"u1"}}`

// perhaps names the users that may get secrets by a view: for certain, and at the most.
func perhaps(v *state.View, users ...string) string {
	var out []string
	for _, user := range users {
		a := rbacindex.Attributes{User: user, ResourceRequest: true, Verb: "get", Resource: "secrets"}
		switch {
		case v.RBAC.Authorize(&a, nil).Allowed:
			out = append(out, user)
		case v.Most != nil && v.Most.Authorize(&a, nil).Allowed:
			out = append(out, user+"?")
		}
	}
	return strings.Join(out, " ")
}

// A binding names its role for life. Where its beginning or its end is in doubt it may be one of several,
// and whoever none of them names is not concerned.
func TestFatesOfABindingToSeveralRoles(t *testing.T) {
	const (
		uri   = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
		roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
		head  = `{"apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"%s"},"kind":`
	)
	role := func(name, resource string) string {
		return fmt.Sprintf(head, name) + `"ClusterRole","rules":[{"verbs":["get"],"apiGroups":[""],"resources":["` + resource + `"]}]}`
	}
	subjects := func(users ...string) string {
		list := make([]string, len(users))
		for i, u := range users {
			list[i] = `{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"` + u + `"}`
		}
		return `"subjects":[` + strings.Join(list, ",") + `]`
	}
	binding := func(to string, users ...string) string {
		return fmt.Sprintf(head, "p") + `"ClusterRoleBinding","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",` +
			`"name":"` + to + `"},` + subjects(users...) + `}`
	}
	key := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "p"}
	for name, c := range map[string]struct {
		tell    func(s *told)
		want    string // of ann, bob, eve and zoe
		certain bool
	}{
		"two are made, perhaps": {tell: func(s *told) {
			s.during("12:00:10", "12:00:11", "create", uri, 504, binding("reader", "ann"), "")
			s.during("12:00:12", "12:00:13", "create", uri, 504, binding("viewer", "eve"), "")
			s.during("12:00:14", "12:00:15", "create", uri, 504, binding("other", "zoe"), "")
		}, want: "ann? eve?"},
		"the same role with others": {tell: func(s *told) {
			s.during("12:00:10", "12:00:11", "create", uri, 504, binding("reader", "ann"), "")
			s.during("12:00:12", "12:00:13", "create", uri, 504, binding("other", "zoe"), "")
			s.during("12:00:14", "12:00:15", "update", uri+"/p", 504, binding("reader", "bob"), "")
		}, want: "ann? bob?"},
		"one ends, and another is made, perhaps": {tell: func(s *told) {
			s.during("12:00:08", "12:00:09", "create", uri, 201, binding("reader", "ann"), "")
			s.during("12:00:10", "12:00:11", "delete", uri+"/p", 504, "{}", "")
			s.during("12:00:12", "12:00:13", "create", uri, 504, binding("viewer", "eve"), "")
		}, want: "ann? eve?"},
		"the subjects of whichever it is are replaced": {tell: func(s *told) {
			s.during("12:00:10", "12:00:11", "create", uri, 504, binding("reader", "ann"), "")
			s.during("12:00:12", "12:00:13", "create", uri, 504, binding("other", "eve"), "")
			s.during("12:00:14", "12:00:15", "patch", uri+"/p", 200, "{"+subjects("bob")+"}", "")
		}, want: "bob?"},
		"its labels are changed": {tell: func(s *told) {
			s.during("12:00:10", "12:00:11", "create", uri, 504, binding("reader", "ann"), "")
			s.during("12:00:30", "12:00:31", "patch", uri+"/p", 200, `{"metadata":{"labels":{"a":"b"}}}`, "")
		}, want: "ann", certain: true},
		"one that was applied, without an answer": {tell: func(s *told) {
			s.during("12:00:10", "12:00:11", "create", uri, 504, binding("viewer", "eve"), "")
			s.during("12:00:12", "12:00:13", "delete", uri+"/p", 200, "{}", strings.Replace(wentAway, "u1", "u0", 1))
			s.during("12:00:14", "12:00:15", "patch", uri+"/p", 201, binding("reader", "ann"), "")
		}, want: "ann", certain: true},
		"it turns out to be one of them": {tell: func(s *told) {
			s.during("12:00:10", "12:00:11", "create", uri, 504, binding("reader", "ann"), "")
			s.during("12:00:12", "12:00:13", "create", uri, 504, binding("viewer", "eve"), "")
			s.during("12:00:30", "12:00:31", "get", uri+"/p", 200, "", strings.Replace(binding("viewer", "eve"), `"name":"p"`,
				`"name":"p","uid":"u1","resourceVersion":"9"`, 1))
		}, want: "eve", certain: true},
		"more roles than are told apart": {tell: func(s *told) {
			for i := range 100 {
				s.during(fmt.Sprintf("12:00:10.%03d", i), fmt.Sprintf("12:00:10.%03d", i+1), "create", uri, 504,
					binding(fmt.Sprint("other", i), "ann", "bob"), "")
			}
		}, want: "ann? bob?"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, true)
			s.during("12:00:01", "12:00:02", "create", roles, 201, role("reader", "secrets"), "")
			s.during("12:00:03", "12:00:04", "create", roles, 201, role("viewer", "secrets"), "")
			s.during("12:00:05", "12:00:06", "create", roles, 201, role("other", "pods"), "")
			c.tell(s)
			v := s.RBAC(clock(t, "12:01:00"))
			if len(v.Unknown) > 0 {
				t.Errorf("without bounds: %v", v.Unknown)
			}
			if got := perhaps(&v, "ann", "bob", "eve", "zoe"); got != c.want {
				t.Errorf("%q may get secrets, want %q", got, c.want)
			}
			if v.IsDoubted(key) == c.certain {
				t.Errorf("in doubt: %v", v.Doubted)
			}
			s.during("12:02:00", "12:02:01", "delete", uri+"/p", 200, "{}", wentAway)
			if v := s.RBAC(clock(t, "12:03:00")); !v.Certain() || perhaps(&v, "ann", "bob", "eve", "zoe") != "" {
				t.Errorf("deleted, and in doubt: %v, %v", v.Unknown, v.Doubted)
			}
		})
	}
}

// A binding in doubt that was one of several and is one of fewer leaves none of the others behind.
func TestFateOfFewerRoles(t *testing.T) {
	const uri = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	binding := func(to string) string {
		return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"p"},"roleRef":{` +
			`"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"` + to + `"}}`
	}
	stand := func(s *told, at string) []string {
		var roles []string
		v := s.RBAC(clock(t, at))
		if len(v.Unknown) > 0 {
			t.Errorf("at %s without bounds: %v", at, v.Unknown)
		}
		if v.Most != nil {
			v.Most.All(func(k rbacindex.Key, object any) bool {
				if b, ok := object.(*rbacv1.ClusterRoleBinding); ok {
					roles = append(roles, content.ObjectOf(k).Name+" "+b.RoleRef.Name)
				}
				return true
			})
		}
		slices.Sort(roles)
		return roles
	}
	s := tell(t, true)
	for i, role := range []string{"r1", "r2", "r3"} {
		s.during(fmt.Sprintf("12:00:1%d", i), fmt.Sprintf("12:00:1%d", i+1), "create", uri, 504, binding(role), "")
	}
	s.during("12:01:00", "12:01:01", "delete", uri+"/p", 200, "{}", wentAway)
	s.during("12:02:00", "12:02:01", "create", uri, 504, binding("r4"), "")
	s.during("12:02:02", "12:02:03", "create", uri, 504, binding("r5"), "")
	for at, want := range map[string][]string{"12:00:05": nil, "12:00:30": {"p r1", "p r2", "p r3"}, "12:01:30": nil,
		"12:02:01.5": {"p r4"}, "12:02:30": {"p r4", "p r5"}} {
		if got := stand(s, at); !slices.Equal(got, want) {
			t.Errorf("at %s %q, want %q", at, got, want)
		}
	}
}

// An end that nobody saw came before a write whose answer was lost, by it, or after it: until another object
// is seen it may be as it was, as was asked for, or gone, and nothing else.
func TestFateOfABindingThatEndsUnseen(t *testing.T) {
	const uri = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	binding := func(uid, user string) string {
		return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"p","uid":"` + uid +
			`","resourceVersion":"` + uid + `"},` +
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},"subjects":[{"kind":"User",` +
			`"apiGroup":"rbac.authorization.k8s.io","name":"` + user + `"}]}`
	}
	s := tell(t, true)
	s.during("12:00:01", "12:00:02", "create", "/apis/rbac.authorization.k8s.io/v1/clusterroles", 201,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"reader"},"rules":[{"verbs":["get"],`+
			`"apiGroups":[""],"resources":["secrets"]}]}`, "")
	s.during("12:00:03", "12:00:04", "create", uri, 201, "", binding("11", "ann"))
	s.during("12:00:10", "12:00:11", "delete", uri+"/p", 504, "{}", "")
	s.during("12:00:20", "12:00:21", "patch", uri+"/p", 504,
		`{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"bob"}]}`, "")
	s.during("12:01:00", "12:01:01", "create", uri, 201, "", binding("12", "eve"))
	for at, want := range map[string]string{"12:00:05": "ann", "12:00:15": "ann?", "12:00:30": "ann? bob?", "12:01:30": "eve"} {
		v := s.RBAC(clock(t, at))
		if got := perhaps(&v, "ann", "bob", "eve"); got != want || len(v.Unknown) > 0 {
			t.Errorf("at %s %q may get secrets, want %q; without bounds: %v", at, got, want, v.Unknown)
		}
	}
}
