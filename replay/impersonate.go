package replay

import (
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/replay/authn"
)

// impersonation checks at a moment whether the requestor may act as the impersonated user;
// nil when the request is not impersonated.
func (t *trial) impersonation(m *moment) *ImpersonationCheck {
	if t.e.ImpersonatedUser == nil || t.uriErr != nil {
		return nil
	}
	plan := planImpersonation(t.e, &t.v.Attributes)
	check := &ImpersonationCheck{Mode: plan.mode, Replayed: DecisionAllow}
	if plan.refuse != "" {
		check.Replayed, check.Missing = DecisionForbid, []string{plan.refuse}
		return check
	}
	for i := range plan.steps {
		step := &plan.steps[i]
		switch t.step(m, step, check) {
		case DecisionAllow:
			continue
		case DecisionForbid:
			check.Replayed = DecisionForbid
		case DecisionNone:
			if check.Replayed == DecisionAllow {
				check.Replayed = DecisionNone
			}
		}
		check.Missing = append(check.Missing, step.name)
	}
	return check
}

// step asks the requestor's authorizer chain for one step and collects the grants.
func (t *trial) step(m *moment, step *impersonationStep, check *ImpersonationCheck) Decision {
	u := &t.e.User
	open := false
	if step.any != nil {
		ans := m.authorize(u, step.any, t.bufs.other)
		t.bufs.other = keep(t.bufs.other, ans.RBAC.Grants)
		if ans.Decision == DecisionAllow {
			check.Grants = t.bufs.detach(check.Grants, ans.RBAC.Grants)
			return DecisionAllow
		}
		open = ans.Certain() == DecisionNone
	}
	for i := range step.all {
		ans := m.authorize(u, &step.all[i], t.bufs.other)
		t.bufs.other = keep(t.bufs.other, ans.RBAC.Grants)
		decision := ans.Decision
		if ans.Free() && decision != DecisionAllow {
			decision = DecisionNone // a webhook can have allowed it
		}
		switch decision {
		case DecisionAllow:
			check.Grants = t.bufs.detach(check.Grants, ans.RBAC.Grants)
		case DecisionNone:
			open = true
		default:
			if step.any == nil {
				return DecisionForbid
			}
			if open {
				return DecisionNone
			}
			return DecisionForbid
		}
	}
	if open {
		return DecisionNone
	}
	return DecisionAllow
}

// compareImpersonation turns a match into drift when the recorded impersonation cannot have
// been allowed: that the event names an impersonated user proves that it was.
func (t *trial) compareImpersonation() {
	check := t.v.Impersonation
	if check == nil {
		return
	}
	for _, g := range t.e.ImpersonatedUser.Groups {
		if g == authn.GroupMasters {
			t.v.find(authn.FindingImpersonatedRoot, "impersonated "+strconv.Quote(t.e.ImpersonatedUser.Username)+" with the group "+g)
		}
	}
	if t.e.User.Username == authn.UserAnonymous {
		t.v.find(authn.FindingAnonymousImposter, authn.UserAnonymous+" impersonated "+strconv.Quote(t.e.ImpersonatedUser.Username))
	}
	if check.Replayed != DecisionForbid {
		return
	}
	v := t.v
	plan := planImpersonation(t.e, &v.Attributes)
	if plan.refuse != "" {
		v.Outcome, v.Class, v.Cause = OutcomeDrift, ClassImpersonation, plan.refuse
		if plan.root {
			v.Class = ClassImpersonatedRoot
		}
		if plan.shape {
			v.find(authn.FindingImpersonatedMode, plan.refuse)
		}
		return
	}
	if t.s != nil {
		from, to := t.window()
		if plan.mode != modeLegacy {
			from = from.Add(-impersonationCache)
		}
		for _, c := range t.nearest(t.s.RBACWindow(from, to)) {
			if other := t.impersonation(&c.moment); other.Replayed != DecisionForbid {
				v.Outcome, v.Class = OutcomeAmbiguous, ClassImpersonationRaced
				v.Cause = "the requestor may impersonate with the " + c.text
				return
			}
		}
	}
	v.Outcome, v.Class = OutcomeDrift, ClassImpersonation
	v.Cause = t.e.User.Username + " is not granted: " + strings.Join(check.Missing, "; ")
}
