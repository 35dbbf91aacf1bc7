package content

import (
	"crypto/rand"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// A role or binding whose rules or subjects were cut out of its event, because it was too large, has at least those that are left, and a
// binding the role it names. What it may have beside them bounds every answer like the two contents of an object in doubt: at most it
// grants anything to anybody.

// GroupAnybody is a group in View.Most only, whose members are all subjects asked about there. A binding with unknown subjects names it.
// Nobody can guess its name and bind it.
var GroupAnybody = "retrial.io:anybody:" + rand.Text()

// anything has the rules of a role that may have any.
var anything = []rbacv1.PolicyRule{
	{Verbs: []string{rbacv1.VerbAll}, APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}},
	{Verbs: []string{rbacv1.VerbAll}, NonResourceURLs: []string{rbacv1.NonResourceAll}},
}

// anybody has the subjects of a binding that may have any.
var anybody = []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: GroupAnybody}}

// Bounds returns what an object of this content grants at least and at most.
func (c *Content) Bounds() Bounds {
	if c == nil || !c.Cut {
		return between(c, c)
	}
	return between(c, c.widened())
}

// widened returns the content with whatever may have been cut out of it.
func (c *Content) widened() *Content {
	d := *c
	d.Cut, d.Digest = true, ^c.Digest
	subjects, _, _ := c.Binding()
	d.Object = granting(c.Object, slices.Concat(rulesOf(c), anything), slices.Concat(subjects, anybody))
	return &d
}

// Outlined returns the outline of a content.
func (c *Content) Outlined() *Content {
	d := *c
	d.size, d.Cut = 0, true
	switch o := d.Object.(type) {
	case *patch:
		d.Cut = false
		p := &patch{any: true, other: true, Blind: o.Blind}
		if o.Made != nil {
			p.Made = o.Made.Outlined()
		}
		d.Object = p
	case *rbacv1.ClusterRole:
		r := *o
		r.Rules, r.AggregationRule = nil, nil
		d.Object = &r
	default:
		d.Object = granting(d.Object, nil, nil)
	}
	return &d
}
