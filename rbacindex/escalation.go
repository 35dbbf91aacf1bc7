package rbacindex

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Escalation is the answer of the apiserver's check against granting rights that one does not have,
// which it makes in addition to the ordinary decision on every write of a role or binding.
type Escalation struct {
	// Allowed is the answer.
	Allowed bool
	// Superuser: being in system:masters is why.
	Superuser bool
	// Grants are those of the verb "escalate" (roles) or "bind" (bindings), which allow it whatever
	// the rules are. Without one, unless the subject is a superuser, the subject's own rules must
	// cover the role's.
	Grants []Grant
	// Missing are the rules it lacks, as the apiserver lists them: put together by resource,
	// sorted. More: there are further ones beyond the first MostMissing pieces.
	Missing []rbacv1.PolicyRule
	More    bool
	// TooCostly: comparing the rules took more work than is allowed, and nothing lacking was
	// found until then. Whether it is allowed is not known; Allowed is false.
	TooCostly bool
	// Aggregation means that the role's rules are covered, but it has or had an aggregationRule,
	// which takes "*" on everything, and Missing is what lacks for that.
	Aggregation bool
	// RoleAbsent: the role a binding names does not exist; the apiserver then answers 404.
	RoleAbsent bool
	// Reason is the last part of the apiserver's refusal, after "… is forbidden: "; "" if it is
	// allowed, not known, or the role does not exist.
	Reason string
}

// FullAuthority returns what setting an aggregationRule takes.
func FullAuthority() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
	}
}

// MayWriteRole reports whether the check lets a subject write a *rbacv1.Role or
// *rbacv1.ClusterRole, whether it exists or not. name is the name in the request's URL: empty on
// create. Updates that only touch owner references, finalizers or managed fields are not checked at
// all; the caller must know which those are. Another type is refused with ErrUnsupportedObject.
func (s *Snapshot) MayWriteRole(user string, groups []string, object any, name string) (Escalation, error) {
	k, err := KeyOf(object)
	if err != nil {
		return Escalation{}, fmt.Errorf("check escalation: %w", err)
	}
	a := Attributes{User: user, Groups: groups, Verb: "escalate", APIGroup: rbacv1.GroupName, Name: name, Namespace: k.Namespace,
		ResourceRequest: true}
	var rules []rbacv1.PolicyRule
	aggregated := false
	switch o := object.(type) {
	case *rbacv1.Role:
		a.Resource, rules = "roles", o.Rules
	case *rbacv1.ClusterRole:
		a.Resource, rules = "clusterroles", o.Rules
		aggregated = aggregates(o)
		if old, ok := s.Get(k); ok && name != "" {
			aggregated = aggregated || aggregates(old.(*rbacv1.ClusterRole))
		}
	default:
		return Escalation{}, fmt.Errorf("check escalation of %s: %w", k, ErrUnsupportedObject)
	}
	e := s.escalation(&a)
	if e.Allowed {
		return e, nil
	}
	if s.cover(&e, &a, rules); !e.Allowed || !aggregated {
		return e, nil
	}
	if s.cover(&e, &a, FullAuthority()); !e.Allowed && !e.TooCostly {
		e.Aggregation, e.Reason = true, "must have cluster-admin privileges to use the aggregationRule"
	}
	return e, nil
}

func aggregates(r *rbacv1.ClusterRole) bool {
	return r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) > 0
}

// MayBind reports whether the check lets a subject write a binding to a role: a RoleBinding in
// the namespace, or with namespace "" a ClusterRoleBinding.
func (s *Snapshot) MayBind(user string, groups []string, namespace string, ref rbacv1.RoleRef) Escalation {
	a := Attributes{User: user, Groups: groups, Verb: "bind", APIGroup: ref.APIGroup, Name: ref.Name, Namespace: namespace,
		ResourceRequest: true}
	role := Key{Name: ref.Name}
	switch ref.Kind {
	case "ClusterRole":
		a.Resource, role.Kind = "clusterroles", KindClusterRole
	case "Role":
		a.Resource, role.Kind, role.Namespace = "roles", KindRole, namespace
	}
	var e Escalation
	switch {
	case a.Resource != "":
		e = s.escalation(&a)
	case slices.Contains(groups, groupMasters):
		e = Escalation{Allowed: true, Superuser: true}
	}
	if e.Allowed {
		return e
	}
	r := s.role(role)
	if r == nil {
		e.RoleAbsent = true
		return e
	}
	s.cover(&e, &a, r.rules())
	return e
}

// escalation answers what does not depend on rules: superusers, and the verb.
func (s *Snapshot) escalation(a *Attributes) Escalation {
	if slices.Contains(a.Groups, groupMasters) {
		return Escalation{Allowed: true, Superuser: true}
	}
	res := s.Authorize(a, nil)
	return Escalation{Allowed: res.Allowed, Grants: res.Grants}
}

// MostMissing bounds the pieces of rules that an Escalation lists as missing.
const MostMissing = 4096

// cover answers by the subject's own rules: those that hold cluster-wide and in the namespace.
func (s *Snapshot) cover(e *Escalation, a *Attributes, wanted []rbacv1.PolicyRule) {
	c := s.Covers(a.User, a.Groups, a.Namespace, wanted, MostMissing, NewSteps(CoverSteps))
	e.Allowed, e.TooCostly, e.Missing, e.More = c.Covered(), c.TooCostly, compactPieces(c.Uncovered), c.More
	if e.Allowed || e.TooCostly {
		return
	}
	lines := make([]string, len(e.Missing))
	for i := range e.Missing {
		lines[i] = ruleText(&e.Missing[i])
	}
	if e.More {
		lines = append(lines, "and more")
	}
	e.Reason = fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", a.User, a.Groups,
		strings.Join(lines, "\n"))
	scopes := s.scopes(a.User, a.Groups, a.Namespace)
	if errs := scopes[len(scopes)-1].result(nil).Errors(); len(errs) > 1 {
		e.Reason += "; resolution errors: [[" + strings.Join(errs, ", ") + "]]"
	} else if len(errs) == 1 {
		e.Reason += "; resolution errors: [" + errs[0] + "]"
	}
}
