// Package content holds what a version of a kept object says, reduced to what answers need, and derives what a partly known object may
// hold: between two contents, after a patch, with a part cut out of it, one of several bindings.
//
// RBAC rules only add up, so what holds in every case and what holds in any bound every answer; both are contents, too ([Bounds]). Contents
// are immutable and share their strings ([Interner]).
//
// The package is pure: no I/O of its own, no clock, no logging.
package content

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/cespare/xxhash/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// Content is what one version of an object says, reduced to what views need. It is immutable; a nil *content means unknown content.
type Content struct {
	// object is *rbacv1.Role, *rbacv1.ClusterRole, *rbacv1.RoleBinding or
	// *rbacv1.ClusterRoleBinding; *Secret, *graph.Content of volumes, attachments and slices,
	// *facts of signing requests; nil for other resources. Metadata is cut to name
	// and namespace: one index entry may stand for several versions of the same meaning.
	Object   any
	Created  int64  // unix nanoseconds, noTime when absent
	Deletion int64  // deletionTimestamp, noTime when absent
	Deleting bool   // deletionTimestamp is set
	Cut      bool   // rules or subjects of it were cut out: it has at least those of object
	Digest   uint64 // of the JSON it was read from
	size     int32  // of that JSON, RBAC objects only
	// Or is what a binding in doubt may be instead, with another role; see alternatives.go.
	Or *Content
}

// With returns the content with the metadata of m; a nil m changes nothing.
func (c *Content) With(m *Content) *Content {
	if m == nil || m.Deleting == c.Deleting {
		return c
	}
	d := *c
	d.Deleting, d.Deletion, d.Digest = m.Deleting, m.Deletion, c.Digest^m.Digest
	return &d
}

// SameMeaning reports whether two versions mean the same to every view: changes of labels, annotations or managed fields do not count.
func (c *Content) SameMeaning(d *Content) bool {
	if c == d {
		return true
	}
	if c == nil || d == nil || c.Deleting != d.Deleting || c.Cut != d.Cut || !c.Or.SameMeaning(d.Or) {
		return false
	}
	switch a := c.Object.(type) {
	case *kept.Secret, *kept.Facts:
		return reflect.DeepEqual(a, d.Object)
	case *graph.Content:
		b, ok := d.Object.(*graph.Content)
		return ok && *a == *b
	case *rbacv1.Role:
		b, ok := d.Object.(*rbacv1.Role)
		return ok && reflect.DeepEqual(a.Rules, b.Rules)
	case *rbacv1.ClusterRole:
		b, ok := d.Object.(*rbacv1.ClusterRole)
		return ok && reflect.DeepEqual(a.Rules, b.Rules) && reflect.DeepEqual(a.AggregationRule, b.AggregationRule)
	case *rbacv1.RoleBinding:
		b, ok := d.Object.(*rbacv1.RoleBinding)
		return ok && a.RoleRef == b.RoleRef && reflect.DeepEqual(a.Subjects, b.Subjects)
	case *rbacv1.ClusterRoleBinding:
		b, ok := d.Object.(*rbacv1.ClusterRoleBinding)
		return ok && a.RoleRef == b.RoleRef && reflect.DeepEqual(a.Subjects, b.Subjects)
	}
	return d.Object == nil
}

// Binding returns the subjects and the role reference of a binding; ok is false for other contents.
func (c *Content) Binding() (subjects []rbacv1.Subject, ref rbacv1.RoleRef, ok bool) {
	if c == nil {
		return nil, rbacv1.RoleRef{}, false
	}
	switch b := c.Object.(type) {
	case *rbacv1.RoleBinding:
		return b.Subjects, b.RoleRef, true
	case *rbacv1.ClusterRoleBinding:
		return b.Subjects, b.RoleRef, true
	}
	return nil, rbacv1.RoleRef{}, false
}

// granting returns a copy of a role with other rules, or of a binding with other subjects.
func granting(object any, rules []rbacv1.PolicyRule, subjects []rbacv1.Subject) any {
	switch o := object.(type) {
	case *rbacv1.Role:
		x := *o
		x.Rules = rules
		return &x
	case *rbacv1.ClusterRole:
		x := *o
		x.Rules = rules
		return &x
	case *rbacv1.RoleBinding:
		x := *o
		x.Subjects = subjects
		return &x
	case *rbacv1.ClusterRoleBinding:
		x := *o
		x.Subjects = subjects
		return &x
	}
	return object
}

// rbacObject is what is read of an object of one of the RBAC kinds.
type rbacObject struct {
	Metadata kept.Meta           `json:"metadata"`
	Rules    []rbacv1.PolicyRule `json:"rules"`
	Subjects []rbacv1.Subject    `json:"subjects"`
	RoleRef  rbacv1.RoleRef      `json:"roleRef"`
	// AggregationRule means nothing to an authorizer, but writing such a role takes more.
	AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
	// Cut says that rules or subjects were cut out of the object; see event.KeepBodies.
	Cut bool `json:"cut"`
}

