package state_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
)

func TestEffects(t *testing.T) {
	base := func() *state.State {
		s := state.New("c")
		sc := parseScript(t, strings.Join([]string{
			"state 12:00:00 12:00:01",
			"write 12:00:10 12:00:10.5 create clusterroles.rbac.authorization.k8s.io view uid=r1 rv=9 created=12:00:10",
			"write 12:00:10 12:00:10.5 create rolebindings.rbac.authorization.k8s.io a/b uid=u1 rv=10 created=12:00:10 user=alice",
			"write 12:00:30 12:00:30.5 update rolebindings.rbac.authorization.k8s.io a/b uid=u1 rv=30 created=12:00:10 user=carol",
			"write 12:00:40 12:00:40.5 create clusterrolebindings.rbac.authorization.k8s.io c uid=u2 rv=40 created=12:00:40 user=dave",
		}, "\n"))
		s.Apply(sc.observations...)
		return s
	}
	for _, tc := range []struct {
		name          string
		write         []string // received, done, verb, resource, name, words…
		from, to      string   // "" is open
		users         []string
		all           bool
		namespaces    []string // nil is all of them
		before, after string   // first subject of a binding, "" when absent or unknown
	}{
		{
			name: "a late update is in force until the next version",
			write: []string{"12:00:20", "12:00:20.5", "update", kept.RoleBindings, "a/b", "uid=u1", "rv=20", "created=12:00:10",
				"user=bob"},
			from: "12:00:20", to: "12:00:30.5", users: []string{"alice", "bob"}, namespaces: []string{"a"}, before: "alice", after: "bob",
		},
		{
			name:  "a new deletion holds until now",
			write: []string{"12:00:50", "12:00:50.5", "delete", kept.RoleBindings, "a/b", "uid=u1"},
			from:  "12:00:50", users: []string{"carol"}, namespaces: []string{"a"}, before: "carol",
		},
		{
			name: "a role concerns the subjects of the bindings that name it",
			write: []string{"12:00:50", "12:00:50.5", "update", kept.ClusterRoles, "view", "uid=r1", "rv=50", "created=12:00:10",
				"verbs=list"},
			from: "12:00:50", users: []string{"alice", "carol", "dave"},
		},
		{
			name:  "unknown content of a binding concerns everybody in its namespace",
			write: []string{"12:00:50", "12:00:50.5", "patch", kept.RoleBindings, "a/b", "level=Metadata"},
			from:  "12:00:50", all: true, namespaces: []string{"a"}, before: "carol",
		},
		{
			name:  "a service account concerns itself, and who may make pods beside it",
			write: []string{"12:00:50", "12:00:50.5", "create", kept.ServiceAccounts, "a/sa", "uid=s1", "rv=50", "created=12:00:50"},
			from:  "12:00:50", users: []string{"system:serviceaccount:a:sa"},
		},
		{
			name:  "a namespace concerns everybody in it",
			write: []string{"12:00:50", "12:00:50.5", "create", kept.Namespaces, "n", "uid=n1", "rv=50", "created=12:00:50"},
			from:  "12:00:50", all: true, namespaces: []string{"n"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := base()
			revision := s.Revision()
			w := tc.write
			effects := s.Apply(auditWrite(t, w[0], w[1], w[2], w[3], w[4], w[5:])...)
			if w[3] == kept.ServiceAccounts {
				if n := len(effects); n != 2 || !effects[1].Subjects().All || !slices.Equal(effects[1].Subjects().Namespaces,
					[]string{"a"}) {
					t.Fatalf("effects %+v", effects)
				}
				effects = effects[:1]
			}
			if len(effects) != 1 {
				t.Fatalf("%d effects, want one: %+v", len(effects), effects)
			}
			if s.Revision() != revision+1 {
				t.Errorf("revision %d, want %d", s.Revision(), revision+1)
			}
			e := effects[0]
			if !e.From.Equal(clock(t, tc.from)) {
				t.Errorf("from %s, want %s", e.From, tc.from)
			}
			if tc.to == "" != e.To.IsZero() || tc.to != "" && !e.To.Equal(clock(t, tc.to)) {
				t.Errorf("to %s, want %q", e.To, tc.to)
			}
			sub := e.Subjects()
			if !slices.Equal(sub.Users, tc.users) || sub.All != tc.all || len(sub.Groups) != 0 {
				t.Errorf("subjects %+v, want users %q, all %v", sub, tc.users, tc.all)
			}
			if !slices.Equal(sub.Namespaces, tc.namespaces) || sub.AllNamespaces != (tc.namespaces == nil) {
				t.Errorf("namespaces %q all %v, want %q", sub.Namespaces, sub.AllNamespaces, tc.namespaces)
			}
			if b, a := subject(e.Before), subject(e.After); b != tc.before || a != tc.after {
				t.Errorf("before %q after %q, want %q and %q", b, a, tc.before, tc.after)
			}
		})
	}
}

func subject(obj any) string {
	if b, ok := obj.(*rbacv1.RoleBinding); ok {
		return b.Subjects[0].Name
	}
	return ""
}
