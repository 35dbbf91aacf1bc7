package leastpriv

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// boundBy returns the bindings of a policy by the users, and by the groups, that they name, each in order.
func boundBy(policy *rbacindex.Snapshot) (users, groups map[string][]rbacindex.Key) {
	users, groups = map[string][]rbacindex.Key{}, map[string][]rbacindex.Key{}
	policy.All(func(k rbacindex.Key, o any) bool {
		subjects, _, ok := rbacindex.BindingOf(o)
		if !ok {
			return true
		}
		for i := range subjects {
			into, name := users, rbacindex.UserOf(&subjects[i], k.Namespace)
			if subjects[i].Kind == rbacv1.GroupKind {
				into, name = groups, subjects[i].Name
			}
			if name != "" && !slices.Contains(into[name], k) {
				into[name] = append(into[name], k)
			}
		}
		return true
	})
	for _, by := range []map[string][]rbacindex.Key{users, groups} {
		for _, keys := range by {
			slices.SortFunc(keys, rbacindex.Key.Compare)
		}
	}
	return users, groups
}

// anyOf names subjects by the users they are in the bindings of a namespace.
func anyOf(users map[string]bool, namespace string) func(*rbacv1.Subject) bool {
	return func(s *rbacv1.Subject) bool { return users[rbacindex.UserOf(s, namespace)] }
}

// parted takes subjects out of a binding. It returns who was taken out, and the binding of the others,
// nil if there are none.
func parted(o any, goes func(*rbacv1.Subject) bool) (went []rbacv1.Subject, rest any) {
	subjects, _, _ := rbacindex.BindingOf(o)
	var stay []rbacv1.Subject
	for i := range subjects {
		if goes(&subjects[i]) {
			went = append(went, subjects[i])
		} else {
			stay = append(stay, subjects[i])
		}
	}
	if len(stay) == 0 {
		return went, nil
	}
	switch b := o.(type) {
	case *rbacv1.RoleBinding:
		c := b.DeepCopy()
		c.Subjects = stay
		return went, c
	case *rbacv1.ClusterRoleBinding:
		c := b.DeepCopy()
		c.Subjects = stay
		return went, c
	}
	return went, nil
}

// bindsUser reports whether a binding of a policy names a user.
func bindsUser(policy *rbacindex.Snapshot, k rbacindex.Key, user string) bool {
	o, _ := policy.Get(k)
	subjects, _, _ := rbacindex.BindingOf(o)
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return rbacindex.UserOf(&s, k.Namespace) == user })
}
