package state

import (
	"reflect"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// A write whose answer was lost, and a deletion nobody saw the end of, leave an object of the RBAC
// kinds in doubt between two contents that are known: what it was before, and what was asked for.
// RBAC only ever adds up, so that what holds in both and what holds in either bound every answer.

// bounds are what an object in doubt grants at least and at the most. A nil least grants nothing; a
// nil most is no bound.
type bounds struct{ least, most *content }

// lost works out the bounds of a step whose write may have been done: made says that it could only
// make the object, and wanted, nil for its end, is what it would have become. before is the step it
// follows; changed is false where the write changed nothing.
func lost(before *step, made bool, wanted *content) (b bounds, changed bool) {
	switch {
	case before.phase == phasePresent && made, before.phase == phaseAbsent && wanted == nil:
		return b, false // there was one already, or none to end
	case before.phase == phaseAbsent:
		return bounds{most: wanted.bounds().most}, true
	case before.phase == phasePresent:
		b = before.content.bounds()
	default:
		b = before.bounds
	}
	switch {
	case b.most == nil:
		return bounds{}, true
	case wanted == nil:
		return bounds{most: b.most}, true
	}
	w := wanted.bounds()
	return bounds{combine(b.least, w.least, false), combine(b.most, w.most, true)}, true
}

// maxDoubted bounds the rules and subjects of a content that is worked out: clients choose how often
// they write.
const maxDoubted = 1 << 16

// combine returns a content that grants what either of two does, or only what both do; nil where
// none grants just that.
func combine(c, d *content, either bool) *content {
	if c == nil || d == nil {
		return nil
	}
	out, ok := *d, false
	out.digest = c.digest ^ d.digest
	switch a := c.object.(type) {
	case *rbacv1.Role:
		if b, is := d.object.(*rbacv1.Role); is {
			o := *b
			o.Rules, ok = join(a.Rules, b.Rules, ruleKey, either)
			out.object = &o
		}
	case *rbacv1.ClusterRole:
		if b, is := d.object.(*rbacv1.ClusterRole); is && reflect.DeepEqual(a.AggregationRule, b.AggregationRule) {
			o := *b
			o.Rules, ok = join(a.Rules, b.Rules, ruleKey, either)
			out.object = &o
		}
	case *rbacv1.RoleBinding:
		if b, is := d.object.(*rbacv1.RoleBinding); is && a.RoleRef == b.RoleRef {
			o := *b
			o.Subjects, ok = join(a.Subjects, b.Subjects, subjectKey, either)
			out.object = &o
		}
	case *rbacv1.ClusterRoleBinding:
		if b, is := d.object.(*rbacv1.ClusterRoleBinding); is && a.RoleRef == b.RoleRef {
			o := *b
			o.Subjects, ok = join(a.Subjects, b.Subjects, subjectKey, either)
			out.object = &o
		}
	}
	if !ok {
		return nil
	}
	return &out
}

// join returns what is in either of two lists, or in both; ok is false where that is too much.
func join[T any](a, b []T, key func(*T) string, either bool) (out []T, ok bool) {
	if len(a)+len(b) > maxDoubted {
		return nil, false
	}
	seen := make(map[string]bool, len(a))
	for i := range a {
		seen[key(&a[i])] = true
	}
	if either {
		out = append(out, a...)
	}
	for i := range b {
		if seen[key(&b[i])] != either {
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
