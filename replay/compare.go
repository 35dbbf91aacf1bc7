package replay

import (
	"slices"
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/reason"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/verdict"
)

// compare judges the replica's decision against the record.
//
// The replica's own answer is the one at requestReceivedTimestamp. When it agrees with the
// record, the verdict is a match, whatever else changed around that time. Only when it does
// not, the other policies and configurations the apiserver may have used inside the window are
// asked: if one of them agrees, the verdict is ambiguous; if one of them could agree but
// something in it is not known, indeterminate; else drift.
func (t *trial) compare(rec *record, decided bool) {
	v := t.v
	switch {
	case rec.class != "" && (rec.decision != verdict.DecisionError || !decided):
		v.Outcome, v.Class, v.Cause = verdict.OutcomeNotJudged, rec.class, rec.cause
		t.noteUnrecorded(rec)
		return
	case !decided && t.uriErr != nil:
		v.Outcome, v.Class, v.Cause = verdict.OutcomeIndeterminate, verdict.ClassUnparsable, verdict.Clip(t.uriErr.Error())
		return
	case !decided:
		v.Outcome, v.Class, v.Cause = verdict.OutcomeIndeterminate, verdict.ClassNoSubject, "a decision is recorded, but the user is empty"
		return
	case rec.decision == verdict.DecisionError:
		t.compareError(rec)
		return
	case t.ans.Decision == verdict.DecisionNone:
		v.Outcome, v.Class, v.Cause = verdict.OutcomeIndeterminate, lackClass(t.ans.Lack), "not known: "+strings.Join(v.Missing, ", ")
		return
	}

	ok, sameDecision := t.agrees(rec)
	switch {
	case ok:
		v.Outcome = verdict.OutcomeMatch
		t.reasonOrder(rec)
	case sameDecision && t.unknownExplains(rec):
		// The decision is certain; the reason names an object whose content is not known.
	default:
		t.disagree(rec, sameDecision)
	}
	t.noteAuthorizers(rec)
	if v.Outcome == verdict.OutcomeMatch {
		t.compareImpersonation()
	}
	if all := len(t.ans.RBAC.Grants); v.Cause == "" && t.ans.ByRBAC() && len(v.Grants) < all {
		v.Cause = strconv.Itoa(len(v.Grants)) + " of " + strconv.Itoa(all) + " grants are listed"
	}
}

// compareError judges a recorded error: a request that an authorizer failed on, so that no
// decision was made.
func (t *trial) compareError(rec *record) {
	v := t.v
	possible := t.ans.CanFail()
	if t.ans.Decision == verdict.DecisionError {
		v.Outcome = verdict.OutcomeMatch
		return
	}
	for _, c := range t.candidates(t.ans.NodeAsked()) {
		ans := t.askAgain(&c.moment)
		if ans.Decision == verdict.DecisionError {
			v.Outcome, v.Class, v.Cause = verdict.OutcomeAmbiguous, c.class, "the record agrees with the "+
				c.says(t.e.RequestReceivedTimestamp)
			return
		}
		possible = possible || ans.CanFail()
	}
	if possible {
		v.Outcome, v.Class, v.Cause = verdict.OutcomeNotJudged, rec.class, rec.cause
		return
	}
	v.Outcome, v.Class = verdict.OutcomeDrift, verdict.ClassErrorForged
	v.Cause = "an authorizer's error is recorded; none of those configured can fail: " + strings.Join(t.base.chain.Names(), ", ")
}

// agreesWith reports whether a recorded decision and reason are what an answer produces.
// sameDecision tells the case apart in which only the reason is unexplained.
func agreesWith(ans *authz.Answer, rec *record, scratch []byte) (ok, sameDecision bool) {
	if ans.Decision != rec.decision {
		return false, false
	}
	return ans.Gives(rec.reason, scratch), true
}

// agrees is agreesWith for the answer at base, whose grants are worded already.
func (t *trial) agrees(rec *record) (ok, sameDecision bool) {
	if t.ans.Decision == rec.decision {
		for i := range t.v.Grants {
			if t.v.Grants[i].Reason == rec.reason {
				return true, true
			}
		}
	}
	return agreesWith(&t.ans, rec, t.bufs.reason)
}

// noteUnrecorded notes a success without an authorization decision.
func (t *trial) noteUnrecorded(rec *record) {
	if !rec.unnoted || t.cfg != nil && t.cfg.Minor > 0 && t.cfg.Minor < 8 || t.e.User.Username == authn.UserUnsecured {
		return
	}
	t.v.AddContradiction(authz.ContradictionUnrecorded, "a response of "+strconv.Itoa(int(t.e.Code()))+" without "+event.AnnotationDecision)
}

