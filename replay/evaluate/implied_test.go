package evaluate

import (
	"slices"
	"testing"

	"github.com/retrial-io/retrial/replay/implied"
	"github.com/retrial-io/retrial/verdict"
)

// TestImpliedCorpus answers the checks behind the authorization filter over the bundled
// recording: what its responses show of them, the replica says too.
func TestImpliedCorpus(t *testing.T) {
	_, all := run(t, full(t))
	type row struct {
		check              string
		replayed, recorded verdict.Decision
	}
	count, refusals := map[row]int{}, 0
	for _, j := range all {
		v := j.verdict
		for _, c := range v.Implied {
			count[row{c.Check, c.Replayed, c.Recorded}]++
			if c.Replayed == verdict.DecisionNone {
				t.Logf("%s %s %s: %s not known: %v", j.event.EffectiveUser().Username, j.event.Verb, j.event.RequestURI, c.Check, c.Missing)
			}
		}
		for i, f := range v.Identity {
			if f == implied.ContradictionMismatch || f == implied.ContradictionUnauthorized {
				t.Errorf("%s %s %s %d: %s: %s", j.event.EffectiveUser().Username, j.event.Verb, j.event.RequestURI, j.event.Code(),
					f, v.Evidence[i])
			}
		}
		if c := v.Impersonation; c != nil && c.Recorded == verdict.DecisionForbid {
			refusals++
			if c.Replayed != verdict.DecisionForbid || c.Cause == "" {
				t.Errorf("%s %s: refused impersonation, replayed %s: %s", j.event.User.Username, j.event.RequestURI, c.Replayed, c.Cause)
			}
		}
	}
	for r, n := range count {
		t.Logf("%-20s replayed %-7s recorded %-7s %d", r.check, r.replayed, r.recorded, n)
	}
	for _, r := range []row{
		{verdict.CheckWebsocket, verdict.DecisionForbid, verdict.DecisionForbid},
		{verdict.CheckRoleEscalate, verdict.DecisionAllow, verdict.DecisionAllow},
		{verdict.CheckRoleEscalate, verdict.DecisionForbid, verdict.DecisionForbid},
		{verdict.CheckRoleBind, verdict.DecisionAllow, verdict.DecisionAllow},
		{verdict.CheckRoleBind, verdict.DecisionForbid, verdict.DecisionForbid},
		{verdict.CheckCreateOnUpdate, verdict.DecisionAllow, verdict.DecisionAllow},
		{verdict.CheckSignerApprove, verdict.DecisionForbid, verdict.DecisionForbid},
		{verdict.CheckImpersonation, verdict.DecisionAllow, verdict.DecisionAllow},
		{verdict.CheckImpersonation, verdict.DecisionForbid, verdict.DecisionForbid},
	} {
		if count[r] == 0 {
			t.Errorf("no %s replayed %s, recorded %s", r.check, r.replayed, r.recorded)
		}
	}
	if refusals == 0 {
		t.Error("no refused impersonation")
	}
	if !slices.ContainsFunc(all, func(j judgement) bool {
		return slices.ContainsFunc(j.verdict.Implied, func(c verdict.Implied) bool { return c.Covered && len(c.Grants) == 0 })
	}) {
		t.Error("no check passed by holding the rules")
	}
}
