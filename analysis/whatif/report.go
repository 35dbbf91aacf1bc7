package whatif

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/verdict"
)

// Bounds of an answer.
const (
	mostGrants  = 8       // of an access, by each policy
	accessSteps = 1 << 20 // of one question by one policy, see rbacindex.Steps
)

// Report says what becomes of the accesses that were observed.
type Report struct {
	// Summary counts accesses of those whom the draft concerns, Requests their requests.
	Summary  Counts `json:"summary"`
	Requests Counts `json:"requests"`
	// Accesses are those that change, or may: revoked ones first, and of each class those asked for most.
	Accesses []Access `json:"accesses"`
	// Unjudged are requests of theirs that had no certain verdict, by outcome and class: they are in no class.
	Unjudged map[string]int64 `json:"unjudged"`
	// Unreadable counts writes of roles, bindings and certificates whose content is not kept: the checks behind them are not looked at.
	Unreadable int64 `json:"unreadable"`
	// First and Last are when the first and the last request came.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Report asks both policies about all that was observed.
func (c *Comparison) Report() *Report {
	r := &Report{Accesses: []Access{}, Unjudged: maps.Clone(c.unjudged), Unreadable: c.unreadable, First: c.first, Last: c.last}
	for k, u := range c.accesses {
		a := c.classify(&k, u)
		*r.Summary.Of(a.Class)++
		*r.Requests.Of(a.Class) += u.count
		if a.Class != Unchanged {
			r.Accesses = append(r.Accesses, a)
		}
	}
	order := map[Class]int{}
	for i, class := range Classes() {
		order[class] = i
	}
	slices.SortFunc(r.Accesses, func(a, b Access) int {
		return cmp.Or(order[a.Class]-order[b.Class], cmp.Compare(b.Count, a.Count), strings.Compare(a.Subject, b.Subject),
			strings.Compare(a.Path, b.Path), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.APIGroup, b.APIGroup),
			strings.Compare(a.Resource, b.Resource), strings.Compare(a.Subresource, b.Subresource), strings.Compare(a.Verb, b.Verb),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Check, b.Check), slices.Compare(a.Groups, b.Groups),
			cmp.Compare(a.Allowed, b.Allowed), a.First.Compare(b.First))
	})
	return r
}

// reply is what one policy makes of an access.
type reply struct {
	decision verdict.Decision // None: what is not known decides
	free     bool             // a webhook was asked, whose answer is in no log
	grants   []verdict.GrantNames
	missing  []string
	by       []rbacindex.Key // bindings and roles of the grants
}

// classify says what becomes of one access.
func (c *Comparison) classify(k *accessKey, u *use) Access {
	a := Access{Source: SourceRBAC, Subject: k.who.user.Username, Groups: k.who.user.Groups, Verb: k.verb, APIGroup: k.group,
		Resource: k.res, Subresource: k.subresource, Namespace: k.namespace, Name: k.name, Path: k.path, Check: k.check,
		Count: u.count, Allowed: u.allowed,
		Refused: u.refused, First: u.first, Last: u.last, Before: []verdict.GrantNames{}, After: []verdict.GrantNames{},
		Because: []string{}, Sample: append([]string{}, u.sample...)}
	if a.Groups == nil {
		a.Groups = []string{}
	}
	if k.other { // a draft of RBAC takes nothing of it, and what it was, it is
		a.Class = Unchanged
		return a
	}
	before, after := c.ask(&c.sim.Before, k, u), c.ask(&c.sim.After, k, u)
	a.Class = classOf(&before, &after, k.decided, c.o.Recorded)
	if a.Class == Unchanged {
		return a
	}
	if k.perhaps {
		switch a.Class {
		case Revoked:
			a.Class = MaybeRevoked
		case Gained:
			a.Class = MaybeGained
		}
	}
	a.Before, a.After = append(a.Before, before.grants...), append(a.After, after.grants...)
	for _, key := range slices.Concat(before.by, after.by) {
		if text := key.String(); slices.Contains(c.sim.Changed, key) && !slices.Contains(a.Because, text) {
			a.Because = append(a.Because, text)
		}
	}
	a.Missing = append(before.missing, after.missing...)
	slices.Sort(a.Missing)
	a.Missing = slices.Compact(a.Missing)
	return a
}