// noteAuthorizers notes what the record says of the authorizers that they do not do.
func (t *trial) noteAuthorizers(rec *record) {
	if t.ans.ByMasters() && rec.decision == verdict.DecisionAllow && strings.HasPrefix(rec.reason, "RBAC: ") {
		t.v.AddContradiction(authz.ContradictionMastersAsked, "the group "+authn.GroupMasters+
			" is let through before RBAC is asked; recorded is "+strconv.Quote(verdict.Clip(rec.reason)))
	}
}

// reasonOrder notes a recorded reason that RBAC would not have come to: it asks all
// ClusterRoleBindings before any RoleBinding.
func (t *trial) reasonOrder(rec *record) {
	if !t.ans.ByRBAC() || !strings.HasPrefix(rec.reason, "RBAC: allowed by RoleBinding ") {
		return
	}
	if t.ans.RBAC.Grants[0].BindingKind() != rbacindex.KindClusterRoleBinding {
		return
	}
	// Inside the window the ClusterRoleBinding may not have been there yet.
	views := t.others()
	for i := range views {
		m := t.with(&views[i])
		other := t.askAgain(&m)
		if len(other.RBAC.Grants) == 0 || other.RBAC.Grants[0].BindingKind() != rbacindex.KindClusterRoleBinding {
			return
		}
	}
	t.v.AddContradiction(authn.ContradictionReasonOrder, "a RoleBinding is named, though "+t.v.Grants[0].Binding+" allows it first")
}

// unknownExplains reports whether an object that is not known at base could be the one the
// recorded reason names, and settles the verdict if so.
func (t *trial) unknownExplains(rec *record) bool {
	g, ok := reason.Parse(rec.reason)
	if !ok {
		return false
	}
	var missing []string
	switch {
	case t.base.View != nil:
		missing = unknownAmong(t.base.View, g)
	case t.ans.RBACOpen(): // an authorizer behind RBAC allows it
		missing = []string{"the cluster's roles and bindings"}
	}
	if len(missing) == 0 {
		return false
	}
	t.v.Outcome, t.v.Class, t.v.Missing = verdict.OutcomeIndeterminate, verdict.ClassUnknown, missing
	t.v.Cause = "the decision is certain, but the recorded reason names what is not known: " + strings.Join(missing, ", ")
	return true
}

// ask returns the answer of a moment to a question. Its grants are good until the next is asked.
func (t *trial) ask(m *moment, u *event.User, a *verdict.Attributes) authz.Answer {
	ans := m.chain.Authorize(u, a, &m.Moment, t.bufs.other)
	t.bufs.other = keep(t.bufs.other, ans.RBAC.Grants)
	return ans
}

// askAgain returns the answer of another moment to the same question.
func (t *trial) askAgain(m *moment) authz.Answer {
	return t.ask(m, t.e.EffectiveUser(), &t.v.Attributes)
}

// others returns the policies inside the window, the one at base among them.
func (t *trial) others() []state.View {
	if t.s == nil {
		return nil
	}
	from, to := t.window()
	return t.s.RBACWindow(from, to)
}

// disagree settles a verdict whose base answer is not the recorded one.
func (t *trial) disagree(rec *record, sameDecision bool) {
	v := t.v
	var open *authz.Answer
	for _, c := range t.candidates(t.ans.NodeAsked()) {
		ans := t.askAgain(&c.moment)
		if ok, _ := agreesWith(&ans, rec, t.bufs.reason); ok {
			if sameDecision && c.class == verdict.ClassSeveral { // whoever it was, this is what it decided
				v.Outcome, v.Config = verdict.OutcomeMatch, c.in.text
				return
			}
			v.Outcome, v.Class = verdict.OutcomeAmbiguous, c.class
			v.Cause = "the record agrees with the " + c.says(t.e.RequestReceivedTimestamp)
			return
		}
		if (ans.Decision == verdict.DecisionNone || ans.Free()) && open == nil {
			kept := ans
			open = &kept
		}
	}
	switch {
	case t.ans.Free():
		v.Outcome, v.Class, v.Missing = verdict.OutcomeIndeterminate, verdict.ClassWebhook, t.ans.Missing()
		v.Cause = t.webhookCause(rec)
		return
	case open != nil:
		v.Outcome, v.Class, v.Missing = verdict.OutcomeIndeterminate, verdict.ClassWebhook, open.Missing()
		if open.Decision == verdict.DecisionNone {
			v.Class = lackClass(open.Lack)
		}
		v.Cause = "inside the request's window not known: " + strings.Join(v.Missing, ", ")
		return
	}
	if t.unmodelled(rec) || t.otherVersion(rec) {
		return
	}
	v.Outcome, v.Missing = verdict.OutcomeDrift, append(v.Missing, t.doubts(rec)...)
	switch {
	case sameDecision:
		v.Class = verdict.ClassReason
	case t.ans.Decision == verdict.DecisionError:
		v.Class = verdict.ClassErrorMissed
	case rec.decision == verdict.DecisionAllow:
		v.Class = verdict.ClassAllowForbid
	default:
		v.Class = verdict.ClassForbidAllow
	}
	v.Cause = t.driftCause(rec)
}

