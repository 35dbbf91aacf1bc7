package leastpriv

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
)

// ErrUnbound is wrapped by SuggestFor for what no binding gives to anybody.
var ErrUnbound = errors.New("no binding names it")

// Target is what a suggestion may be for besides a subject: a group, or a role or binding.
type Target struct {
	Group  string
	Object rbacindex.Key // used if there is no group
}

// what returns the kind of a target, and its name.
func (t *Target) what() (what, name string) {
	switch t.Object.Kind {
	case rbacindex.KindRole, rbacindex.KindClusterRole:
		what = WhatRole
	default:
		what = WhatBinding
	}
	if t.Group != "" {
		return WhatGroup, t.Group
	}
	return what, t.Object.String()
}

// bindings returns those that a target is about.
func (a *Advisor) bindings(t *Target) (out []rbacindex.Key) {
	switch what, _ := t.what(); what {
	case WhatGroup:
		return a.group[t.Group]
	case WhatRole:
		a.view.RBAC.ReferencingRole(t.Object, func(b rbacindex.Key) bool {
			out = append(out, b)
			return true
		})
		slices.SortFunc(out, rbacindex.Key.Compare)
	default:
		if _, there := a.view.RBAC.Get(t.Object); there {
			out = append(out, t.Object)
		}
	}
	return out
}

// SuggestFor returns the change for all who hold something by a target: its roles narrowed to what anybody used that they allow, whatever
// else allows it too. So it may be applied with other suggestions, in any order. The plan is that change.
func (a *Advisor) SuggestFor(t Target) (*Suggestion, *Plan, error) {
	what, name := t.what()
	bound := a.bindings(&t)
	if len(bound) == 0 {
		return nil, nil, fmt.Errorf("suggest for %s %q: %w", what, name, ErrUnbound)
	}
	whole := holder{everyone: t.Group == "", group: t.Group}
	through, roles, err := a.through(bound, &whole)
	if err != nil {
		return nil, nil, err
	}
	nothing, err := rbacindex.New()
	if err != nil {
		return nil, nil, fmt.Errorf("begin with no policy: %w", err)
	}
	u := a.usesOf(through, nothing)
	s := &Suggestion{Subject: name, What: what, Groups: [][]string{}, System: kubenames.Own(t.Object.Name) || kubenames.Own(t.Group),
		Seen: len(u.users) > 0, Form: FormNarrow,
		Window: Window{From: a.recording.From, To: a.recording.To, Requests: u.requests, Judged: u.judged, Gaps: a.recording.Gaps},
		Apply:  Objects{}, Remove: []Remove{}, Rollback: Objects{}, Unused: []Unused{}, Keeps: []Keep{},
		Added: []Added{}, Why: []RuleReason{}, Owned: []Owned{}, Gaps: []string{}}
	if t.Group != "" {
		s.Groups = append(s.Groups, []string{t.Group})
	}
	if u.requests > 0 {
		s.Window.Coverage = float64(u.judged) / float64(u.requests)
	}
	unused, _, before, held := a.weigh(a.view.RBAC, u.ix, bound)
	s.Unused, s.Excess = append(s.Unused, unused...), Excess{Before: before, After: before, Held: held}
	s.Maturity = maturityOf(&history{needs: u.needs}, nothing, a.recording.To)
	s.Maturity.fold(a.foldedOf(bound, &whole))
	final := a.view.RBAC
	switch {
	case s.Maturity.new(&a.recording):
		s.Form = FormUnchanged
		s.Gaps = append(s.Gaps, s.Maturity.tooNew())
	case before > 0:
		if final, err = a.narrowTarget(s, u, roles, bound, &whole); err != nil {
			return nil, nil, err
		}
	}
	if s.Proof, err = a.proveAll(u, final); err != nil {
		return nil, nil, err
	}
	narrowed := len(s.Apply)+len(s.Remove) > 0
	if before > 0 && s.Form == FormNarrow && !narrowed {
		s.Gaps = append(s.Gaps, "somebody needed each right of its roles, here or there: what is unused of them can be taken from single "+
			"bindings or subjects")
	}
	if worse := s.Excess.After >= before; narrowed && (worse || !s.Proof.Holds) {
		why := "narrowed roles, with the verbs that go with those used, would leave as much unused: nothing is suggested"
		if !s.Proof.Holds {
			why = "narrowed roles would refuse some of what was used, such as " + s.Proof.Failures[0] + ": nothing is suggested"
		}
		s.Gaps = append(s.Gaps, why)
		s.Apply, s.Remove, s.Rollback, s.Added, s.Form = Objects{}, []Remove{}, Objects{}, []Added{}, FormUnchanged
		s.Excess.After, final = s.Excess.Before, a.view.RBAC
		if s.Proof, err = a.proveAll(u, final); err != nil {
			return nil, nil, err
		}
	}
	s.Size = Size{Apply: len(s.Apply), Remove: len(s.Remove), Rollback: len(s.Rollback)}
	s.Owned = a.owned(s.Apply, s.Remove)
	for _, o := range s.Apply {
		if rules, ok := rbacindex.RulesOf(o); ok {
			k := change(o).Key
			s.Why = append(s.Why, whyOf(k, rules, u.users, s.reasons[k])...)
		}
	}
	slices.SortStableFunc(s.Why, compareReasons)
	a.gaps(s, &usage{groups: s.Groups}, &history{needs: u.needs}, final)
	return s, &Plan{Apply: s.Apply, Remove: s.Remove, Rollback: s.Rollback, Why: s.Why, Owned: s.Owned, Holds: s.Proof.Holds,
		Proofs: []Proof{s.Proof}, Final: a.thoseOf(final, bound, s.Apply)}, nil
}

