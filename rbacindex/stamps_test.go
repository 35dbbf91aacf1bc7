package rbacindex

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func stampRole(name, verb string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{Verbs: []string{verb},
		APIGroups: []string{""}, Resources: []string{"pods"}}}}
}

func stampBinding(ns, name, role string, subjects ...rbacv1.Subject) any {
	ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: role}
	if ns == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref, Subjects: subjects}
	}
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, RoleRef: ref, Subjects: subjects}
}

// TestWhatStaysKnown tells for kinds of changes whose entries are still good after them: the
// very same entry, one taken over with its namespaces, or none.
func TestWhatStaysKnown(t *testing.T) {
	user := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "User", Name: name} }
	group := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "Group", Name: name} }
	objects := []any{
		stampRole("few", "get"), stampRole("many", "get"), stampRole("devs", "get"), stampRole("spaced", "get"),
		stampBinding("", "alice", "few", user("alice")),
		stampBinding("", "devs", "devs", group("devs")),
		stampBinding("ns", "carol", "spaced", user("carol"), group("carols")),
	}
	for i := range fewUsers + 1 {
		objects = append(objects, stampBinding("", fmt.Sprint("many-", i), "many", user(fmt.Sprint("many-", i))))
	}
	type who struct {
		user  string
		group string
	}
	alice, bob, dev, many, carol := who{user: "alice"}, who{user: "bob"}, who{"dave", "devs"}, who{user: "many-0"}, who{user: "carol"}
	for _, c := range []struct {
		name   string
		change Change
		cold   []who // all others stay known
		same   bool  // by the same entry
	}{
		{"binding of another user", Change{Key{KindClusterRoleBinding, "", "new"}, stampBinding("", "new", "few", user("zoe"))}, nil, true},
		{"binding of a user", Change{Key{KindClusterRoleBinding, "", "alice"}, nil}, []who{alice}, true},
		{"role of few", Change{Key{KindClusterRole, "", "few"}, stampRole("few", "list")}, []who{alice}, true},
		{"role that nobody binds", Change{Key{KindClusterRole, "", "lonely"}, stampRole("lonely", "list")}, nil, true},
		{"binding of a group", Change{Key{KindClusterRoleBinding, "", "devs"}, nil}, []who{dev}, false},
		{"role of a group", Change{Key{KindClusterRole, "", "devs"}, stampRole("devs", "list")}, []who{dev}, false},
		{"role of many", Change{Key{KindClusterRole, "", "many"}, nil}, []who{many}, false},
		{"role in a namespace", Change{Key{KindClusterRole, "", "spaced"}, nil}, []who{carol}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := New(objects...)
			if err != nil {
				t.Fatal(err)
			}
			sets := len(*s.family.cache.sets.Load()) - 1 // there may be more later
			ask := func(s *Snapshot, w who) *entry {
				var groups []string
				if w.group != "" {
					groups = []string{w.group}
				}
				return s.subject(w.user, groups)
			}
			all := []who{alice, bob, dev, many, carol}
			before := map[who]*entry{}
			for _, w := range all {
				before[w] = ask(s, w)
			}
			next, err := s.Apply(c.change)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range all {
				cold := false
				for _, x := range c.cold {
					cold = cold || x == w
				}
				e, o := ask(next, w), before[w]
				name := s.family.hasher.str(w.user)
				collides := false // two names in one bucket: then either may be worked out anew
				for _, x := range []string{"zoe", "alice"} {
					const mask = stampPages*stampPages - 1
					collides = collides || x != w.user && s.family.hasher.str(x)&mask == name&mask
				}
				switch {
				case cold && e.id == o.id:
					t.Errorf("%v: an answer that changed is still known", w)
				case collides:
				case !cold && e.id != o.id:
					t.Errorf("%v: is not known any more", w)
				case !cold && c.same && e != o:
					t.Errorf("%v: was taken over, but need not have been", w)
				}
				crowded := false // two share a set of the cache, which has room for either's versions, not for both's
				for _, x := range all {
					crowded = crowded || x != w && hashOf(s, x.user, x.group)&sets == hashOf(s, w.user, w.group)&sets
				}
				if again := ask(s, w); again.id != o.id && !crowded {
					t.Errorf("%v: the version before forgot it", w)
				}
			}
		})
	}
}

// hashOf returns the part of a subject's hash that selects the set of the cache.
func hashOf(s *Snapshot, user, group string) int {
	var groups []string
	if group != "" {
		groups = []string{group}
	}
	hash, _ := s.family.hasher.hashSubject(user, groups)
	return int(hash >> 32)
}

// TestTakingOverLooksBackSoFar asks after more changes than are looked back on.
func TestTakingOverLooksBackSoFar(t *testing.T) {
	for _, n := range []int{1, recentBroad, recentBroad + 1, 3 * recentBroad} {
		s, err := New(stampRole("r", "get"))
		if err != nil {
			t.Fatal(err)
		}
		was := s.subject("alice", []string{"x"})
		for i := range n {
			b := stampBinding("", "b", "r", rbacv1.Subject{Kind: "Group", Name: "devs"})
			c := Change{Key: Key{KindClusterRoleBinding, "", "b"}}
			if i%2 == 0 {
				c.Object = b
			}
			if s, err = s.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
		if known := s.subject("alice", []string{"x"}).id == was.id; known != (n <= recentBroad) {
			t.Errorf("after %d changes: known %t", n, known)
		}
	}
}