// webhookCause says what only a webhook can have made of the request.
func (t *trial) webhookCause(rec *record) string {
	rest := "the rest of the chain "
	switch t.ans.Decision {
	case verdict.DecisionAllow:
		rest += "allows it (" + t.ans.Authorizer + ")"
	case verdict.DecisionError:
		rest += "fails on it"
	default:
		rest += "refuses it"
		if text := t.ans.Refusal(); text != "" {
			rest += " with " + strconv.Quote(verdict.Clip(text))
		}
	}
	text := "no reason"
	if rec.reason != "" {
		text = "the reason " + strconv.Quote(verdict.Clip(rec.reason))
	}
	return "only a webhook can explain the recorded " + rec.decision.String() + " with " + text + "; " + rest + "; " +
		strings.Join(t.v.Missing, ", ")
}

// driftCause names the object version that makes replica and record differ.
func (t *trial) driftCause(rec *record) string {
	if t.ans.Decision == verdict.DecisionError {
		return "the authorizers end in an error, which leaves no decision; recorded is " + rec.decision.String()
	}
	if rec.decision == verdict.DecisionForbid && t.ans.Decision == verdict.DecisionAllow {
		if !t.ans.ByRBAC() {
			return t.silent() + " allows it"
		}
		g := &t.ans.RBAC.Grants[0]
		return t.describe(g.BindingKey()) + " grants it through " + t.describe(g.RoleKey())
	}
	if rec.decision == verdict.DecisionForbid {
		return "recorded reason " + strconv.Quote(verdict.Clip(rec.reason)) + ", replayed " + strconv.Quote(verdict.Clip(t.ans.Refusal()))
	}
	if t.ans.Decision == verdict.DecisionAllow && !t.ans.ByRBAC() {
		return t.silent() + " allows it and gives no reason; recorded is " + strconv.Quote(verdict.Clip(rec.reason))
	}
	g, ok := reason.Parse(rec.reason)
	if !ok {
		if rec.reason == "" {
			return t.unexplainedSilence()
		}
		return "recorded reason " + strconv.Quote(verdict.Clip(rec.reason)) + " is none RBAC gives"
	}
	binding, role := g.Keys()
	if t.base.View == nil {
		return "the recorded reason names " + reason.ObjectName(binding)
	}
	if !slices.Contains(t.base.chain.Names(), verdict.AuthorizerRBAC) {
		return "the recorded reason is RBAC's, which is not configured; those that are: " + strings.Join(t.base.chain.Names(), ", ")
	}
	object, found := t.base.View.RBAC.Get(binding)
	if !found {
		return "the recorded reason names " + reason.ObjectName(binding) + ", " + t.absent(binding)
	}
	if _, ref, _ := rbacindex.BindingOf(object); ref.Kind != g.RoleKind || ref.Name != g.Role {
		return "the recorded reason says " + t.describe(binding) + " refers to " + g.RoleKind + " " + g.Role + "; it referred to " +
			ref.Kind + " " + ref.Name
	}
	if _, found := t.base.View.RBAC.Get(role); !found {
		return "the recorded reason names " + t.describe(binding) + " of " + reason.ObjectName(role) + ", " + t.absent(role)
	}
	return "the recorded reason names " + t.describe(binding) + " of " + t.describe(role) + ", which do not grant it"
}

// silent names the authorizer that allows without a reason.
func (t *trial) silent() string {
	text := "the " + t.ans.Authorizer + " authorizer"
	if t.ans.Line > 0 {
		text += " (line " + strconv.Itoa(t.ans.Line) + " of its policy file)"
	}
	return text
}

// unexplainedSilence says who allows without giving a reason, none of which did.
func (t *trial) unexplainedSilence() string {
	if t.base.chain.Assumed() {
		return "no reason is recorded, as for " + authn.GroupMasters + " or a node; this user is neither"
	}
	return "no reason is recorded, and of those authorizers that give none nobody allows it: " + strings.Join(t.base.chain.Names(), ", ")
}

// describe names an object and its version at base.
func (t *trial) describe(k rbacindex.Key) string {
	if v := t.versionOf(k); v.ResourceVersion != "" {
		return reason.ObjectName(k) + " (resourceVersion " + v.ResourceVersion + ")"
	}
	return reason.ObjectName(k)
}

// absent says that an object was not there at base, and since when if that is known.
func (t *trial) absent(k rbacindex.Key) string {
	if v := t.versionOf(k); v.Deleted && !v.NotAfter.IsZero() {
		return "which had been deleted by " + v.NotAfter.UTC().Format(verdict.TimestampFormat)
	}
	return "which did not exist"
}

func (t *trial) versionOf(k rbacindex.Key) state.Version {
	v, _ := t.s.Version(kept.ResourceOfRBAC(k.Kind).String(), k.Namespace, k.Name, t.base.At)
	return v
}
