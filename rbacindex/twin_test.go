package rbacindex_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// twin is the dumb alternative: lists of objects, scanned for every request, written from
// the description of the authorizer without any of the index's ideas.
type twin struct {
	objects map[rbacindex.Key]any
}

func newTwin(objects ...any) *twin {
	t := &twin{objects: map[rbacindex.Key]any{}}
	for _, o := range objects {
		k, err := rbacindex.KeyOf(o)
		if err != nil {
			panic(err)
		}
		t.objects[k] = o
	}
	return t
}

func (t *twin) list() []any {
	keys := make([]string, 0, len(t.objects))
	byKey := map[string]any{}
	for k, o := range t.objects {
		keys = append(keys, k.String())
		byKey[k.String()] = o
	}
	sort.Strings(keys)
	out := make([]any, len(keys))
	for i, k := range keys {
		out[i] = byKey[k]
	}
	return out
}

// answer is a decision in comparable form: every grant as a line, every error text.
type answer struct {
	allowed bool
	grants  []string
	errors  []string
}

func (a answer) String() string {
	return fmt.Sprintf("allowed=%t\n  grants:\n    %s\n  errors:\n    %s", a.allowed,
		strings.Join(a.grants, "\n    "), strings.Join(a.errors, "\n    "))
}

func (a answer) equal(b answer) bool {
	return a.allowed == b.allowed && slices.Equal(a.grants, b.grants) && slices.Equal(a.errors, b.errors)
}

func (t *twin) authorize(a *rbacindex.Attributes) answer {
	var out answer
	visit := func(kind, ns, name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		for i, s := range subjects {
			if !twinSubject(a, s, ns) {
				continue
			}
			rules, err := t.rules(ref, ns)
			if err != "" {
				if !slices.Contains(out.errors, err) {
					out.errors = append(out.errors, err)
				}
				return
			}
			for ri, rule := range rules {
				if twinRule(a, rule) {
					who := fmt.Sprintf("%s %q", s.Kind, s.Name)
					if s.Kind == "ServiceAccount" {
						sns := s.Namespace
						if sns == "" {
							sns = ns
						}
						who = fmt.Sprintf("%s %q", s.Kind, s.Name+"/"+sns)
					}
					b := fmt.Sprintf("%s %q", kind, name)
					if kind == "RoleBinding" {
						b = fmt.Sprintf("%s %q", kind, name+"/"+ns)
					}
					out.grants = append(out.grants, fmt.Sprintf("RBAC: allowed by %s of %s %q to %s [subject %d rule %d]",
						b, ref.Kind, ref.Name, who, i, ri))
					break
				}
			}
			return
		}
	}
	for _, o := range t.objects {
		switch b := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			visit("ClusterRoleBinding", "", b.Name, b.RoleRef, b.Subjects)
		case *rbacv1.RoleBinding:
			if a.Namespace != "" && b.Namespace == a.Namespace {
				visit("RoleBinding", b.Namespace, b.Name, b.RoleRef, b.Subjects)
			}
		}
	}
	out.allowed = len(out.grants) > 0
	sort.Strings(out.grants)
	sort.Strings(out.errors)
	return out
}

func (t *twin) rules(ref rbacv1.RoleRef, ns string) ([]rbacv1.PolicyRule, string) {
	switch ref.Kind {
	case "Role":
		if r, ok := t.objects[rbacindex.Key{Kind: rbacindex.KindRole, Namespace: ns, Name: ref.Name}]; ok {
			return r.(*rbacv1.Role).Rules, ""
		}
		return nil, fmt.Sprintf("role.rbac.authorization.k8s.io %q not found", ref.Name)
	case "ClusterRole":
		if r, ok := t.objects[rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: ref.Name}]; ok {
			return r.(*rbacv1.ClusterRole).Rules, ""
		}
		return nil, fmt.Sprintf("clusterrole.rbac.authorization.k8s.io %q not found", ref.Name)
	}
	return nil, fmt.Sprintf("unsupported role reference kind: %q", ref.Kind)
}

func twinSubject(a *rbacindex.Attributes, s rbacv1.Subject, ns string) bool {
	switch s.Kind {
	case "User":
		return a.User == s.Name
	case "Group":
		return slices.Contains(a.Groups, s.Name)
	case "ServiceAccount":
		if s.Namespace != "" {
			ns = s.Namespace
		}
		return ns != "" && a.User == "system:serviceaccount:"+ns+":"+s.Name
	}
	return false
}

func twinRule(a *rbacindex.Attributes, r rbacv1.PolicyRule) bool {
	in := func(list []string, v string) bool { return slices.Contains(list, "*") || slices.Contains(list, v) }
	if !in(r.Verbs, a.Verb) {
		return false
	}
	if !a.ResourceRequest {
		for _, u := range r.NonResourceURLs {
			if u == "*" || u == a.Path {
				return true
			}
			if strings.HasSuffix(u, "*") && strings.HasPrefix(a.Path, strings.TrimRight(u, "*")) {
				return true
			}
		}
		return false
	}
	if !in(r.APIGroups, a.APIGroup) {
		return false
	}
	want := a.Resource
	if a.Subresource != "" {
		want += "/" + a.Subresource
	}
	if !in(r.Resources, want) && (a.Subresource == "" || !slices.Contains(r.Resources, "*/"+a.Subresource)) {
		return false
	}
	return len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name)
}

// indexAnswer returns the index's answer in the twin's form. It fails on anything the twin's form
// would hide: a grant named twice, or ClusterRoleBindings after RoleBindings.
func indexAnswer(s *rbacindex.Snapshot, a *rbacindex.Attributes, buf []rbacindex.Grant) (answer, error) {
	res := s.Authorize(a, buf)
	out := answer{allowed: res.Allowed, errors: slices.Clone(res.Errors())}
	namespaced := false
	for _, g := range res.Grants {
		if g.BindingKind() == rbacindex.KindRoleBinding {
			namespaced = true
		} else if namespaced {
			return out, fmt.Errorf("%s after a RoleBinding's grant", g.Reason())
		}
		out.grants = append(out.grants, fmt.Sprintf("%s [subject %d rule %d]", g.Reason(), g.SubjectIndex(), g.Rule()))
	}
	sort.Strings(out.grants)
	sort.Strings(out.errors)
	for i := 1; i < len(out.grants); i++ {
		if out.grants[i] == out.grants[i-1] {
			return out, fmt.Errorf("grant reported twice: %s", out.grants[i])
		}
	}
	return out, nil
}