// read reads the JSON of an object.
func (in *Interner) read(res kept.Resource, raw []byte) (o rbacObject, err error) {
	q := reader{jsontext.NewPlain(raw), in}
	if res.RBACKind() != 0 {
		if q.rbac(&o) {
			return o, nil
		}
		o = rbacObject{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &o); err != nil { // as apiservers read it
			return rbacObject{}, err
		}
		in.rules(o.Rules)
		return o, nil
	}
	if kept.ReadTimesAlone(&q.Plain, &o.Metadata) {
		return o, nil
	}
	var h kept.Head
	if err := json.Unmarshal(raw, &h); err != nil {
		return rbacObject{}, err
	}
	return rbacObject{Metadata: h.Metadata}, nil
}

// Parse reads an object of a kept resource. Names come from the observation, as the items of a list need not repeat what the list says.
func (in *Interner) Parse(res kept.Resource, key kept.Key, raw []byte) (*Content, error) {
	if res.Reduces() {
		c, err := in.parseReduced(res, raw)
		if err != nil {
			return nil, fmt.Errorf("parse %s %s: %w", res, key, err)
		}
		return c, nil
	}
	o, err := in.read(res, raw)
	if err != nil {
		return nil, fmt.Errorf("parse %s %s: %w", res, key, err)
	}
	c := &Content{Created: instant.Of(o.Metadata.Created()), Deletion: instant.Of(o.Metadata.Deletion()),
		Deleting: o.Metadata.DeletionTimestamp != "", Cut: o.Cut, Digest: xxhash.Sum64(raw), size: int32(len(raw))}
	om := metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}
	for i := range o.Subjects {
		s := &o.Subjects[i]
		s.Kind, s.APIGroup, s.Name, s.Namespace = in.Str(s.Kind), in.Str(s.APIGroup), in.Str(s.Name), in.Str(s.Namespace)
	}
	ref := rbacv1.RoleRef{APIGroup: in.Str(o.RoleRef.APIGroup), Kind: in.Str(o.RoleRef.Kind), Name: in.Str(o.RoleRef.Name)}
	switch res {
	case kept.ResRole:
		c.Object = &rbacv1.Role{ObjectMeta: om, Rules: o.Rules}
	case kept.ResClusterRole:
		c.Object = &rbacv1.ClusterRole{ObjectMeta: om, Rules: o.Rules, AggregationRule: o.AggregationRule}
	case kept.ResRoleBinding:
		c.Object = &rbacv1.RoleBinding{ObjectMeta: om, Subjects: o.Subjects, RoleRef: ref}
	case kept.ResClusterRoleBinding:
		c.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: om, Subjects: o.Subjects, RoleRef: ref}
	}
	return c, nil
}

// internLimit bounds the interner, as clients choose names. Beyond it the table starts afresh; strings in use stay valid.
const internLimit = 1 << 18

// internLength bounds the strings that are shared: longer ones hardly repeat, and the table keeps what it has.
const internLength = 256

// Interner makes equal strings share memory. The zero value is ready.
type Interner struct{ table map[string]string }

// Size returns how many strings are shared.
func (in *Interner) Size() int { return len(in.table) }

// Forget drops all strings; those in use stay valid.
func (in *Interner) Forget() { in.table = nil }

// Str returns the shared copy of a string.
func (in *Interner) Str(s string) string {
	if s == "" {
		return ""
	}
	if len(s) > internLength {
		return strings.Clone(s)
	}
	if t, ok := in.table[s]; ok {
		return t
	}
	return in.add(strings.Clone(s))
}

func (in *Interner) add(s string) string {
	if in.table == nil || len(in.table) >= internLimit {
		in.table = make(map[string]string, 256)
	}
	in.table[s] = s
	return s
}

// bytes is Str for text that is part of something larger.
func (in *Interner) bytes(b []byte) string {
	if len(b) > internLength {
		return string(b)
	}
	if t, ok := in.table[string(b)]; ok {
		return t
	}
	if len(b) == 0 {
		return ""
	}
	return in.add(string(b))
}

func (in *Interner) rules(list []rbacv1.PolicyRule) {
	for i := range list {
		r := &list[i]
		in.Strs(r.Verbs)
		in.Strs(r.APIGroups)
		in.Strs(r.Resources)
		in.Strs(r.ResourceNames)
		in.Strs(r.NonResourceURLs)
	}
}

// Strs replaces the strings of a list with their shared copies.
func (in *Interner) Strs(list []string) {
	for i, s := range list {
		list[i] = in.Str(s)
	}
}

// largeContent is the size from which a content counts.
const largeContent = 8 << 10

// Bytes returns what a content counts for.
func (c *Content) Bytes() int {
	if c == nil || c.size < largeContent {
		return 0
	}
	return int(c.size)
}
