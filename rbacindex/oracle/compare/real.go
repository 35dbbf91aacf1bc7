package compare

import (
	"context"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	internal "k8s.io/kubernetes/pkg/apis/rbac"
	convert "k8s.io/kubernetes/pkg/apis/rbac/v1"
	clusterroles "k8s.io/kubernetes/pkg/registry/rbac/clusterrole/policybased"
	clusterrolebindings "k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding/policybased"
	roles "k8s.io/kubernetes/pkg/registry/rbac/role/policybased"
	rolebindings "k8s.io/kubernetes/pkg/registry/rbac/rolebinding/policybased"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/retrial-io/retrial/rbacindex"
)

// Real is the real Kubernetes code on one Policy, which may go on changing.
type Real struct {
	policy   *Policy
	rbac     *rbac.RBACAuthorizer
	rules    validation.AuthorizationRuleResolver
	subjects *rbac.SubjectAccessEvaluator

	store               *accepting
	roles               *roles.Storage
	clusterRoles        *clusterroles.Storage
	roleBindings        *rolebindings.Storage
	clusterRoleBindings *clusterrolebindings.Storage
}

// NewReal puts the real code on a policy.
func NewReal(p *Policy) *Real {
	r := &Real{policy: p, rbac: rbac.New(p, p, p, p), rules: validation.NewDefaultRuleResolver(p, p, p, p),
		subjects: rbac.NewSubjectAccessEvaluator(p, p, p, p, ""), store: &accepting{}}
	r.roles = roles.NewStorage(r.store, r.rbac, r.rules)
	r.clusterRoles = clusterroles.NewStorage(r.store, r.rbac, r.rules)
	r.roleBindings = rolebindings.NewStorage(r.store, r.rbac, r.rules)
	r.clusterRoleBindings = clusterrolebindings.NewStorage(r.store, r.rbac, r.rules)
	return r
}

// attributes returns a request as the real authorizer takes it.
func attributes(a *rbacindex.Attributes) *authorizer.AttributesRecord {
	return &authorizer.AttributesRecord{User: &user.DefaultInfo{Name: a.User, Groups: a.Groups}, Verb: a.Verb, Namespace: a.Namespace,
		APIGroup: a.APIGroup, APIVersion: "v1",
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path}
}

// Allows returns the real authorizer's decision.
func (r *Real) Allows(a *rbacindex.Attributes) bool {
	decision, _, _ := r.rbac.Authorize(context.Background(), attributes(a))
	return decision == authorizer.DecisionAllow
}

// source is a rule that the real resolver visits, with its own words for where it is from.
type source struct {
	from string // as in "RBAC: allowed by …"
	rule *rbacv1.PolicyRule
}

// visit visits every rule of a subject that keep wants and returns the evaluation errors,
// each text once. rules is appended to.
func (r *Real) visit(who user.Info, namespace string, rules []source, keep func(*rbacv1.PolicyRule) bool) ([]source, []string) {
	var errs []string
	r.rules.VisitRulesFor(context.Background(), who, namespace, func(from fmt.Stringer, rule *rbacv1.PolicyRule, err error) bool {
		if err != nil {
			errs = appendNew(errs, err.Error())
		}
		if rule != nil && keep(rule) {
			rules = append(rules, source{from.String(), rule})
		}
		return true
	})
	return rules, errs
}

func appendNew(list []string, v string) []string {
	for _, have := range list {
		if have == v {
			return list
		}
	}
	return append(list, v)
}

// refusal returns the real answer to a write: nil if it is let through.
func (r *Real) refusal(q *Question) error {
	a := &q.Request
	ns := a.Namespace
	info := request.RequestInfo{IsResourceRequest: true, Verb: "create", APIGroup: rbacv1.GroupName, APIVersion: "v1"}
	who := &user.DefaultInfo{Name: a.User, Groups: a.Groups}
	in := func(resource, namespace, name string) context.Context {
		info.Resource, info.Namespace = resource, namespace
		if q.Update {
			info.Verb, info.Name = "update", name
		}
		return request.WithRequestInfo(request.WithUser(request.WithNamespace(context.Background(), namespace), who), &info)
	}
	if q.Asked == AskBind {
		ref := internal.RoleRef{APIGroup: q.Ref.APIGroup, Kind: q.Ref.Kind, Name: q.Ref.Name}
		if ns == "" {
			_, err := r.clusterRoleBindings.Create(in("clusterrolebindings", "", ""),
				&internal.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "new"}, RoleRef: ref}, nil, nil)
			return err
		}
		_, err := r.roleBindings.Create(in("rolebindings", ns, ""), &internal.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns,
			Name: "new"}, RoleRef: ref}, nil, nil)
		return err
	}
	var err error
	switch o := q.Object.(type) {
	case *rbacv1.Role:
		next, old := new(internal.Role), new(internal.Role)
		toInternalRole(o, next)
		ctx := in("roles", o.Namespace, o.Name)
		if !q.Update {
			_, err = r.roles.Create(ctx, next, nil, nil)
			return err
		}
		have, missing := r.policy.GetRole(ctx, o.Namespace, o.Name)
		if missing != nil {
			return missing
		}
		toInternalRole(have, old)
		r.store.old = old
		_, _, err = r.roles.Update(ctx, o.Name, rest.DefaultUpdatedObjectInfo(next), nil, nil, false, nil)
	case *rbacv1.ClusterRole:
		next, old := new(internal.ClusterRole), new(internal.ClusterRole)
		toInternalClusterRole(o, next)
		ctx := in("clusterroles", "", o.Name)
		if !q.Update {
			_, err = r.clusterRoles.Create(ctx, next, nil, nil)
			return err
		}
		have, missing := r.policy.GetClusterRole(ctx, o.Name)
		if missing != nil {
			return missing
		}
		toInternalClusterRole(have, old)
		r.store.old = old
		_, _, err = r.clusterRoles.Update(ctx, o.Name, rest.DefaultUpdatedObjectInfo(next), nil, nil, false, nil)
	}
	return err
}

// toInternalRole converts as decoding a request does. The conversions of these types cannot
// fail.
func toInternalRole(in *rbacv1.Role, out *internal.Role) {
	if err := convert.Convert_v1_Role_To_rbac_Role(in.DeepCopy(), out, nil); err != nil {
		panic(err)
	}
}

func toInternalClusterRole(in *rbacv1.ClusterRole, out *internal.ClusterRole) {
	if err := convert.Convert_v1_ClusterRole_To_rbac_ClusterRole(in.DeepCopy(), out, nil); err != nil {
		panic(err)
	}
}

// reasonOf returns what the apiserver says after "… is forbidden: "; ok is false for errors of
// another kind, which are about roles that are not there.
func reasonOf(err error) (text string, ok bool) {
	if !apierrors.IsForbidden(err) {
		return "", false
	}
	_, text, ok = strings.Cut(err.Error(), " is forbidden: ")
	return text, ok
}

// accepting is storage that takes everything, so that what refuses is what stands before it.
type accepting struct {
	rest.StandardStorage
	old runtime.Object
}

func (s *accepting) Create(_ context.Context, obj runtime.Object, _ rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	return obj, nil
}

func (s *accepting) Update(ctx context.Context, _ string, obj rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	_ rest.ValidateObjectUpdateFunc, _ bool, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	next, err := obj.UpdatedObject(ctx, s.old)
	return next, false, err
}

// texts returns the texts of an aggregate error, each once; nil for no error.
func texts(err error) []string {
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		return nil
	}
	var out []string
	for _, e := range all.Errors() {
		out = appendNew(out, e.Error())
	}
	return out
}
