package state

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
)

// content is what one version of an object says, reduced to what views need. It is
// immutable; a nil *content means unknown content.
type content struct {
	// object is *rbacv1.Role, *rbacv1.ClusterRole, *rbacv1.RoleBinding or
	// *rbacv1.ClusterRoleBinding; *Secret, *graph.Content of volumes, attachments and slices,
	// *facts of signing requests; nil for other resources. Metadata is cut to name
	// and namespace: one index entry may stand for several versions of the same meaning.
	object   any
	created  int64  // unix nanoseconds, noTime when absent
	deletion int64  // deletionTimestamp, noTime when absent
	deleting bool   // deletionTimestamp is set
	cut      bool   // rules or subjects of it were cut out: it has at least those of object
	digest   uint64 // of the JSON it was read from
	size     int32  // of that JSON, RBAC objects only
	// or is what a binding may be instead that is in doubt, by another role; see alternatives.go.
	or *content
}

// with returns the content with other metadata, that of m; m may be nil, and then nothing is
// known to have changed.
func (c *content) with(m *content) *content {
	if m == nil || m.deleting == c.deleting {
		return c
	}
	d := *c
	d.deleting, d.deletion, d.digest = m.deleting, m.deletion, c.digest^m.digest
	return &d
}

// sameMeaning tells whether two versions mean the same to every view: changes of labels,
// annotations or managed fields do not count.
func (c *content) sameMeaning(d *content) bool {
	if c == d {
		return true
	}
	if c == nil || d == nil || c.deleting != d.deleting || c.cut != d.cut || !c.or.sameMeaning(d.or) {
		return false
	}
	switch a := c.object.(type) {
	case *Secret, *facts:
		return reflect.DeepEqual(a, d.object)
	case *graph.Content:
		b, ok := d.object.(*graph.Content)
		return ok && *a == *b
	case *rbacv1.Role:
		b, ok := d.object.(*rbacv1.Role)
		return ok && reflect.DeepEqual(a.Rules, b.Rules)
	case *rbacv1.ClusterRole:
		b, ok := d.object.(*rbacv1.ClusterRole)
		return ok && reflect.DeepEqual(a.Rules, b.Rules) && reflect.DeepEqual(a.AggregationRule, b.AggregationRule)
	case *rbacv1.RoleBinding:
		b, ok := d.object.(*rbacv1.RoleBinding)
		return ok && a.RoleRef == b.RoleRef && reflect.DeepEqual(a.Subjects, b.Subjects)
	case *rbacv1.ClusterRoleBinding:
		b, ok := d.object.(*rbacv1.ClusterRoleBinding)
		return ok && a.RoleRef == b.RoleRef && reflect.DeepEqual(a.Subjects, b.Subjects)
	}
	return d.object == nil
}

// binding returns the subjects and the role reference of a binding; ok is false for other
// contents.
func (c *content) binding() (subjects []rbacv1.Subject, ref rbacv1.RoleRef, ok bool) {
	if c == nil {
		return nil, rbacv1.RoleRef{}, false
	}
	switch b := c.object.(type) {
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

// kept is what is read of an object of one of the RBAC kinds.
type kept struct {
	Metadata meta                `json:"metadata"`
	Rules    []rbacv1.PolicyRule `json:"rules"`
	Subjects []rbacv1.Subject    `json:"subjects"`
	RoleRef  rbacv1.RoleRef      `json:"roleRef"`
	// AggregationRule means nothing to an authorizer; who writes such a role needs more.
	AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
	// Cut says that rules or subjects were cut out of the object; see event.KeepBodies.
	Cut bool `json:"cut"`
}

// read reads the JSON of an object.
func (in *interner) read(res resource, raw []byte) (o kept, err error) {
	q := reader{jsontext.NewPlain(raw), in}
	if res.kind() != 0 {
		if q.rbac(&o) {
			return o, nil
		}
		o = kept{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &o); err != nil { // as apiservers read it
			return kept{}, err
		}
		in.rules(o.Rules)
		return o, nil
	}
	if readTimesAlone(&q.Plain, &o.Metadata) {
		return o, nil
	}
	var h head
	if err := json.Unmarshal(raw, &h); err != nil {
		return kept{}, err
	}
	return kept{Metadata: h.Metadata}, nil
}

// parse reads an object of a kept resource. Names come from the observation, because the
// items of a list need not repeat what the list says.
func (in *interner) parse(res resource, key objectKey, raw []byte) (*content, error) {
	if res.reduces() {
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
	c := &content{created: nanos(o.Metadata.created()), deletion: nanos(o.Metadata.deletion()), deleting: o.Metadata.DeletionTimestamp != "", cut: o.Cut, digest: xxhash.Sum64(raw), size: int32(len(raw))}
	om := metav1.ObjectMeta{Name: key.name, Namespace: key.namespace}
	for i := range o.Subjects {
		s := &o.Subjects[i]
		s.Kind, s.APIGroup, s.Name, s.Namespace = in.str(s.Kind), in.str(s.APIGroup), in.str(s.Name), in.str(s.Namespace)
	}
	ref := rbacv1.RoleRef{APIGroup: in.str(o.RoleRef.APIGroup), Kind: in.str(o.RoleRef.Kind), Name: in.str(o.RoleRef.Name)}
	switch res {
	case resRole:
		c.object = &rbacv1.Role{ObjectMeta: om, Rules: o.Rules}
	case resClusterRole:
		c.object = &rbacv1.ClusterRole{ObjectMeta: om, Rules: o.Rules, AggregationRule: o.AggregationRule}
	case resRoleBinding:
		c.object = &rbacv1.RoleBinding{ObjectMeta: om, Subjects: o.Subjects, RoleRef: ref}
	case resClusterRoleBinding:
		c.object = &rbacv1.ClusterRoleBinding{ObjectMeta: om, Subjects: o.Subjects, RoleRef: ref}
	}
	return c, nil
}

// internLimit bounds the interner: names are chosen by clients. Beyond it the table is
// dropped and begun anew; strings in use stay valid.
const internLimit = 1 << 18

// internLength is how long strings are that are looked for: longer ones hardly come twice, and
// the table keeps what it has.
const internLength = 256

// interner makes equal strings share memory. The zero value is ready.
type interner struct{ table map[string]string }

func (in *interner) str(s string) string {
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

func (in *interner) add(s string) string {
	if in.table == nil || len(in.table) >= internLimit {
		in.table = make(map[string]string, 256)
	}
	in.table[s] = s
	return s
}

// bytes is str for text that is part of something larger.
func (in *interner) bytes(b []byte) string {
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

func (in *interner) rules(list []rbacv1.PolicyRule) {
	for i := range list {
		r := &list[i]
		in.strs(r.Verbs)
		in.strs(r.APIGroups)
		in.strs(r.Resources)
		in.strs(r.ResourceNames)
		in.strs(r.NonResourceURLs)
	}
}

func (in *interner) strs(list []string) {
	for i, s := range list {
		list[i] = in.str(s)
	}
}
