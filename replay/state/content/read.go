package content

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// reader is a jsontext.Plain whose strings an interner shares.
type reader struct {
	jsontext.Plain
	in *Interner // of the strings returned
}

func (r *reader) str(into *string) bool {
	s, ok := r.Bytes()
	if ok {
		*into = r.in.bytes(s)
	}
	return ok
}

func (r *reader) strs(into *[]string) bool {
	list := []string{}
	if !r.Array(func() bool {
		var s string
		ok := r.str(&s)
		list = append(list, s)
		return ok
	}) {
		return false
	}
	*into = list[:len(list):len(list)]
	return true
}

var (
	objectMembers  = []string{"metadata", "rules", "subjects", "roleRef", "aggregationRule", "cut"}
	ruleMembers    = []string{"verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"}
	subjectMembers = []string{"kind", "apiGroup", "name", "namespace"}
	refMembers     = []string{"apiGroup", "kind", "name"}
)

// rbac reads what Parse needs of an RBAC object.
func (r *reader) rbac(o *rbacObject) bool {
	return r.Object(objectMembers, func(i int) bool {
		switch i {
		case 0:
			return kept.ReadTimes(&r.Plain, &o.Metadata)
		case 1:
			o.Rules = []rbacv1.PolicyRule{}
			return r.Array(func() bool { return r.rule(&o.Rules) })
		case 2:
			o.Subjects = []rbacv1.Subject{}
			return r.Array(func() bool { return r.subject(&o.Subjects) })
		case 4, 5:
			return false // few have one
		}
		return r.Object(refMembers, func(i int) bool {
			return r.str([]*string{&o.RoleRef.APIGroup, &o.RoleRef.Kind, &o.RoleRef.Name}[i])
		})
	}) && r.Done()
}

func (r *reader) rule(list *[]rbacv1.PolicyRule) bool {
	var rule rbacv1.PolicyRule
	ok := r.Object(ruleMembers, func(i int) bool {
		return r.strs([]*[]string{&rule.Verbs, &rule.APIGroups, &rule.Resources, &rule.ResourceNames, &rule.NonResourceURLs}[i])
	})
	*list = append(*list, rule)
	return ok
}

func (r *reader) subject(list *[]rbacv1.Subject) bool {
	var s rbacv1.Subject
	ok := r.Object(subjectMembers, func(i int) bool {
		return r.str([]*string{&s.Kind, &s.APIGroup, &s.Name, &s.Namespace}[i])
	})
	*list = append(*list, s)
	return ok
}
