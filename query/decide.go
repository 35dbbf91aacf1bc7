package query

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// Decision says whether a subject may make one request.
type Decision struct {
	AccessRequest
	// Allowed is "yes", "no", or "unknown" when nothing known allows it and not everything is known.
	Allowed string  `json:"allowed"`
	Grants  []Grant `json:"grants"` // all that allow it
	// Nearest says what would have allowed it; null when it is allowed.
	Nearest *NearestMiss `json:"nearest,omitempty"`
	// Bind says whether it may bind the role, when that was asked.
	Bind *MayBind `json:"bind,omitempty"`
}

// Yes reports whether the subject may do what was asked.
func (d *Decision) Yes() bool {
	return d.Allowed == "yes" || d.Bind != nil && d.Bind.Allowed == "yes"
}

// NearestMiss is what would have allowed a request.
type NearestMiss struct {
	Rule     rbacv1.PolicyRule `json:"rule"`     // the narrowest that does
	Roles    []Offer           `json:"roles"`    // that exist and allow it, the narrowest first
	Bindings []Offer           `json:"bindings"` // that allow it to others
	Almost   []Almost          `json:"almost"`   // rules the subject has that lack one thing
}

// Offer is a role, or a binding to one, that allows a request.
type Offer struct {
	Binding string `json:"binding,omitempty"` // of an offer that is one
	Role    string `json:"role"`              // that allows it
	Rule    int    `json:"rule"`              // index of the first of its rules that does
}

// Almost is a rule a subject has that lacks one thing.
type Almost struct {
	Grant
	Lacks string `json:"lacks"` // verb, name, subresource, group, namespace
}

// mostNearest bounds the lists of what would have allowed a request.
const mostNearest = 10

func (out *CanAnswer) decide(view *state.View, one AccessRequest, word string) error {
	r, hints, err := one.request(word, view.RBAC)
	if err != nil {
		return err
	}
	out.Hints = append(out.Hints, hints...)
	r.User, r.Groups = out.Subject, out.Groups
	d := Decision{AccessRequest: one, Allowed: "yes", Grants: []Grant{}}
	out.Request = &d
	if out.Superuser {
		d.Grants = append(d.Grants, superuser(groupMasters))
	}
	res := view.RBAC.Authorize(&r, nil)
	for _, g := range res.Grants {
		d.Grants = append(d.Grants, sourceOf(g))
	}
	named := map[rbacindex.Key]bool{}
	for _, k := range res.Missing {
		named[k] = true
	}
	out.doubtOwn(view.Doubts(r.Namespace, false), named)
	d.Bind = bindOf(view.RBAC, &r, len(out.Missing) == 0)
	if len(d.Grants) > 0 {
		return nil
	}
	d.Allowed = "no"
	if len(out.Missing) > 0 {
		d.Allowed = "unknown"
	}
	d.Nearest = nearestOf(view.RBAC.NearestMiss(&r, mostNearest))
	return nil
}

func nearestOf(m rbacindex.Miss) *NearestMiss {
	n := NearestMiss{Rule: m.Rule, Roles: []Offer{}, Bindings: []Offer{}, Almost: []Almost{}}
	for _, o := range m.Roles {
		n.Roles = append(n.Roles, Offer{Role: o.Role.String(), Rule: o.Rule})
	}
	for _, o := range m.Bindings {
		n.Bindings = append(n.Bindings, Offer{Binding: o.Key.String(), Role: o.Role.String(), Rule: o.Rule})
	}
	for _, x := range m.Almost {
		n.Almost = append(n.Almost, Almost{sourceOf(x.Grant), x.Lack.String()})
	}
	return &n
}

// MayBind says whether a subject may write a binding to a role, which takes more than the right to write bindings: the verb bind on the
// role, or every rule the role has.
type MayBind struct {
	Allowed string `json:"allowed"` // yes, no, unknown
	// Covers says that its own rules cover those of the role, so it needs no grant of the verb bind.
	Covers bool `json:"covers"`
	// RulesMissing are the role's rules that it does not hold, combined as the apiserver lists them.
	RulesMissing []rbacv1.PolicyRule `json:"rulesMissing"`
	RoleAbsent   bool                `json:"roleAbsent,omitempty"` // the role does not exist
	// More says that RulesMissing is cut off, TooCostly that comparing the rules takes more work than is allowed.
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
	out := &MayBind{Allowed: "yes", Covers: e.Allowed && !e.Superuser && len(e.Grants) == 0, RulesMissing: e.Missing,
		RoleAbsent: e.RoleAbsent, More: e.More, TooCostly: e.TooCostly}
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

// Text returns it in one line.
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