// through returns a policy of bindings alone, for the subjects that a holder is, and the roles they are of.
func (a *Advisor) through(bound []rbacindex.Key, of *holder) (*rbacindex.Snapshot, map[rbacindex.Key]*holder, error) {
	roles := map[rbacindex.Key]*holder{}
	var objects []any
	for _, k := range bound {
		o, _ := a.view.RBAC.Get(k)
		_, ref, _ := rbacindex.BindingOf(o)
		rules, known := rulesOf(a.view.RBAC, &ref, k.Namespace)
		if !known {
			continue // the role does not exist: its bindings give nothing
		}
		role := rbacindex.RoleKey(&ref, k.Namespace)
		if roles[role] == nil {
			h := *of
			h.part = newPart(rules)
			roles[role] = &h
			r, _ := a.view.RBAC.Get(role)
			objects = append(objects, r)
		}
		roles[role].bindings = append(roles[role].bindings, k)
		if _, rest := parted(o, func(s *rbacv1.Subject) bool { return !of.is(s, k.Namespace) }); rest != nil {
			objects = append(objects, rest)
		}
	}
	out, err := rbacindex.New(objects...)
	if err != nil {
		return nil, nil, fmt.Errorf("take the bindings alone: %w", err)
	}
	return out, roles, nil
}

// uses are what everybody did that a policy allows.
type uses struct {
	users            []gets
	ix               *usedIndex // of all of it
	needs            []need     // the same
	requests, judged int64      // of these users, whatever allowed them
}

// usesOf collects them; each need counts, whatever else allows it, as the policy without what it is asked for is base.
func (a *Advisor) usesOf(through, base *rbacindex.Snapshot) *uses {
	out := &uses{ix: &usedIndex{by: map[atom][]int{}}}
	for _, user := range slices.Sorted(maps.Keys(a.collector.subjects)) {
		ix := a.indexOf(user).allowedBy(through)
		a.bindingBy(through, user, ix)
		if len(ix.asked) == 0 {
			continue
		}
		did := a.collector.subjects[user]
		out.requests, out.judged = out.requests+did.requests, out.judged+did.judged
		out.users = append(out.users, gets{user: user, used: ix, base: base, scopes: map[string]bool{"": true}})
		for i := range ix.asked {
			if i == 0 || ix.of[i] != ix.of[i-1] {
				out.needs = append(out.needs, *ix.of[i])
			}
			out.ix.add(&ix.asked[i], ix.of[i])
		}
	}
	return out
}

// bindingBy adds what a user had to hold to write bindings, as it may not bind: the rules of the roles that these name.
func (a *Advisor) bindingBy(through *rbacindex.Snapshot, user string, ix *usedIndex) {
	needs := a.historyOf(user).needs
	for i := range needs {
		n := &needs[i]
		if !n.alternative || n.attrs.Verb != "bind" || a.view.RBAC.Authorize(&n.attrs, nil).Allowed {
			continue
		}
		for _, q := range n.written() {
			if through.Authorize(&q, nil).Allowed {
				ix.add(&q, n)
			}
		}
	}
}

// foldedOf counts the requests that a cap left untold, of those to whom bindings give anything.
func (a *Advisor) foldedOf(bound []rbacindex.Key, of *holder) (folded int64) {
	for name, u := range a.collector.subjects {
		if u.folded == 0 {
			continue
		}
		held := slices.ContainsFunc(bound, func(k rbacindex.Key) bool {
			o, _ := a.view.RBAC.Get(k)
			subjects, _, _ := rbacindex.BindingOf(o)
			return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
				inGroup := s.Kind == rbacv1.GroupKind && slices.ContainsFunc(u.groups, func(set []string) bool {
					return slices.Contains(set, s.Name)
				})
				return of.is(&s, k.Namespace) && (inGroup || rbacindex.UserOf(&s, k.Namespace) == name)
			})
		})
		if held {
			folded += u.folded
		}
	}
	return folded
}

