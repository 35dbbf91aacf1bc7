package state

import (
	"crypto/rand"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// A role or binding whose rules or subjects were cut out of its event, because it was too large, has
// at least those that are left, and a binding the role it names. What it has beside them bounds
// every answer like the two contents of an object in doubt: at the most it is anything, to anybody.

// GroupAnybody is a group of View.Most alone: whoever is asked about there is taken to be in it. A
// binding names it where its subjects are not known. Nobody can guess its name and bind it.
var GroupAnybody = "retrial.io:anybody:" + rand.Text()

// anything are the rules of a role that may have any.
var anything = []rbacv1.PolicyRule{
	{Verbs: []string{rbacv1.VerbAll}, APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}},
	{Verbs: []string{rbacv1.VerbAll}, NonResourceURLs: []string{rbacv1.NonResourceAll}},
}

// anybody are the subjects of a binding that may have any.
var anybody = []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: GroupAnybody}}

// PartRecorded is what is said of an object that holds more than is known.
const PartRecorded = "not all that it holds was recorded"

// IsPart tells whether an object is doubted because it holds more than is known.
func (v *View) IsPart(k rbacindex.Key) bool {
	_, found := slices.BinarySearchFunc(v.parts, k, compareKeys)
	return found
}

// bounds returns what an object of this content grants at least and at the most.
func (c *content) bounds() bounds {
	if c == nil || !c.cut {
		return between(c, c)
	}
	return between(c, c.widened())
}

// widened returns the content with whatever may have been cut out of it.
func (c *content) widened() *content {
	d := *c
	d.cut, d.digest = true, ^c.digest
	subjects, _, _ := c.binding()
	d.object = granting(c.object, slices.Concat(rulesOf(c), anything), slices.Concat(subjects, anybody))
	return &d
}

// outlined returns a content of which an outline is left.
func (c *content) outlined() *content {
	d := *c
	d.size, d.cut = 0, true
	switch o := d.object.(type) {
	case *patch:
		d.cut = false
		p := &patch{any: true, other: true, blind: o.blind}
		if o.made != nil {
			p.made = o.made.outlined()
		}
		d.object = p
	case *rbacv1.ClusterRole:
		r := *o
		r.Rules, r.AggregationRule = nil, nil
		d.object = &r
	default:
		d.object = granting(d.object, nil, nil)
	}
	return &d
}

// ofRoleAlone returns the bounds of a binding after a write nobody knows the content of: its role is as
// before, its subjects are not known. They are empty for a role.
func (s *step) ofRoleAlone() bounds {
	before := s.between()
	if _, _, ok := before.most.binding(); !ok {
		return bounds{}
	}
	b := bounds{most: before.most.each((*content).everything)}
	if b.most.or == nil {
		b.there = withList(before.most, nil)
		b.there.cut = true
	}
	if !s.isEnding() {
		b.least = b.there
	}
	return b
}

// bound gives the steps of objects that are known in part their bounds.
func bound(steps []step) {
	for i := range steps {
		if s := &steps[i]; s.phase == phasePresent && s.content != nil && s.content.cut {
			s.bounds = s.content.bounds()
			s.phase, s.content, s.ending = phaseUnknown, nil, s.isEnding()
		}
	}
}
