package state

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// A write whose answer was lost, and a deletion nobody saw the end of, leave an object of the RBAC
// kinds in doubt between two contents that are known: what it was before, and what was asked for.
// RBAC only ever adds up, so that what holds in both and what holds in either bound every answer.

// bounds are what an object in doubt grants at least and at the most. A nil least grants nothing; a
// nil most is no bound. there is what it grants at least if it is there, nil where that is not known.
type bounds struct{ least, most, there *content }

// between returns the bounds of an object that is between two contents, and there.
func between(least, most *content) bounds { return bounds{least, most, least} }

// lost works out the bounds of a step whose write may have been done: made says that it could only
// make the object, and wanted, nil for its end, is what it would have become, or a patch of what it was.
// before is the step it follows; changed is false where the write changed nothing.
func lost(before *step, made bool, wanted *content) (b bounds, changed bool) {
	p := wanted.patch()
	switch {
	case before.phase == phasePresent && made, before.phase == phaseAbsent && wanted == nil:
		return b, false // there was one already, or none to end
	case before.phase == phaseAbsent && p != nil:
		return p.made.bounds().perhaps(), p.made != nil || p.blind // no patch but an applied configuration makes one
	case before.phase == phaseAbsent:
		return wanted.bounds().perhaps(), true
	}
	b = before.between()
	switch {
	case b.most == nil:
		return bounds{}, true
	case wanted == nil:
		return b.perhaps(), true
	case p == nil && b.least != nil && otherRole(b.least, wanted):
		return before.bounds, false // an apiserver refuses it
	case p == nil && before.phase == phasePresent && !before.isEnding() && wanted.sameMeaning(before.content):
		return before.bounds, false
	}
	var after bounds
	if p == nil {
		after = wanted.bounds()
	} else if now, is := p.bounds(b); is != nil && !before.isEnding() && is.sameMeaning(b.least) {
		return before.bounds, false
	} else {
		after = now
	}
	after = bounds{both(b.least, after.least), either(b.most, after.most), both(b.there, after.there)}
	if p != nil && b.least == nil && (p.made != nil || p.blind) { // there may have been none
		after.most, after.there = either(after.most, p.made.bounds().most), both(after.there, p.made.bounds().least)
	}
	return after, true
}

// lost works out a step whose write may have been done, and may end an object that is being deleted.
func (s *step) lost(before *step, ending bool) {
	s.mayEnd = before.phase == phaseUnknown && before.mayEnd || s.as&carryLate != 0 && (ending || s.content == nil)
	b, changed := lost(before, s.as&carryMade != 0, s.content)
	if !changed {
		at := s.span
		*s = *before
		s.span, s.as = at, carryNothing
		return
	}
	if s.content, s.bounds = nil, b; ending {
		s.least = nil // it may have taken away what held the object back
	}
}

// perhaps returns the bounds of an object that may not be there.
func (b bounds) perhaps() bounds { return bounds{nil, b.most, b.there} }

// between returns what is known of the content of a step.
func (s *step) between() bounds {
	if s.phase == phasePresent {
		return s.content.bounds()
	}
	return s.bounds
}

// patched works out a step whose content is a patch of what was before.
func (s *step) patched(before *step) {
	p := s.content.patch()
	b := before.between()
	ending := before.isEnding()
	s.phase, s.content, s.ending = phaseUnknown, nil, ending
	if before.phase == phaseAbsent || b.most == nil {
		return
	}
	after, is := p.bounds(b)
	switch {
	case ending:
		after.least = nil // it may have taken away the last that held the object back
	case is != nil:
		s.phase, s.content = phasePresent, is
		return
	}
	s.bounds = after
}

// kept works out a step that left what was in doubt as it was, and found it there.
func (s *step) kept(before *step) {
	s.phase, s.content, s.bounds = phaseUnknown, nil, before.bounds
	if s.mayEnd = before.mayEnd && s.nb < before.na+settleAfter; s.mayEnd {
		return
	}
	if s.least == nil {
		s.least = s.there
	}
	if s.least != nil && s.most.sameMeaning(s.least) {
		s.phase, s.content, s.bounds = phasePresent, s.most, bounds{}
	}
}

// otherRole tells whether two contents are of bindings to different roles, which no update leads from one to the other.
func otherRole(c, d *content) bool {
	_, a, ok := c.binding()
	_, b, also := d.binding()
	return ok && also && (a.Kind != b.Kind || a.Name != b.Name)
}

// maxDoubted bounds the rules and subjects of a content that is worked out, and maxDoubtedBytes what is
// read of them: clients choose how often they write. Beyond it an object has any at the most, and at least
// none.
const (
	maxDoubted      = 1 << 16
	maxDoubtedBytes = 1 << 20
)

// either returns a content that grants what either of two does; nil where one is not known.
func either(c, d *content) *content {
	if c == nil || d == nil {
		return nil
	}
	if _, _, ok := c.binding(); ok {
		return eitherBinding(c, d)
	}
	if c.isEverything() || d.isEverything() {
		return d.everything()
	}
	out := *d
	out.digest, out.cut = c.digest^d.digest, c.cut || d.cut
	rules, ok := join(rulesOf(c), rulesOf(d), ruleKey, true)
	if !ok {
		return out.everything()
	}
	out.object = granting(d.object, rules, nil)
	if a, is := c.object.(*rbacv1.ClusterRole); is {
		if o := out.object.(*rbacv1.ClusterRole); o.AggregationRule == nil {
			o.AggregationRule = a.AggregationRule
		}
	}
	return &out
}

// both returns a content that grants only what both of two do; nil where none grants just that.
func both(c, d *content) *content {
	if c == nil || d == nil {
		return nil
	}
	out := *d
	out.digest, out.cut, out.or = c.digest^d.digest, c.cut || d.cut, nil
	if subjects, ref, ok := d.binding(); ok {
		had, a, _ := c.binding()
		subjects, ok = join(had, subjects, subjectKey, false)
		if !ok || a != ref {
			return nil
		}
		out.object = granting(d.object, nil, subjects)
		return &out
	}
	rules, ok := join(rulesOf(c), rulesOf(d), ruleKey, false)
	if !ok {
		return nil
	}
	out.object = granting(d.object, rules, nil)
	if a, is := c.object.(*rbacv1.ClusterRole); is && a.AggregationRule == nil {
		out.object.(*rbacv1.ClusterRole).AggregationRule = nil
	}
	return &out
}

// join returns what is in either of two lists, or in both; ok is false where that is too much.
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
