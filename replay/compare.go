package replay

import (
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/state"
)

// compare judges the replica's decision against the record.
//
// The replica's own answer is the one at requestReceivedTimestamp. When it agrees with the
// record, the verdict is a match, whatever else changed around that time. Only when it does
// not, the other policies the apiserver may have seen inside the window are asked: if one of
// them agrees, the verdict is ambiguous; if one of them could agree but something in it is
// not known, indeterminate; else drift.
func (t *trial) compare(rec *record, decided bool) {
	v := t.v
	switch {
	case rec.class != "":
		v.Outcome, v.Class, v.Cause = OutcomeNotJudged, rec.class, rec.cause
		return
	case !decided && t.uriErr != nil:
		v.Outcome, v.Class, v.Cause = OutcomeIndeterminate, ClassUnparsable, clip(t.uriErr.Error())
		return
	case !decided:
		v.Outcome, v.Class, v.Cause = OutcomeIndeterminate, ClassNoSubject, "a decision is recorded, but the user is empty"
		return
	case t.ans.decision == DecisionNone:
		v.Outcome, v.Class, v.Cause = OutcomeIndeterminate, t.ans.class, "not known: "+strings.Join(t.ans.missing, ", ")
		return
	}

	ok, sameDecision := t.ans.agrees(rec, v.Grants, t.bufs.reason)
	switch {
	case ok:
		v.Outcome = OutcomeMatch
		t.reasonOrder(rec)
	case sameDecision && t.unknownExplains(rec):
		// The decision is certain; the reason names an object whose content is not known.
	default:
		t.disagree(rec, sameDecision)
	}
	if v.Outcome == OutcomeMatch {
		t.compareImpersonation()
	}
}

// reasonOrder notes a recorded reason that RBAC would not have come to: it asks all
// ClusterRoleBindings before any RoleBinding.
func (t *trial) reasonOrder(rec *record) {
	if t.ans.authorizer != AuthorizerRBAC || !strings.HasPrefix(rec.reason, "RBAC: allowed by RoleBinding ") {
		return
	}
	if t.ans.rbac.Grants[0].BindingKind() != rbacindex.KindClusterRoleBinding {
		return
	}
	// Inside the window the ClusterRoleBinding may not have been there yet.
	views := t.others()
	for i := range views {
		m := moment{view: &views[i], graph: t.base.graph, at: t.base.at}
		other := t.ask(&m)
		if len(other.rbac.Grants) == 0 || other.rbac.Grants[0].BindingKind() != rbacindex.KindClusterRoleBinding {
			return
		}
	}
	t.v.find(authn.FindingReasonOrder, "recorded "+strconv.Quote(t.v.RecordedReason))
}

// unknownExplains reports whether an object that is not known at base could be the one the
// recorded reason names, and settles the verdict if so.
func (t *trial) unknownExplains(rec *record) bool {
	g, ok := parseReason(rec.reason)
	if !ok || t.base.view == nil {
		return false
	}
	missing := t.base.unknownAmong(g)
	if len(missing) == 0 {
		return false
	}
	t.v.Outcome, t.v.Class, t.v.Missing = OutcomeIndeterminate, ClassUnknown, missing
	t.v.Cause = "the decision is certain, but the recorded reason names what is not known: " + strings.Join(missing, ", ")
	return true
}

// ask returns the answer of another moment to the same question.
func (t *trial) ask(m *moment) answer {
	u := t.e.EffectiveUser()
	ans := m.authorize(u.Username, u.Groups, &t.v.Attributes, t.bufs.other)
	t.bufs.other = keep(t.bufs.other, ans.rbac.Grants)
	return ans
}

// others returns the policies inside the window, the one at base among them.
func (t *trial) others() []state.View {
	if t.s == nil {
		return nil
	}
	from, to := t.window()
	return t.s.RBACWindow(from, to)
}

// nearest returns the policies of a window ordered by their distance from the one at base:
// first those before it, newest first, then those after it, oldest first. Each comes with
// the change that lies between it and its neighbour on the side of base, in words.
func (t *trial) nearest(views []state.View) []candidate {
	received := t.e.RequestReceivedTimestamp
	base := 0 // index of the policy at base
	for i := range views {
		if len(views[i].Changed) > 0 && !views[i].Changed[0].NotAfter.After(received) {
			base = i
		}
	}
	out := make([]candidate, 0, len(views))
	for i := base - 1; i >= 0; i-- {
		out = append(out, candidate{&views[i], "before " + changes(&views[i+1])})
	}
	for i := base + 1; i < len(views); i++ {
		out = append(out, candidate{&views[i], "after " + changes(&views[i])})
	}
	return out
}

// candidate is a policy the apiserver may have decided with instead of the one at base.
type candidate struct {
	view *state.View
	text string
}

