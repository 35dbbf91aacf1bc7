package replay

import (
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/implied"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// impersonationCache is how long constrained impersonation may act on an allowed attempt: it
// has two caches of ten seconds, and an entry of the outer one may be made from one of the
// inner.
const impersonationCache = 20 * time.Second

// impersonation checks whether the requestor may act as the impersonated user, and keeps the
// single checks. Nothing is done for a request that is not impersonated.
func (t *trial) impersonation() {
	if t.e.ImpersonatedUser == nil || t.uriErr != nil {
		return
	}
	plan := planImpersonation(t.e, &t.v.Attributes)
	t.v.Impersonation = t.mayImpersonate(&t.base, &plan, func(c verdict.Implied) {
		c.Check, c.Recorded = verdict.CheckImpersonation, verdict.DecisionAllow // the event itself proves it
		t.v.Implied = append(t.v.Implied, c)
	})
	t.v.CompleteImpersonation(true)
}

// mayImpersonate answers a plan at a moment. keep is called with each check; it may be nil.
func (t *trial) mayImpersonate(m *moment, plan *impersonationPlan, keep func(verdict.Implied)) *verdict.ImpersonationCheck {
	check := &verdict.ImpersonationCheck{Mode: plan.mode, Replayed: verdict.DecisionAllow}
	if plan.refuse != "" {
		check.Replayed, check.Missing = verdict.DecisionForbid, []string{plan.refuse}
		return check
	}
	for i := range plan.steps {
		step := &plan.steps[i]
		decision := t.impersonationStep(m, step, check, keep)
		switch {
		case decision == verdict.DecisionAllow:
			continue
		case decision == verdict.DecisionForbid:
			check.Replayed = verdict.DecisionForbid
		case check.Replayed == verdict.DecisionAllow:
			check.Replayed = verdict.DecisionNone
		}
		check.Missing = append(check.Missing, step.name)
	}
	return check
}

// impersonationStep asks the requestor's authorizer chain for one step and collects the grants.
func (t *trial) impersonationStep(m *moment, step *impersonationStep, check *verdict.ImpersonationCheck,
	keep func(verdict.Implied)) verdict.Decision {
	ask := func(a *verdict.Attributes) (verdict.Decision, verdict.Implied) {
		decision, grants, missing := t.further(m, &t.e.User, a)
		check.Grants = append(check.Grants, grants...)
		return decision, verdict.Implied{Attributes: *a, Replayed: decision, Grants: grants, Missing: missing}
	}
	open := false
	if step.any != nil {
		decision, c := ask(step.any)
		if decision == verdict.DecisionAllow {
			if keep != nil {
				keep(c)
			}
			return verdict.DecisionAllow
		}
		open = decision == verdict.DecisionNone
	}
	out := verdict.DecisionAllow
	for i := range step.all {
		decision, c := ask(&step.all[i])
		if keep != nil {
			keep(c)
		}
		if decision == verdict.DecisionForbid || decision == verdict.DecisionNone && out == verdict.DecisionAllow {
			out = decision
		}
	}
	if out == verdict.DecisionForbid && open {
		return verdict.DecisionNone
	}
	return out
}

// compareImpersonation turns a match into drift when the recorded impersonation cannot have
// been allowed: that the event names an impersonated user proves that it was.
func (t *trial) compareImpersonation() {
	check, v := t.v.Impersonation, t.v
	if check == nil || check.Replayed != verdict.DecisionForbid || v.Outcome != verdict.OutcomeMatch {
		return
	}
	plan := planImpersonation(t.e, &v.Attributes)
	if plan.refuse != "" {
		v.Outcome, v.Class, v.Cause = verdict.OutcomeDrift, verdict.ClassImpersonation, plan.refuse
		if plan.root {
			v.Class = verdict.ClassImpersonatedRoot
		}
		return
	}
	for _, c := range t.impersonationCandidates(plan.mode) {
		if t.mayImpersonate(&c.moment, &plan, nil).Replayed != verdict.DecisionForbid {
			v.Outcome, v.Class = verdict.OutcomeAmbiguous, verdict.ClassImpersonationRaced
			v.Cause = "the requestor may impersonate with the " + c.text
			return
		}
	}
	v.Outcome, v.Class = verdict.OutcomeDrift, verdict.ClassImpersonation
	v.Cause = t.e.User.Username + " is not granted: " + strings.Join(check.Missing, "; ")
	v.AddContradiction(implied.ContradictionUnauthorized, v.Cause)
}

// impersonationCandidates returns what else the apiserver may have decided an impersonation
// with. Successes of constrained impersonation are remembered for a while.
func (t *trial) impersonationCandidates(mode string) []candidate {
	if t.s == nil {
		return nil
	}
	if mode == modeLegacy {
		return t.candidates(t.ans.NodeAsked())
	}
	from, to := t.window()
	return append(t.nearest(t.s.RBACWindow(from.Add(-impersonationCache), to)), t.candidates(t.ans.NodeAsked())...)
}

// impersonationContradictions notes what an impersonation contradicts, whatever the outcome is.
func (t *trial) impersonationContradictions() {
	check, v := t.v.Impersonation, t.v
	if check == nil || t.e.ImpersonatedUser == nil {
		return
	}
	u := t.e.ImpersonatedUser
	if slices.Contains(u.Groups, authn.GroupMasters) {
		v.AddContradiction(authn.ContradictionImpersonatedRoot, verdict.Clip(t.e.User.Username)+" acts as a member of "+authn.GroupMasters+
			", mode "+verdict.Clip(check.Mode))
	}
	if t.e.User.Username == authn.UserAnonymous {
		v.AddContradiction(authn.ContradictionAnonymousImposter,
			"nobody authenticated, and the request was made as "+verdict.Clip(u.Username))
	}
	plan := planImpersonation(t.e, &v.Attributes)
	switch {
	case plan.shape:
		v.AddContradiction(authn.ContradictionImpersonatedMode, plan.refuse)
	case check.Mode != modeLegacy && !t.constrains():
		v.AddContradiction(authn.ContradictionImpersonatedMode, verdict.Clip(check.Mode)+" is recorded, and the apiserver's version or "+
			"feature gates know legacy impersonation alone")
	}
	if namespace, name, ok := authn.ServiceAccountUsername(u.Username); ok && t.s != nil {
		if _, known := t.s.ServiceAccount(namespace, name, t.e.RequestReceivedTimestamp); known == state.Absent &&
			!t.accountNear(namespace, name) {
			v.AddContradiction(implied.ContradictionAccountUnknown, "there was no service account "+verdict.Clip(namespace+"/"+name))
		}
	}
}

// accountNear reports whether a service account was there at an end of the request's window.
func (t *trial) accountNear(namespace, name string) bool {
	from, to := t.window()
	for _, at := range [...]time.Time{from, to} {
		if _, known := t.s.ServiceAccount(namespace, name, at); known != state.Absent {
			return true
		}
	}
	return false
}

// constrains reports whether the apiserver may do constrained impersonation: as a beta feature
// since 1.36, before that where it was switched on.
func (t *trial) constrains() bool {
	return t.in.rules.Enabled("ConstrainedImpersonation")
}
