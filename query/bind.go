package query

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// MayBind is whether a subject may write a binding to a role, which takes more than the
// right to write bindings: the verb bind on the role, or every rule the role has.
type MayBind struct {
	Allowed string `json:"allowed"` // yes, no, unknown
	// Covers: its own rules hold those of the role; it needs no grant of the verb bind.
	Covers bool `json:"covers"`
	// RulesMissing are those of the role it does not hold, put together as the apiserver lists
	// them.
	RulesMissing []rbacv1.PolicyRule `json:"rulesMissing"`
	RoleAbsent   bool                `json:"roleAbsent,omitempty"` // the role does not exist
	// More: RulesMissing are the first of many. TooCostly: comparing the rules takes more work than
	// is allowed.
	More      bool `json:"more,omitempty"`
	TooCostly bool `json:"tooCostly,omitempty"`
}

// bindOf answers for a question about the verb bind on one role; nil for any other.
func bindOf(policy *rbacindex.Snapshot, r *rbacindex.Attributes, known bool) *MayBind {
	kind := map[string]string{"roles": "Role", "clusterroles": "ClusterRole"}[r.Resource]
	if r.Verb != "bind" || r.APIGroup != rbacv1.GroupName || kind == "" || r.Subresource != "" || r.Name == "" {
		return nil
	}
	e := policy.MayBind(r.User, r.Groups, r.Namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: r.Name})
	out := &MayBind{Allowed: "yes", Covers: e.Allowed && !e.Superuser && len(e.Grants) == 0, RulesMissing: e.Missing, RoleAbsent: e.RoleAbsent, More: e.More, TooCostly: e.TooCostly}
	if out.RulesMissing == nil {
		out.RulesMissing = []rbacv1.PolicyRule{}
	}
	switch {
	case e.Allowed:
	case known && !e.TooCostly:
		out.Allowed = "no"
	default:
		out.Allowed = "unknown"
	}
	return out
}

// Text says it in a line.
func (b *MayBind) Text() string {
	switch {
	case b.Covers:
		return "yes: it holds every rule of the role"
	case b.RoleAbsent:
		return b.Allowed + ": the role does not exist, and the verb bind is not granted"
	case b.Allowed == "yes":
		return "yes"
	case b.TooCostly:
		return "unknown: whether it holds every rule of the role is too large to check, and the verb bind is not granted"
	}
	return b.Allowed + ": it holds neither the verb bind on the role nor all of its rules"
}