// classOf compares two replies. A policy that leaves an access to a webhook leaves it to the same answer whenever it does.
func classOf(before, after *reply, decided verdict.Decision, recorded bool) Class {
	was := before.decision
	switch {
	case before.free && after.free && !recorded:
		return Unchanged
	case recorded || before.free: // the record shows what the webhook answered
		was = decided
	}
	switch is := after.decision; {
	case before.free && was == verdict.DecisionNone:
		return Unknown
	case after.free:
		return Unknown
	case was == is && was != verdict.DecisionNone:
		return Unchanged
	case was == verdict.DecisionAllow && is == verdict.DecisionForbid:
		return Revoked
	case is == verdict.DecisionAllow && was == verdict.DecisionForbid:
		return Gained
	case is == verdict.DecisionNone && was == verdict.DecisionNone:
		if slices.Equal(before.missing, after.missing) {
			return Unchanged
		}
		return MaybeRevoked
	case was == verdict.DecisionAllow, is == verdict.DecisionForbid:
		return MaybeRevoked
	}
	return MaybeGained
}

// ask puts an access to one policy, as it was last made.
func (c *Comparison) ask(view *state.View, k *accessKey, u *use) reply {
	attrs := k.attributes()
	out := c.authorize(view, k, &attrs, u)
	if out.decision != verdict.DecisionAllow && k.or != "" && k.or != k.name {
		attrs.Name = k.or
		out = either(out, c.authorize(view, k, &attrs, u))
	}
	if out.decision == verdict.DecisionAllow {
		return out
	}
	switch k.check {
	case verdict.CheckRoleEscalate:
		out = either(out, c.holds(view, k, u.wanted, u.wanted))
	case verdict.CheckRoleBind:
		out = either(out, c.holdsRole(view, k))
	}
	return out
}

// either joins two ways to pass.
func either(one, other reply) reply {
	switch {
	case other.decision == verdict.DecisionAllow:
		return other
	case other.decision == verdict.DecisionNone:
		one.decision, one.missing = verdict.DecisionNone, append(one.missing, other.missing...)
	}
	one.by = append(one.by, other.by...)
	return one
}

// authorize asks the chain.
func (c *Comparison) authorize(view *state.View, k *accessKey, attrs *verdict.Attributes, u *use) reply {
	moment := authz.Moment{At: u.last, View: view, Graph: c.o.Graph, Steps: rbacindex.NewSteps(accessSteps)}
	var buffer [mostGrants]rbacindex.Grant
	ans := c.o.Chain.Authorize(&k.who.user, attrs, &moment, buffer[:0])
	out := reply{decision: ans.Decision, free: ans.Free() && ans.Decision != verdict.DecisionAllow}
	if ans.Decision == verdict.DecisionError {
		out.decision = verdict.DecisionForbid
	}
	if out.decision != verdict.DecisionAllow {
		out.missing = ans.Missing()
		return out
	}
	if !ans.ByRBAC() {
		return out
	}
	for i, g := range ans.RBAC.Grants {
		out.by = append(out.by, g.BindingKey(), g.RoleKey())
		if i < mostGrants {
			out.grants = append(out.grants, verdict.GrantNames{Binding: content.ObjectOf(g.BindingKey()).String(),
				Role: content.ObjectOf(g.RoleKey()).String(), Subject: subjectText(g), Rule: g.Rule()})
		}
	}
	return out
}

// subjectText names the subject of a grant as answers do.
func subjectText(g rbacindex.Grant) string {
	if ns := g.SubjectNamespace(); ns != "" {
		return g.SubjectKind() + "/" + ns + "/" + g.Subject()
	}
	return g.SubjectKind() + "/" + g.Subject()
}

// holdsRole reports whether the rules of the role that a check to bind is about are held.
func (c *Comparison) holdsRole(view *state.View, k *accessKey) reply {
	attrs := k.attributes()
	key := roleOf(&attrs)
	role, found := view.RBAC.Get(key)
	least, _ := rbacindex.RulesOf(role)
	most := least
	switch {
	case view.IsDoubted(key) && found:
		perhaps, _ := view.Most.Get(key)
		most, _ = rbacindex.RulesOf(perhaps)
	case !found && view.IsUnknown(key):
		return reply{missing: []string{authz.UnknownName(key)}}
	case !found:
		return reply{decision: verdict.DecisionForbid, by: []rbacindex.Key{key}}
	}
	out := c.holds(view, k, least, most)
	out.by = append(out.by, key)
	return out
}

// holds reports whether rules are held.
func (c *Comparison) holds(view *state.View, k *accessKey, least, most []rbacv1.PolicyRule) reply {
	who := &k.who.user
	h := authz.Holds(view, who.Username, who.Groups, k.namespace, least, most, 1, rbacindex.NewSteps(rbacindex.CoverSteps))
	switch {
	case h.Held:
		return reply{decision: verdict.DecisionAllow}
	case len(h.Lacks) > 0:
		return reply{decision: verdict.DecisionForbid}
	}
	return reply{missing: h.Missing}
}
