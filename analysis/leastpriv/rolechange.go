package leastpriv

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// roleChange is what edits come to, as objects.
type roleChange struct {
	write    Objects // roles and bindings, each role before what binds it
	remove   []Remove
	rollback Objects
	added    []Added
	reasons  keptOf
}

// copied is what holders get in place of what they hold of a role, or of several.
type copied struct {
	from     []string // names of the roles
	rules    []rbacv1.PolicyRule
	reasons  map[pair]string                    // of verbs that nobody used
	audience map[string]map[rbacv1.Subject]bool // by scope
}

// take enters a change of roles.
func (s *Suggestion) take(c *roleChange) {
	s.Apply, s.Remove, s.Rollback = append(s.Apply, c.write...), append(s.Remove, c.remove...), append(s.Rollback, c.rollback...)
	s.Added, s.reasons = append(s.Added, c.added...), c.reasons
}

// changeOf writes edits as objects.
func (a *Advisor) changeOf(edits []roleEdit) *roleChange {
	c := &roleChange{reasons: keptOf{}}
	leaving := map[rbacindex.Key][]*holder{}
	leave := func(h *holder) {
		for _, k := range h.bindings {
			leaving[k] = append(leaving[k], h)
		}
	}
	var copies []copied
	for i := range edits {
		e := &edits[i]
		for _, h := range e.leave {
			leave(h)
		}
		role, _ := a.view.RBAC.Get(e.role)
		edited := false
		for n := range e.shares {
			s := &e.shares[n]
			c.added = append(c.added, s.part.reasons(e.role.String())...)
			switch {
			case s.complete:
				edited = true
			case e.inPlace && !edited:
				edited = true
				c.reasons.add(e.role, s.part.why())
				c.write = append(c.write, a.restored(e.role, ruled(role, s.part.narrowed())))
				c.rollback = append(c.rollback, a.restored(e.role, role))
			default:
				copies = append(copies, a.copyOf(e.role, s))
				for _, h := range s.holders {
					leave(h)
				}
			}
		}
		if e.inPlace && !edited {
			c.remove = append(c.remove, Remove{Kind: e.role.Kind.String(), Namespace: e.role.Namespace, Name: e.role.Name,
				Action: ActionDelete, Subjects: []rbacv1.Subject{}, key: e.role})
			c.rollback = append(c.rollback, a.restored(e.role, role))
		}
	}
	c.write = append(c.write, a.written(copies, c.reasons)...)
	var bindings []Remove
	for _, k := range slices.SortedFunc(maps.Keys(leaving), rbacindex.Key.Compare) {
		o, _ := a.view.RBAC.Get(k)
		bindings = append(bindings, a.removal(k, o, func(s *rbacv1.Subject) bool {
			return slices.ContainsFunc(leaving[k], func(h *holder) bool { return h.is(s, k.Namespace) })
		}))
		c.rollback = append(c.rollback, a.restored(k, o))
	}
	c.remove = append(bindings, c.remove...) // roles last: nothing names them any more
	return c
}

// changes returns the writes of a change.
func (c *roleChange) changes() []rbacindex.Change {
	out := make([]rbacindex.Change, 0, len(c.write)+len(c.remove))
	for i := range c.remove {
		out = append(out, rbacindex.Change{Key: c.remove[i].key, Object: c.remove[i].Object})
	}
	for _, o := range c.write {
		out = append(out, change(o))
	}
	return out
}

// copyOf returns what the holders of a share get in place of a role. Where a subject has it everywhere, its other bindings are not needed.
func (a *Advisor) copyOf(role rbacindex.Key, s *share) copied {
	c := copied{from: []string{role.Name}, rules: s.part.narrowed(), reasons: s.part.why(),
		audience: map[string]map[rbacv1.Subject]bool{}}
	for _, k := range s.bindings() { // those of the cluster come first
		b, _ := a.view.RBAC.Get(k)
		subjects, _, _ := rbacindex.BindingOf(b)
		for _, of := range subjects {
			if !slices.ContainsFunc(s.holders, func(h *holder) bool { return h.is(&of, k.Namespace) }) {
				continue
			}
			if of.Kind == rbacv1.ServiceAccountKind {
				of.Namespace = cmp.Or(of.Namespace, k.Namespace)
			}
			if c.audience[""][of] {
				continue
			}
			if c.audience[k.Namespace] == nil {
				c.audience[k.Namespace] = map[rbacv1.Subject]bool{}
			}
			c.audience[k.Namespace][of] = true
		}
	}
	return c
}

