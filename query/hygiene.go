package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/retrial-io/retrial/analysis/escalation"
	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// HygieneAnswer says what is idle or wrong in a policy.
type HygieneAnswer struct {
	Cluster string `json:"cluster"`
	Policy
	Flaws []Flaw `json:"flaws"` // by kind
	// System counts the flaws left out because they are in what Kubernetes itself installs.
	System int `json:"system"`
	// AccountsKnown is false when not all service accounts of that time are known: a subject reported missing may exist.
	AccountsKnown bool `json:"accountsKnown"`
}

// Flaw is one flaw. Objects are written Kind/name or Kind/namespace/name.
type Flaw struct {
	// Kind is one of those in docs/escalations.md.
	Kind   string `json:"kind"`
	Object string `json:"object"`         // the binding, or the role
	Role   string `json:"role,omitempty"` // of a binding
	// Rule is the index in the role's rules, of shadowed rules.
	Rule *int `json:"rule,omitempty"`
	// Subjects are those the flaw is about, as the binding names them.
	Subjects []string `json:"subjects,omitempty"`
	// By are the bindings that make it superfluous.
	By []string `json:"by,omitempty"`
	// Idle flaws have no effect: all of them can be removed together.
	Idle bool   `json:"idle"`
	Text string `json:"text"` // what is wrong, in one line
}

// flawKinds are the kinds of flaws by name, in the order they are listed in.
var flawKinds = []struct {
	kind rbacindex.FlawKind // 0: found here
	name string
	text string
}{
	{rbacindex.FlawEverybody, "everybody", "gives something to everybody"},
	{0, "missing-subject", "names service accounts that do not exist: whoever may create them gets what it gives"},
	{rbacindex.FlawMissingRole, "missing-role", "names a role that does not exist: whoever may create it decides what it gives"},
	{rbacindex.FlawNoSubject, "no-subject", "names nobody"},
	{rbacindex.FlawEmptyRole, "empty-role", "its role allows nothing"},
	{rbacindex.FlawDuplicateBinding, "duplicate-binding", "another binding to the same role gives the same"},
	{rbacindex.FlawShadowedBinding, "shadowed-binding", "other bindings give all it gives"},
	{rbacindex.FlawShadowedRule, "shadowed-rule", "the role's other rules give it, or it allows nothing"},
	{rbacindex.FlawUnboundRole, "unbound-role", "no binding names it"},
	{rbacindex.FlawTooLarge, "too-large", "too large to check whether others give the same"},
}

