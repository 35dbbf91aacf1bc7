package replay

import (
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/implied"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// impliedChecks evaluates what the request implies, as the policy at base has it. A request that
// the replica refuses never gets there.
func (t *trial) impliedChecks() {
	if t.ans.Decision == verdict.DecisionForbid || t.ans.Decision == verdict.DecisionError {
		return
	}
	t.deriveImplied()
}

// deriveImplied derives and answers the checks.
func (t *trial) deriveImplied() {
	var known implied.State
	if t.base.View != nil {
		t.policy = policyAt{t.base.View, t.s, t.base.At}
		known = &t.policy
	}
	t.checks = implied.Of(t.e, &t.v.Attributes, t.in.rules, known)
	t.evaluate(t.checks)
}

// evaluate appends the answers to checks.
func (t *trial) evaluate(checks []implied.Check) {
	u := t.e.EffectiveUser()
	for i := range checks {
		t.v.Implied = append(t.v.Implied, t.check(&t.base, u, &checks[i]))
	}
}

// impliedRecord reads what the response shows of the checks, and of which others it shows that
// they were made. An answer that the response contradicts, with every policy the apiserver may
// have seen, is a contradiction.
func (t *trial) impliedRecord(rec *record) {
	if rec.decision == verdict.DecisionForbid {
		for i := range t.v.Implied {
			implied.Unread(t.v.Implied[i].Missing)
		}
	}
	if rec.decision != verdict.DecisionAllow {
		return
	}
	if t.ans.Decision == verdict.DecisionForbid && t.checks == nil {
		t.deriveImplied() // the apiserver let pass what the replica does not
	}
	shown := implied.Shown(t.e, &t.v.Attributes)
	t.evaluate(shown)
	t.checks = append(t.checks, shown...)
	first := len(t.v.Implied) - len(t.checks) // those of impersonation come before
	for i := range t.checks {
		c, answer := &t.checks[i], &t.v.Implied[first+i]
		switch implied.Recorded(c, t.e) {
		case implied.Passed:
			answer.Recorded = verdict.DecisionAllow
		case implied.Refused:
			answer.Recorded = verdict.DecisionForbid
		}
		if answer.Recorded == verdict.DecisionNone || answer.Replayed == verdict.DecisionNone || answer.Recorded == answer.Replayed ||
			t.explained(c, answer) {
			continue
		}
		t.v.AddContradiction(implied.ContradictionMismatch,
			c.Name+": recorded "+answer.Recorded.String()+", replayed "+answer.Replayed.String()+
				" of "+verdict.Clip(answer.Attributes.Question()))
	}
}

// explained reports whether something else that the apiserver may have decided with inside the
// request's window answers a check as recorded, or could.
func (t *trial) explained(c *implied.Check, answer *verdict.Implied) bool {
	u, recorded := t.e.EffectiveUser(), answer.Recorded
	if ans := t.ask(&t.base, u, &answer.Attributes); ans.Free() {
		return true // a webhook may have refused what others allow
	}
	for _, other := range t.candidates(t.ans.NodeAsked()) {
		if got := t.check(&other.moment, u, c).Replayed; got == recorded || got == verdict.DecisionNone {
			return true
		}
	}
	return false
}

// check answers one check at a moment.
func (t *trial) check(m *moment, u *event.User, c *implied.Check) verdict.Implied {
	out := verdict.Implied{Check: c.Name, Attributes: c.Attributes, Perhaps: c.Perhaps}
	if c.Name == verdict.CheckRoleEscalate {
		out.Wanted = handedOut(c)
	}
	if c.Attributes.Verb == "" {
		out.Missing = c.Open
		return out
	}
	var open []string
	ask := func(a *verdict.Attributes) bool {
		decision, grants, missing := t.further(m, u, a)
		switch decision {
		case verdict.DecisionAllow:
			out.Replayed, out.Attributes, out.Grants = verdict.DecisionAllow, *a, grants
			return true
		case verdict.DecisionNone:
			open = append(open, missing...)
		}
		return false
	}
	allowed := ask(&c.Attributes)
	for i := 0; i < len(c.Or) && !allowed; i++ {
		allowed = ask(&c.Or[i])
	}
	lacks := ""
	if c.Cover {
		out.Covered, lacks = m.covers(u, c, &t.steps, &open)
	}
	switch {
	case allowed, out.Covered:
		out.Replayed = verdict.DecisionAllow
	case len(open) > 0 || len(c.Open) > 0:
		out.Missing = slices.Compact(append(open, c.Open...))
	default:
		out.Replayed = verdict.DecisionForbid
		if lacks != "" {
			out.Missing = []string{lacks}
		}
	}
	return out
}

// further puts one further question to the chain. It is none where a webhook, whose answer no log
// holds, could have allowed what nobody else does.
func (t *trial) further(m *moment, u *event.User, a *verdict.Attributes) (verdict.Decision, []verdict.Grant, []string) {
	ans := t.ask(m, u, a)
	switch {
	case ans.Decision == verdict.DecisionAllow && ans.ByRBAC():
		return verdict.DecisionAllow, t.words(ans.RBAC.Grants), nil
	case ans.Decision == verdict.DecisionAllow:
		return verdict.DecisionAllow, nil, nil
	case ans.Decision == verdict.DecisionNone || ans.Free():
		return verdict.DecisionNone, nil, ans.Missing()
	}
	return verdict.DecisionForbid, nil, nil
}

// handedOut returns the rules of a written role: with full authority where it has, or had, an aggregationRule.
func handedOut(c *implied.Check) []rbacv1.PolicyRule {
	if !c.Full {
		return c.Rules
	}
	return slices.Concat(c.Rules, rbacindex.FullAuthority())
}

// covers reports whether the subject's own rules, of RBAC alone, hold all that a role hands out.
// lacks says what is not covered; what is not known, or takes more than the steps left to the
// event, goes to open.
func (m *moment) covers(u *event.User, c *implied.Check, steps *rbacindex.Steps, open *[]string) (covered bool, lacks string) {
	if m.View == nil || len(c.Open) > 0 {
		return false, ""
	}
	least, most := handedOut(c), c.Rules
	var doubted []string
	if c.Ref != nil {
		key := rbacindex.RoleKey(c.Ref, c.Attributes.Namespace)
		role, found := m.View.RBAC.Get(key)
		least, _ = rbacindex.RulesOf(role)
		most = least
		switch {
		case m.View.IsDoubted(key):
			name := authz.DoubtedName(m.View, key)
			if !found {
				*open = append(*open, name)
				return false, ""
			}
			perhaps, _ := m.View.Most.Get(key)
			most, _ = rbacindex.RulesOf(perhaps)
			doubted = []string{name}
		case found:
		case m.View.IsUnknown(key):
			*open = append(*open, authz.UnknownName(key))
			return false, ""
		default:
			return false, authz.UnknownName(key) + " does not exist"
		}
	}
	if c.PerhapsFull && !c.Full {
		doubted = append(doubted, "whether the role had an aggregationRule")
	}
	if c.Full || c.PerhapsFull {
		most = append(slices.Clone(most), rbacindex.FullAuthority()...)
	}
	holding := authz.Holds(m.View, u.Username, u.Groups, c.Attributes.Namespace, least, most, mostLacking+1, steps)
	if len(holding.Lacks) > 0 {
		return false, "not held: " + verdict.Clip(rulesText(holding.Lacks))
	}
	if !holding.Held {
		*open = append(append(*open, doubted...), holding.Missing...)
	}
	return holding.Held, ""
}

// mostLacking is how many pieces of what is not held are named.
const mostLacking = 4

// rulesText writes the first pieces of what is not held as "verb resource.group".
func rulesText(rules []rbacv1.PolicyRule) string {
	var parts []string
	for i := range rules {
		r := &rules[i]
		if i == mostLacking {
			parts = append(parts, "and more")
			break
		}
		text := strings.Join(r.Verbs, ",")
		switch {
		case len(r.NonResourceURLs) > 0:
			text += " " + strings.Join(r.NonResourceURLs, ",")
		case strings.Join(r.APIGroups, "") == "":
			text += " " + strings.Join(r.Resources, ",")
		default:
			text += " " + strings.Join(r.Resources, ",") + "." + strings.Join(r.APIGroups, ",")
		}
		if len(r.ResourceNames) > 0 {
			text += " " + strings.Join(r.ResourceNames, ",")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// policyAt answers package implied from the state at a moment.
type policyAt struct {
	view *state.View
	s    *state.State
	at   time.Time
}

func (p *policyAt) Role(namespace, name string) (implied.Role, implied.Known) {
	key := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: name}
	if namespace != "" {
		key = rbacindex.Key{Kind: rbacindex.KindRole, Namespace: namespace, Name: name}
	}
	o, known := p.get(key)
	if known == implied.Unknown {
		return implied.Role{Aggregates: key.Kind == rbacindex.KindClusterRole && p.perhapsAggregates(key)}, known
	}
	rules, _ := rbacindex.RulesOf(o)
	return implied.Role{Rules: rules, Aggregates: aggregates(o)}, known
}

// perhapsAggregates reports whether a role that is not known may aggregate others.
func (p *policyAt) perhapsAggregates(key rbacindex.Key) bool {
	if !p.view.IsDoubted(key) || p.view.IsPart(key) {
		return true
	}
	o, _ := p.view.Most.Get(key)
	return aggregates(o)
}

func aggregates(role any) bool {
	r, ok := role.(*rbacv1.ClusterRole)
	return ok && r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) > 0
}

func (p *policyAt) Binding(namespace, name string) (rbacv1.RoleRef, []rbacv1.Subject, implied.Known) {
	key := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: name}
	if namespace != "" {
		key = rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: namespace, Name: name}
	}
	o, known := p.get(key)
	subjects, role, _ := rbacindex.BindingOf(o)
	return role, subjects, known
}

func (p *policyAt) Signer(name string) (string, implied.Known) {
	return p.s.Signer(name, p.at)
}

func (p *policyAt) get(key rbacindex.Key) (any, implied.Known) {
	if p.view.IsUnknown(key) {
		return nil, implied.Unknown
	}
	if o, found := p.view.RBAC.Get(key); found {
		return o, implied.Present
	}
	return nil, implied.Absent
}