// written writes copies as objects: what the same subjects get in the same places is one role, and equal rules are one role.
func (a *Advisor) written(copies []copied, reasons keptOf) (out Objects) {
	copies = joinEqual(copies, (*copied).audienceText, func(into, c *copied) {
		into.take(c)
		into.rules = mergedRules(slices.Concat(into.rules, c.rules))
	})
	copies = joinEqual(copies, func(c *copied) string { return fmt.Sprintf("%q", c.effective()) }, func(into, c *copied) {
		into.take(c)
		for scope, subjects := range c.audience {
			if into.audience[scope] == nil {
				into.audience[scope] = map[rbacv1.Subject]bool{}
			}
			maps.Copy(into.audience[scope], subjects)
		}
	})
	taken := map[rbacindex.Key]bool{}
	for i := range copies {
		for salt := 0; ; salt++ {
			objects := copies[i].objects(salt)
			if !a.free(objects) || slices.ContainsFunc(objects, func(o Object) bool { return taken[change(o).Key] }) {
				continue
			}
			for _, o := range objects {
				taken[change(o).Key] = true
			}
			reasons.add(change(objects[0]).Key, copies[i].reasons) // the role is the first
			out = append(out, objects...)
			break
		}
	}
	return out
}

// take adds the names of the roles that another copy is of, and its reasons.
func (c *copied) take(of *copied) {
	maps.Copy(c.reasons, of.reasons)
	for _, name := range of.from {
		if !slices.Contains(c.from, name) {
			c.from = append(c.from, name)
		}
	}
}

// audienceText is equal for copies that the same subjects get in the same places.
func (c *copied) audienceText() string {
	var b strings.Builder
	for _, scope := range slices.Sorted(maps.Keys(c.audience)) {
		fmt.Fprintf(&b, "%q %q\n", scope, c.subjects(scope))
	}
	return b.String()
}

func (c *copied) subjects(scope string) []rbacv1.Subject {
	return slices.SortedFunc(maps.Keys(c.audience[scope]), func(x, y rbacv1.Subject) int {
		return cmp.Or(strings.Compare(x.Kind, y.Kind), strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
}

// effective returns the rules that mean something where the copy is bound: no URL is in a namespace.
func (c *copied) effective() []rbacv1.PolicyRule {
	if c.audience[""] != nil {
		return c.rules
	}
	return slices.DeleteFunc(slices.Clone(c.rules), func(r rbacv1.PolicyRule) bool { return len(r.NonResourceURLs) > 0 })
}

// objects returns the role and its bindings. One that holds in a single namespace is a Role there.
func (c *copied) objects(salt int) Objects {
	scopes := slices.Sorted(maps.Keys(c.audience))
	users := map[string]bool{}
	for _, scope := range scopes {
		for s := range c.audience[scope] {
			users[cmp.Or(rbacindex.UserOf(&s, scope), s.Name)] = true
		}
	}
	name := objectName(strings.Join(c.from, "+")+"\x00"+strings.Join(slices.Sorted(maps.Keys(users)), "\x00"), salt)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	var role Object = &rbacv1.ClusterRole{ObjectMeta: own(name, ""), Rules: c.effective()}
	if len(scopes) == 1 && scopes[0] != "" {
		ref.Kind = "Role"
		role = &rbacv1.Role{ObjectMeta: own(name, scopes[0]), Rules: c.effective()}
	}
	out := Objects{typed(role)}
	for _, scope := range scopes {
		if scope == "" {
			out = append(out, typed(&rbacv1.ClusterRoleBinding{ObjectMeta: own(name, ""), Subjects: c.subjects(scope), RoleRef: ref}))
			continue
		}
		out = append(out, typed(&rbacv1.RoleBinding{ObjectMeta: own(name, scope), Subjects: c.subjects(scope), RoleRef: ref}))
	}
	return out
}

// own is the metadata of an object that a suggestion makes.
func own(name, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{Label: Manager}}
}

// mergedRules writes rules without wildcards as few rules: each is a full product of what they grant.
func mergedRules(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var set ruleSet
	for i := range rules {
		pairs, r := set.of(rules[i].ResourceNames), rules[i]
		r.ResourceNames = nil
		for _, a := range atomsOf(&r) {
			pairs[a.pair()] = true
		}
	}
	return set.rules()
}

// ruled returns a copy of a role with other rules.
func ruled(role any, rules []rbacv1.PolicyRule) Object {
	if r, ok := role.(*rbacv1.Role); ok {
		c := r.DeepCopy()
		c.Rules = rules
		return c
	}
	c := role.(*rbacv1.ClusterRole).DeepCopy()
	c.Rules = rules
	return c
}
