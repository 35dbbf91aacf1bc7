package replay

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/reason"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/verdict"
)

// doubtAround is how far around a request an object's deletion, or an unknown write, leaves what
// a verdict says of it in doubt. Caches of apiservers and of controllers follow within it.
const doubtAround = 5 * time.Second

// unmodelled settles the verdict of a request that an authorizer decided which nobody told of:
// only it can have written the reason. Where a webhook is configured, the words may be its own, and
// it was not asked, or the verdict would be open.
func (t *trial) unmodelled(rec *record) bool {
	if rec.reason == "" || reason.BuiltIn(rec.reason) || t.base.chain.Worded() {
		return false
	}
	v := t.v
	v.Outcome, v.Class = verdict.OutcomeIndeterminate, verdict.ClassAuthorizer
	v.Missing = []string{"not-evaluable:authorizer (the apiserver's configuration names it: --apiserver-config)"}
	v.Cause = "the recorded " + rec.decision.String() + " gives the reason " + strconv.Quote(verdict.Clip(rec.reason)) +
		", which no built-in authorizer writes"
	if !t.base.chain.Assumed() {
		v.Missing[0] = "not-evaluable:authorizer (the configuration that was given names none but " + strings.Join(t.base.chain.Names()[1:],
			", ") + ")"
	}
	return true
}

// otherVersion reports whether another version of Kubernetes gives what is recorded, where the log
// does not show the apiserver's. Where none was given it settles the verdict; else it is in doubt.
func (t *trial) otherVersion(rec *record) bool {
	minor, given := t.unseenRelease(rec)
	if minor == 0 {
		return false
	}
	v := t.v
	v.Missing = []string{verdict.DoubtVersion + "Kubernetes " + releaseName(minor) + " gives this answer"}
	if given {
		return false
	}
	v.Outcome, v.Class = verdict.OutcomeIndeterminate, verdict.ClassConfig
	v.Cause = "not known: " + v.Missing[0]
	return true
}

// doubts names the objects on the way to the replayed and to the recorded answer of which it is
// not certain what they were.
func (t *trial) doubts(rec *record) []string {
	if t.s == nil {
		return nil
	}
	from, to := t.window()
	from, to = from.Add(-doubtAround), to.Add(doubtAround)
	var out []string
	add := func(k rbacindex.Key) {
		if why := t.s.Doubt(kept.ResourceOfRBAC(k.Kind).String(), k.Namespace, k.Name, from, to); why != "" {
			if text := verdict.DoubtObject + reason.ObjectName(k) + ": " + why; !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	if g, ok := reason.Parse(rec.reason); ok {
		binding, role := g.Keys()
		add(binding)
		add(role)
	}
	for i := range t.ans.RBAC.Grants {
		add(t.ans.RBAC.Grants[i].BindingKey())
		add(t.ans.RBAC.Grants[i].RoleKey())
	}
	if a := &t.v.Attributes; t.ans.NodeAsked() && a.ResourceRequest {
		node := strings.TrimPrefix(t.e.EffectiveUser().Username, authn.PrefixNode)
		answers := t.s.RelatedWithin(from, to, node, a.APIGroup, a.Resource, a.Namespace, a.Name)
		if answers.Has(graph.Unknown) || answers.Has(graph.Present) && answers.Has(graph.Absent) {
			out = append(out, verdict.DoubtObject+"pods of node "+node+": which were there changed")
		}
	}
	return out
}