// narrowTarget fills in the change: each role as one, for all of its holders.
func (a *Advisor) narrowTarget(s *Suggestion, u *uses, roles map[rbacindex.Key]*holder, bound []rbacindex.Key,
	of *holder) (*rbacindex.Snapshot, error) {
	nothing, err := rbacindex.New()
	if err != nil {
		return nil, fmt.Errorf("begin with no policy: %w", err)
	}
	if !assign(u.ix, nothing, roles, a.effort()) {
		s.Gaps = append(s.Gaps, "narrowing it is too much work: nothing is suggested")
		s.Form = FormUnchanged
		return a.view.RBAC, nil
	}
	learning := false
	for _, h := range roles {
		learning = learning || !s.Maturity.Learned && h.part.writes()
	}
	var edits []roleEdit
	for _, role := range slices.SortedFunc(maps.Keys(roles), rbacindex.Key.Compare) {
		h := roles[role]
		if a.companions {
			h.part.complement(learning)
		}
		e := roleEdit{role: role, inPlace: a.editable(role, func(b rbacindex.Key, subject *rbacv1.Subject) bool {
			return slices.Contains(bound, b) && of.is(subject, b.Namespace)
		})}
		if h.part.empty() {
			e.leave = append(e.leave, h)
		} else {
			e.shares = append(e.shares, share{holders: []*holder{h}, part: h.part, complete: h.part.complete()})
		}
		edits = append(edits, e)
	}
	c := a.changeOf(edits)
	final, err := a.view.RBAC.Apply(c.changes()...)
	if err != nil {
		return nil, fmt.Errorf("narrow %s: %w", s.Subject, err)
	}
	s.take(c)
	var left []rbacindex.Key
	for _, k := range bound {
		o, _ := final.Get(k)
		if went, _ := parted(o, func(subject *rbacv1.Subject) bool { return of.is(subject, k.Namespace) }); len(went) > 0 {
			left = append(left, k)
		}
	}
	for _, o := range c.write {
		if k := change(o).Key; !slices.Contains(left, k) {
			left = append(left, k)
		}
	}
	_, _, s.Excess.After, _ = a.weigh(final, u.ix, left)
	return final, nil
}

// proveAll replays the histories of all users against a final state, and adds up the proofs.
func (a *Advisor) proveAll(u *uses, final *rbacindex.Snapshot) (sum Proof, err error) {
	sum.Holds = true
	for i := range u.users {
		h := a.historyOf(u.users[i].user)
		on, err := a.ground(u.users[i].user, h)
		if err != nil {
			return sum, err
		}
		on.today = a.view.RBAC
		p := h.prove(final, on)
		sum.Holds = sum.Holds && p.Holds
		sum.Requests, sum.Accesses, sum.Refused = sum.Requests+p.Requests, sum.Accesses+p.Accesses, sum.Refused+p.Refused
		sum.Refusals, sum.NewlyAllowed, sum.Implied = sum.Refusals+p.Refusals, sum.NewlyAllowed+p.NewlyAllowed, sum.Implied+p.Implied
		sum.AllowedBefore, sum.AllowedByKept = sum.AllowedBefore+p.AllowedBefore, sum.AllowedByKept+p.AllowedByKept
		sum.AllowedToday, sum.TakenAway = sum.AllowedToday+p.AllowedToday, sum.TakenAway+p.TakenAway
		sum.LeftOut += p.LeftOut
		for _, f := range p.Failures {
			if len(sum.Failures) < maxFailures {
				sum.Failures = append(sum.Failures, u.users[i].user+": "+f)
			}
		}
	}
	return sum, nil
}

// thoseOf returns the bindings and their roles of a policy that a change is about, and what it makes.
func (a *Advisor) thoseOf(policy *rbacindex.Snapshot, bound []rbacindex.Key, made Objects) Objects {
	keys := map[rbacindex.Key]bool{}
	for _, k := range bound {
		keys[k] = true
	}
	for _, o := range made {
		keys[change(o).Key] = true
	}
	for _, k := range slices.Collect(maps.Keys(keys)) {
		o, _ := policy.Get(k)
		if _, ref, ok := rbacindex.BindingOf(o); ok {
			keys[rbacindex.RoleKey(&ref, k.Namespace)] = true
		}
	}
	out := Objects{}
	for _, k := range slices.SortedFunc(maps.Keys(keys), rbacindex.Key.Compare) {
		if o, there := policy.Get(k); there {
			out = append(out, a.finally(k, o))
		}
	}
	return out
}