// disagree settles a verdict whose base answer is not the recorded one.
func (t *trial) disagree(rec *record, sameDecision bool) {
	v := t.v
	var open *answer
	for _, c := range t.nearest(t.others()) {
		m := moment{view: c.view, graph: t.base.graph, at: t.base.at}
		ans := t.ask(&m)
		if ok, _ := ans.agrees(rec, nil, t.bufs.reason); ok {
			v.Outcome, v.Class = OutcomeAmbiguous, ClassRaced
			v.Cause = "the record agrees with the policy " + c.text
			return
		}
		if ans.decision == DecisionNone && open == nil {
			kept := ans
			open = &kept
		}
	}
	if open != nil {
		v.Outcome, v.Class, v.Missing = OutcomeIndeterminate, open.class, open.missing
		v.Cause = "inside the request's window not known: " + strings.Join(open.missing, ", ")
		return
	}
	v.Outcome = OutcomeDrift
	switch {
	case sameDecision:
		v.Class = ClassReason
	case rec.decision == DecisionAllow:
		v.Class = ClassAllowForbid
	default:
		v.Class = ClassForbidAllow
	}
	v.Cause = t.driftCause(rec)
}

// driftCause names the object version that makes replica and record differ.
func (t *trial) driftCause(rec *record) string {
	if rec.decision == DecisionForbid && t.ans.decision == DecisionAllow {
		if t.ans.authorizer != AuthorizerRBAC {
			return "the " + t.ans.authorizer + " authorizer allows it"
		}
		g := &t.ans.rbac.Grants[0]
		return t.describe(g.BindingKey()) + " grants it through " + t.describe(g.RoleKey())
	}
	if rec.decision == DecisionForbid {
		return "recorded reason " + strconv.Quote(clip(rec.reason)) + ", replayed " + strconv.Quote(clip(t.ans.refusal()))
	}
	if t.ans.decision == DecisionAllow && t.ans.authorizer != AuthorizerRBAC {
		return "the " + t.ans.authorizer + " authorizer allows it and gives no reason; recorded is " + strconv.Quote(clip(rec.reason))
	}
	g, ok := parseReason(rec.reason)
	if !ok {
		if rec.reason == "" {
			return "no reason is recorded, as for " + authn.GroupMasters + " or a node; this user is neither"
		}
		return "recorded reason " + strconv.Quote(clip(rec.reason)) + " is none RBAC gives"
	}
	binding, role := g.keys()
	if t.base.view == nil {
		return "the recorded reason names " + keyName(binding)
	}
	object, found := t.base.view.RBAC.Get(binding)
	if !found {
		return "the recorded reason names " + keyName(binding) + ", " + t.absent(binding)
	}
	if kind, name := roleRefOf(object); kind != g.roleKind || name != g.role {
		return "the recorded reason says " + t.describe(binding) + " refers to " + g.roleKind + " " + g.role + "; it referred to " + kind + " " + name
	}
	if _, found := t.base.view.RBAC.Get(role); !found {
		return "the recorded reason names " + t.describe(binding) + " of " + keyName(role) + ", " + t.absent(role)
	}
	return "the recorded reason names " + t.describe(binding) + " of " + t.describe(role) + ", which do not grant it"
}

// refusal is the reason this answer would be recorded with.
func (ans *answer) refusal() string {
	rbac := ans.rbac.Reason()
	if ans.node.Reason == "" {
		return rbac
	}
	if rbac == "" {
		return ans.node.Reason
	}
	return ans.node.Reason + "\n" + rbac
}

func (g *namedGrant) keys() (binding, role rbacindex.Key) {
	binding = rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: g.binding}
	if g.bindingKind == "RoleBinding" {
		binding = rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: g.bindingNamespace, Name: g.binding}
	}
	role = rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: g.role}
	if g.roleKind == "Role" {
		role = rbacindex.Key{Kind: rbacindex.KindRole, Namespace: g.bindingNamespace, Name: g.role}
	}
	return binding, role
}

// describe names an object and its version at base.
func (t *trial) describe(k rbacindex.Key) string {
	if v := t.versionOf(k); v.ResourceVersion != "" {
		return keyName(k) + " (resourceVersion " + v.ResourceVersion + ")"
	}
	return keyName(k)
}

// absent says that an object was not there at base, and since when if that is known.
func (t *trial) absent(k rbacindex.Key) string {
	if v := t.versionOf(k); v.Deleted && !v.NotAfter.IsZero() {
		return "which had been deleted by " + v.NotAfter.UTC().Format(timestampFormat)
	}
	return "which did not exist"
}

func (t *trial) versionOf(k rbacindex.Key) state.Version {
	resource := map[rbacindex.Kind]string{
		rbacindex.KindRole: state.Roles, rbacindex.KindClusterRole: state.ClusterRoles,
		rbacindex.KindRoleBinding: state.RoleBindings, rbacindex.KindClusterRoleBinding: state.ClusterRoleBindings,
	}[k.Kind]
	v, _ := t.s.Version(resource, k.Namespace, k.Name, t.base.at)
	return v
}

func keyName(k rbacindex.Key) string {
	if k.Namespace == "" {
		return k.Kind.String() + " " + k.Name
	}
	return k.Kind.String() + " " + k.Namespace + "/" + k.Name
}

func roleRefOf(object any) (kind, name string) {
	switch o := object.(type) {
	case *rbacv1.RoleBinding:
		return o.RoleRef.Kind, o.RoleRef.Name
	case *rbacv1.ClusterRoleBinding:
		return o.RoleRef.Kind, o.RoleRef.Name
	}
	return "", ""
}