// HygieneRequest asks what is idle or wrong in the roles and bindings of a cluster, at a moment.
type HygieneRequest struct {
	Asks[HygieneAnswer] `question:"hygiene"`
	Cluster             string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"cluster the question is about (default: the only one there is)"`
	System              bool      `json:"includeSystem" help:"also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-*"`
	At                  time.Time `json:"at" help:"moment the question is about, such as 2026-11-20T11:36:00Z (default: the newest that is known)"`
}

// Hygiene answers what is idle or wrong in a policy.
func (a *Service) Hygiene(ctx context.Context, q HygieneRequest) (out HygieneAnswer, err error) {
	view, policy, err := a.policy(ctx, q.Cluster, q.At)
	if err != nil {
		return out, err
	}
	out = HygieneAnswer{Cluster: q.Cluster, Policy: policy, Flaws: []Flaw{}}
	out.doubt(view.Doubts("", true))
	add := func(k rbacindex.Key, f Flaw) {
		if !q.System && systemObject(k) && f.Kind != "missing-role" && f.Kind != "everybody" {
			out.System++
			return
		}
		f.Object = k.String()
		out.Flaws = append(out.Flaws, f)
	}
	aggregated := aggregatedRoles(view.RBAC)
	for _, f := range view.RBAC.Hygiene() {
		if f.Kind == rbacindex.FlawMissingRole && view.IsUnknown(f.Role) || f.Kind == rbacindex.FlawEverybody && bootstrapGrant(&f) {
			continue
		}
		add(f.Key, flawOf(&f, aggregated))
	}
	if err := a.missingSubjects(ctx, &out, &view, q.At, add); err != nil {
		return out, err
	}
	order := map[string]int{}
	for i, k := range flawKinds {
		order[k.name] = i
	}
	slices.SortStableFunc(out.Flaws, func(x, y Flaw) int {
		return cmp.Or(cmp.Compare(order[x.Kind], order[y.Kind]), strings.Compare(x.Object, y.Object))
	})
	return out, nil
}

func flawOf(f *rbacindex.Flaw, aggregated map[string]string) Flaw {
	out := Flaw{Idle: f.Kind.Idle()}
	for _, k := range flawKinds {
		if k.kind == f.Kind {
			out.Kind, out.Text = k.name, k.text
		}
	}
	if f.Role.Name != "" {
		out.Role = f.Role.String()
	}
	for _, k := range f.By {
		out.By = append(out.By, k.String())
	}
	switch f.Kind {
	case rbacindex.FlawShadowedRule:
		out.Rule = &f.Rule
	case rbacindex.FlawEverybody:
		out.Subjects = []string{f.Subject.Kind + "/" + f.Subject.Name}
		if f.Subject.Name == kubenames.Authenticated {
			out.Text = "gives something to everybody who logs in"
		}
	case rbacindex.FlawUnboundRole:
		if into := aggregated[f.Key.Name]; into != "" && f.Key.Kind == rbacindex.KindClusterRole {
			out.Text, out.Idle = "no binding names it; it is aggregated into "+into, false
		}
	case rbacindex.FlawMissingRole:
		if f.Role.Kind == 0 {
			out.Role, out.Text = f.Role.Name, "refers to an unknown role kind"
		}
	}
	return out
}

// missingSubjects finds bindings that name service accounts which did not exist.
func (a *Service) missingSubjects(ctx context.Context, out *HygieneAnswer, view *state.View, at time.Time,
	add func(rbacindex.Key, Flaw)) error {
	accounts, err := a.accounts(ctx, out.Cluster, at)
	if out.AccountsKnown = accounts.Complete; err != nil || !out.AccountsKnown {
		return err
	}
	there := make(map[escalation.Account]bool, len(accounts.There))
	for _, x := range accounts.There {
		there[x] = true
	}
	view.RBAC.All(func(k rbacindex.Key, o any) bool {
		subjects, role, _ := rbacindex.BindingOf(o)
		f := Flaw{Kind: "missing-subject", Role: role.Kind + "/" + role.Name}
		if role.Kind == "Role" && k.Namespace != "" {
			f.Role = rbacindex.RoleKey(&role, k.Namespace).String()
		}
		for _, s := range subjects {
			x := escalation.Account{Namespace: cmp.Or(s.Namespace, k.Namespace), Name: s.Name}
			if s.Kind == rbacv1.ServiceAccountKind && x.Namespace != "" && !there[x] {
				f.Subjects = append(f.Subjects, "ServiceAccount/"+x.Namespace+"/"+x.Name)
			}
		}
		if len(f.Subjects) > 0 {
			f.Text = flawKinds[1].text
			add(k, f)
		}
		return true
	})
	return nil
}

// systemObject reports whether a role or binding belongs to Kubernetes itself: by its name or its namespace,
// and the roles that it makes for people.
func systemObject(k rbacindex.Key) bool {
	return kubenames.Own(k.Name) || kubenames.OwnNamespace(k.Namespace) || k.Kind == rbacindex.KindClusterRole &&
		slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, k.Name)
}

// bootstrapGrant reports whether a flaw is a grant to everybody that Kubernetes makes at its start.
func bootstrapGrant(f *rbacindex.Flaw) bool {
	if f.Key.Kind != rbacindex.KindClusterRoleBinding || f.Key.Name != f.Role.Name || f.Subject.Kind != rbacv1.GroupKind {
		return false
	}
	switch f.Key.Name {
	case "system:basic-user", "system:discovery":
		return f.Subject.Name == kubenames.Authenticated
	case "system:public-info-viewer":
		return true // to those who log in and to all others
	}
	return false
}

// aggregatedRoles returns the ClusterRoles that others aggregate, with the names of those: as far as labels are known, and Kubernetes' own
// whose names say so.
func aggregatedRoles(policy *rbacindex.Snapshot) map[string]string {
	out := map[string]string{}
	var roles []*rbacv1.ClusterRole
	policy.All(func(_ rbacindex.Key, o any) bool {
		if r, ok := o.(*rbacv1.ClusterRole); ok {
			roles = append(roles, r)
			if into, ok := strings.CutPrefix(r.Name, "system:aggregate-to-"); ok {
				out[r.Name] = "ClusterRole/" + into
			}
		}
		return true
	})
	slices.SortFunc(roles, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
	for _, into := range roles {
		for _, takes := range rbacindex.SelectorsOf(into) {
			for _, r := range roles {
				if r != into && len(r.Labels) > 0 && takes.Matches(labels.Set(r.Labels)) {
					out[r.Name] = fmt.Sprintf("ClusterRole/%s", into.Name)
				}
			}
		}
	}
	return out
}
