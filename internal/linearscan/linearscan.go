// Package linearscan decides requests the way the RBAC authorizer of kube-apiserver does: for
// each request it lists all ClusterRoleBindings, then the RoleBindings of the namespace, and
// goes through them until a rule allows. It is what `retrial bench rbac` measures the index
// against, on policies of people who do not have the sources of Kubernetes at hand.
//
// Objects are listed by client-go's listers over indexers, as kube-apiserver lists them. The
// walk mirrors pkg/registry/rbac/validation (VisitRulesFor) and pkg/apis/rbac/v1
// (evaluation_helpers.go) of k8s.io/kubernetes, which is not a library; rbacindex/oracle holds
// its decisions and its cost to the original's.
package linearscan

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/retrial-io/retrial/rbacindex"
)

// Scan is a policy that is scanned for every request.
type Scan struct {
	roles               rbaclisters.RoleLister
	roleBindings        rbaclisters.RoleBindingLister
	clusterRoles        rbaclisters.ClusterRoleLister
	clusterRoleBindings rbaclisters.ClusterRoleBindingLister
}

// New returns a Scan of RBAC objects: *rbacv1.Role, *rbacv1.ClusterRole, *rbacv1.RoleBinding
// and *rbacv1.ClusterRoleBinding. They are retained and must not be modified afterwards.
func New(objects []any) (*Scan, error) {
	indexers := map[rbacindex.Kind]cache.Indexer{}
	for _, kind := range []rbacindex.Kind{
		rbacindex.KindRole, rbacindex.KindRoleBinding, rbacindex.KindClusterRole, rbacindex.KindClusterRoleBinding,
	} {
		indexers[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	for _, o := range objects {
		k, err := rbacindex.KeyOf(o)
		if err != nil {
			return nil, err
		}
		if err := indexers[k.Kind].Add(o); err != nil {
			return nil, fmt.Errorf("add %s: %w", k, err)
		}
	}
	return &Scan{
		roles:               rbaclisters.NewRoleLister(indexers[rbacindex.KindRole]),
		roleBindings:        rbaclisters.NewRoleBindingLister(indexers[rbacindex.KindRoleBinding]),
		clusterRoles:        rbaclisters.NewClusterRoleLister(indexers[rbacindex.KindClusterRole]),
		clusterRoleBindings: rbaclisters.NewClusterRoleBindingLister(indexers[rbacindex.KindClusterRoleBinding]),
	}, nil
}

// Allows reports whether a binding grants a request. A binding whose role does not exist
// grants nothing. The reason, which kube-apiserver also formats, is left out.
func (s *Scan) Allows(a authorizer.Attributes) (bool, error) {
	bindings, err := s.clusterRoleBindings.List(labels.Everything())
	if err != nil {
		return false, fmt.Errorf("list ClusterRoleBindings: %w", err)
	}
	for _, b := range bindings {
		if applies(a.GetUser(), b.Subjects, "") && allow(s.rules(b.RoleRef, ""), a) {
			return true, nil
		}
	}
	namespace := a.GetNamespace()
	if namespace == "" {
		return false, nil
	}
	inNamespace, err := s.roleBindings.RoleBindings(namespace).List(labels.Everything())
	if err != nil {
		return false, fmt.Errorf("list RoleBindings of %q: %w", namespace, err)
	}
	for _, b := range inNamespace {
		if applies(a.GetUser(), b.Subjects, namespace) && allow(s.rules(b.RoleRef, namespace), a) {
			return true, nil
		}
	}
	return false, nil
}

func (s *Scan) rules(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	switch ref.Kind {
	case "Role":
		if r, err := s.roles.Roles(namespace).Get(ref.Name); err == nil {
			return r.Rules
		}
	case "ClusterRole":
		if r, err := s.clusterRoles.Get(ref.Name); err == nil {
			return r.Rules
		}
	}
	return nil
}

func applies(u user.Info, subjects []rbacv1.Subject, namespace string) bool {
	for i := range subjects {
		switch s := &subjects[i]; s.Kind {
		case rbacv1.UserKind:
			if u.GetName() == s.Name {
				return true
			}
		case rbacv1.GroupKind:
			if slices.Contains(u.GetGroups(), s.Name) {
				return true
			}
		case rbacv1.ServiceAccountKind:
			in := namespace
			if s.Namespace != "" {
				in = s.Namespace
			}
			if in != "" && serviceaccount.MatchesUsername(in, s.Name, u.GetName()) {
				return true
			}
		}
	}
	return false
}

func allow(rules []rbacv1.PolicyRule, a authorizer.Attributes) bool {
	for i := range rules {
		if allows(&rules[i], a) {
			return true
		}
	}
	return false
}

func allows(r *rbacv1.PolicyRule, a authorizer.Attributes) bool {
	if !a.IsResourceRequest() {
		return has(r.Verbs, a.GetVerb()) && slices.ContainsFunc(r.NonResourceURLs, func(url string) bool {
			return url == rbacv1.NonResourceAll || url == a.GetPath() ||
				strings.HasSuffix(url, "*") && strings.HasPrefix(a.GetPath(), strings.TrimRight(url, "*"))
		})
	}
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	return has(r.Verbs, a.GetVerb()) && has(r.APIGroups, a.GetAPIGroup()) &&
		(has(r.Resources, resource) || a.GetSubresource() != "" && slices.Contains(r.Resources, "*/"+a.GetSubresource())) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.GetName()))
}

// has reports whether a list of a rule has a value or stands for all: "*" means all verbs, API
// groups and resources alike.
func has(list []string, value string) bool {
	for _, v := range list {
		if v == "*" || v == value {
			return true
		}
	}
	return false
}
