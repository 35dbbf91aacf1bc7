package content

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Bounds is what an object in doubt grants at least and at most. A nil Least grants nothing, a nil Most bounds nothing. There is what it
// grants at least if it exists, nil if that is not known.
type Bounds struct{ Least, Most, There *Content }

// between returns the bounds of an existing object that is between two contents.
func between(least, most *Content) Bounds { return Bounds{least, most, least} }

// Perhaps returns the bounds of an object that may not exist.
func (b Bounds) Perhaps() Bounds { return Bounds{nil, b.Most, b.There} }

// OtherRole reports whether two contents are of bindings to different roles, between which no update leads.
func OtherRole(c, d *Content) bool {
	_, a, ok := c.Binding()
	_, b, also := d.Binding()
	return ok && also && (a.Kind != b.Kind || a.Name != b.Name)
}

// maxDoubted bounds the rules and subjects of a derived content, and maxDoubtedBytes what is read of them: clients choose how often they
// write. Beyond it an object has any at most, and at least none.
const (
	maxDoubted      = 1 << 16
	maxDoubtedBytes = 1 << 20
)

// Either returns a content that grants what either of two does, nil if one is not known.
func Either(c, d *Content) *Content {
	if c == nil || d == nil {
		return nil
	}
	if _, _, ok := c.Binding(); ok {
		return eitherBinding(c, d)
	}
	if c.isEverything() || d.isEverything() {
		return d.Everything()
	}
	out := *d
	out.Digest, out.Cut = c.Digest^d.Digest, c.Cut || d.Cut
	rules, ok := join(rulesOf(c), rulesOf(d), ruleKey, true)
	if !ok {
		return out.Everything()
	}
	out.Object = granting(d.Object, rules, nil)
	if a, is := c.Object.(*rbacv1.ClusterRole); is {
		if o := out.Object.(*rbacv1.ClusterRole); o.AggregationRule == nil {
			o.AggregationRule = a.AggregationRule
		}
	}
	return &out
}

// Both returns a content that grants only what both of two do, nil if none grants just that.
func Both(c, d *Content) *Content {
	if c == nil || d == nil {
		return nil
	}
	out := *d
	out.Digest, out.Cut, out.Or = c.Digest^d.Digest, c.Cut || d.Cut, nil
	if subjects, ref, ok := d.Binding(); ok {
		had, a, _ := c.Binding()
		subjects, ok = join(had, subjects, subjectKey, false)
		if !ok || a != ref {
			return nil
		}
		out.Object = granting(d.Object, nil, subjects)
		return &out
	}
	rules, ok := join(rulesOf(c), rulesOf(d), ruleKey, false)
	if !ok {
		return nil
	}
	out.Object = granting(d.Object, rules, nil)
	if a, is := c.Object.(*rbacv1.ClusterRole); is && a.AggregationRule == nil {
		out.Object.(*rbacv1.ClusterRole).AggregationRule = nil
	}
	return &out
}

// join returns what is in either of two lists, or in both; ok is false if that is too much.
func join[T any](a, b []T, key func(*T) string, either bool) ([]T, bool) {
	if len(a)+len(b) > maxDoubted {
		return nil, false
	}
	if !either && (len(a) == 0 || len(b) == 0) {
		return []T{}, true
	}
	out, seen, bytes := []T{}, make(map[string]bool, len(a)), 0
	for i := range a {
		k := key(&a[i])
		if bytes += len(k); bytes > maxDoubtedBytes {
			return nil, false
		}
		seen[k] = true
	}
	if either {
		out = append(out, a...)
	}
	for i := range b {
		k := key(&b[i])
		if bytes += len(k); bytes > maxDoubtedBytes {
			return nil, false
		}
		if seen[k] != either {
			out = append(out, b[i])
		}
	}
	return out, true
}

func subjectKey(s *rbacv1.Subject) string {
	return s.Kind + "\x00" + s.APIGroup + "\x00" + s.Namespace + "\x00" + s.Name
}

func ruleKey(r *rbacv1.PolicyRule) string {
	var b strings.Builder
	for _, list := range [][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs} {
		for _, s := range list {
			b.WriteString(s + "\x00")
		}
		b.WriteByte(1)
	}
	return b.String()
}
