package leastpriv

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// ErrUnknownSubject is wrapped by Suggest for a subject about which RBAC decided nothing.
var ErrUnknownSubject = errors.New("no request of the subject was decided by RBAC in this recording")

// Metadata returns labels and annotations of an object of the final policy, for rollback;
// State does not keep them.
type Metadata func(rbacindex.Key) metav1.ObjectMeta

// Options of advice. The zero value works.
type Options struct {
	// Metadata returns labels and annotations for the rollback; nil: there are none.
	Metadata Metadata
	// Recording is what suggestions report about the whole recording; zero: what the Collector saw.
	Recording Recording
	// Strict has suggestions hold exactly what was used, in roles of their own. The default is to narrow the roles that are held: see
	// narrow.
	Strict bool
	// NoAddedVerbs leaves out the verbs that narrowed roles keep although nobody used them.
	NoAddedVerbs bool
	// WildcardVerbs allows "*" as verb, with Strict; see wildcard.
	WildcardVerbs bool
}

// Advisor makes suggestions for the subjects of one Collector on one final policy. It is not safe
// for concurrent use, and the Collector must not be changed any more.
type Advisor struct {
	collector  *Collector
	state      *state.State
	view       state.View
	meta       Metadata
	recording  Recording
	strict     bool
	companions bool
	wild       bool
	own        map[string][]rbacindex.Key // bindings by the user name they name
	group      map[string][]rbacindex.Key // bindings by the group they name
	histories  map[string]*history
	indexes    map[string]*usedIndex // of the needs in histories
	maturities map[string]Maturity
	selectors  []labels.Selector // of aggregated roles, once they are asked for
	steps      int               // see effort
}

// Advise returns an Advisor on the policy as the state knows it at a moment.
func (c *Collector) Advise(st *state.State, at time.Time, o Options) *Advisor {
	a := &Advisor{collector: c, state: st, view: st.RBAC(at), meta: o.Metadata, recording: o.Recording, wild: o.WildcardVerbs,
		strict: o.Strict, companions: !o.NoAddedVerbs,
		histories: map[string]*history{}, indexes: map[string]*usedIndex{}, maturities: map[string]Maturity{}, steps: allSteps}
	if a.meta == nil {
		a.meta = func(rbacindex.Key) metav1.ObjectMeta { return metav1.ObjectMeta{} }
	}
	if a.recording.Requests == 0 {
		a.recording = c.Recording()
		a.recording.Describe(st, time.Time{})
	}
	a.own, a.group = boundBy(a.view.RBAC)
	return a
}

// Recording returns what suggestions say of the whole recording.
func (a *Advisor) Recording() Recording { return a.recording }

// usageOf returns what a subject did; for one that made no request but is bound, an empty usage.
func (a *Advisor) usageOf(subject string) (u *usage, seen bool, err error) {
	u, seen = a.collector.subjects[subject]
	switch {
	case seen && len(u.allowed)+len(u.refused)+len(u.hidden) > 0:
		return u, true, nil
	case !seen && len(a.own[subject]) > 0:
		return &usage{user: subject, groups: [][]string{GroupsOf(subject)}}, false, nil
	}
	return nil, false, fmt.Errorf("suggest for %q: %w", subject, ErrUnknownSubject)
}

// Suggest returns the change for one subject alone; Together joins several.
func (a *Advisor) Suggest(subject string) (*Suggestion, error) {
	u, seen, err := a.usageOf(subject)
	if err != nil {
		return nil, err
	}
	h := a.historyOf(subject)
	ix := a.indexOf(subject)
	s := &Suggestion{Subject: u.user, Groups: slices.SortedFunc(slices.Values(u.groups), slices.Compare[[]string]),
		System: a.collector.System(subject), Seen: seen, What: WhatSubject,
		Window: Window{From: a.recording.From, To: a.recording.To, Requests: u.requests, Judged: u.judged, Gaps: a.recording.Gaps},
		Apply:  Objects{}, Remove: []Remove{}, Rollback: Objects{}, Unused: []Unused{}, Keeps: []Keep{},
		Added: []Added{}, Why: []RuleReason{}, Owned: []Owned{}, Gaps: []string{}, Form: FormNarrow}
	if a.strict {
		s.Form = FormStrict
	}
	if u.requests > 0 {
		s.Window.Coverage = float64(u.judged) / float64(u.requests)
	}
	now := a.view.RBAC
	unused, loose, before, held := a.weigh(now, ix, a.own[subject])
	s.Unused, s.Excess = append(s.Unused, unused...), Excess{Before: before, After: before, Held: held}

	on, err := a.ground(subject, h)
	if err != nil {
		return nil, err
	}
	s.Maturity = a.maturityOf(subject, on.base)
	final := now
	s.Proof = h.prove(now, on)
	if !a.strict && s.Maturity.new(&a.recording) {
		s.Form = FormUnchanged
		s.Gaps = append(s.Gaps, s.Maturity.tooNew())
	} else if before > 0 || !s.Proof.Holds {
		if final, err = a.change(s, u, h, ix, on); err != nil {
			return nil, err
		}
	}
	s.Size = Size{Apply: len(s.Apply), Remove: len(s.Remove), Rollback: len(s.Rollback)}
	if !s.Changes() {
		loose = nil
	}
	s.Owned = a.owned(s.Apply, s.Remove)
	s.Why = append(s.Why, a.why(s.Apply, final, map[string]*rbacindex.Snapshot{subject: on.base}, s.reasons)...)
	a.keeps(s, u, ix, loose)
	a.gaps(s, u, h, final)
	return s, nil
}

func (a *Advisor) historyOf(subject string) *history {
	h, ok := a.histories[subject]
	if !ok {
		h = &history{}
		if u, seen := a.collector.subjects[subject]; seen {
			h = historyOf(u, a.state)
		}
		a.histories[subject] = h
	}
	return h
}

// indexOf finds the needs of a subject by what a rule grants.
func (a *Advisor) indexOf(subject string) *usedIndex {
	ix, ok := a.indexes[subject]
	if !ok {
		ix = indexNeeds(a.historyOf(subject).needs)
		a.indexes[subject] = ix
	}
	return ix
}

// maturityOf returns the maturity of a subject; base is the policy without its own bindings.
func (a *Advisor) maturityOf(subject string, base *rbacindex.Snapshot) Maturity {
	m, ok := a.maturities[subject]
	if !ok {
		m = maturityOf(a.historyOf(subject), base, a.recording.To)
		if u := a.collector.subjects[subject]; u != nil {
			m.fold(u.folded)
		}
		a.maturities[subject] = m
	}
	return m
}

// without returns the final policy without the subject in any binding.
func (a *Advisor) without(subject string) (*rbacindex.Snapshot, error) {
	var changes []rbacindex.Change
	for _, k := range a.own[subject] {
		o, _ := a.view.RBAC.Get(k)
		_, rest := parted(o, anyOf(map[string]bool{subject: true}, k.Namespace))
		changes = append(changes, rbacindex.Change{Key: k, Object: rest})
	}
	out, err := a.view.RBAC.Apply(changes...)
	if err != nil {
		return nil, fmt.Errorf("take %s out of its bindings: %w", subject, err)
	}
	return out, nil
}

// ground returns the policies that the subject's proofs are evaluated against.
func (a *Advisor) ground(subject string, h *history) (*ground, error) {
	base, err := a.without(subject)
	if err != nil {
		return nil, err
	}
	on := &ground{base: base}
	if !a.strict {
		on.today = a.view.RBAC
	}
	if !slices.ContainsFunc(h.refusals, func(n need) bool {
		return !h.before[anyGroups(n.key)] && !n.allowed(base) && (on.today == nil || n.allowed(on.today))
	}) {
		return on, nil
	}
	g := generator{base: base, subject: subjectOf(subject), user: subject, name: objectName(subject, 0), exact: true}
	plain := plainOf(h.needs)
	if _, on.forced, err = g.build(plain); err != nil {
		return nil, err
	}
	on.handed = on.forced
	if rules := roleWrites(h.needs); len(rules) > 0 {
		_, on.handed, err = g.build(append(plain, rules...))
	}
	return on, err
}

// change fills in what to apply and to remove, and proves it. Where narrowed roles cannot be proved, because a check needs more than verbs
// on resources, the subject gets roles of its own that hold exactly what it used, if that is no more than it holds; else nothing changes.
func (a *Advisor) change(s *Suggestion, u *usage, h *history, ix *usedIndex, on *ground) (*rbacindex.Snapshot, error) {
	if a.strict {
		return a.exactly(s, u, h, ix, on)
	}
	final, enough, err := a.narrowed(s, u, h, ix, on)
	if err != nil || s.Proof.Holds && enough {
		return final, err
	}
	why := "narrowed roles would refuse some of what was used"
	if !enough {
		why = "narrowing its roles is too much work"
	}
	narrow := *s
	s.Apply, s.Remove, s.Rollback, s.Added, s.Form = Objects{}, []Remove{}, Objects{}, []Added{}, FormStrict
	s.reasons = nil
	if final, err = a.exactly(s, u, h.heldIn(a.view.RBAC), ix, on); err != nil {
		return nil, err
	}
	if s.Proof = h.prove(final, on); s.Proof.Holds && a.noMore(s) {
		s.Gaps = append(s.Gaps, why+": it gets roles of its own that hold exactly that")
		return final, nil
	}
	s.Apply, s.Remove, s.Rollback, s.Form = Objects{}, []Remove{}, Objects{}, FormUnchanged
	s.Excess.After, s.Proof = s.Excess.Before, h.prove(a.view.RBAC, on)
	s.Gaps = append(s.Gaps, why+", and roles of its own would hold more than it does: nothing is suggested (--strict suggests those)")
	if len(narrow.Proof.Failures) > 0 {
		s.Gaps = append(s.Gaps, "with narrowed roles: "+narrow.Proof.Failures[0])
	}
	return a.view.RBAC, nil
}

// narrowed narrows the roles of one subject; false if that is too much work.
func (a *Advisor) narrowed(s *Suggestion, u *usage, h *history, ix *usedIndex, on *ground) (*rbacindex.Snapshot, bool, error) {
	whatever := func([]roleEdit) (bool, error) { return true, nil }
	edits, tooMuch, err := a.edits([]planned{{user: u.user, used: ix, form: FormNarrow}}, whatever)
	if err != nil {
		return nil, false, err
	}
	c := a.changeOf(edits)
	final, err := a.view.RBAC.Apply(c.changes()...)
	if err != nil {
		return nil, false, fmt.Errorf("narrow the roles of %s: %w", u.user, err)
	}
	s.Proof = h.prove(final, on)
	s.take(c)
	var own []rbacindex.Key
	for _, k := range a.own[u.user] {
		if bindsUser(final, k, u.user) {
			own = append(own, k)
		}
	}
	for _, o := range c.write {
		if k := change(o).Key; bindsUser(final, k, u.user) {
			own = append(own, k)
		}
	}
	_, _, s.Excess.After, _ = a.weigh(final, ix, own)
	return final, len(tooMuch) == 0, nil
}

// noMore reports whether everything that a suggestion applies is held today.
func (a *Advisor) noMore(s *Suggestion) bool {
	var groups []string
	for _, set := range s.Groups {
		groups = append(groups, set...)
	}
	for _, o := range s.Apply {
		if rules, ok := rbacindex.RulesOf(o); ok && !holds(a.view.RBAC, s.Subject, groups, change(o).Key.Namespace, rules) {
			return false
		}
	}
	return true
}

// exactly is a change to roles of the subject's own that hold what was used and nothing else.
func (a *Advisor) exactly(s *Suggestion, u *usage, h *history, ix *usedIndex, on *ground) (*rbacindex.Snapshot, error) {
	g := generator{base: on.base, subject: subjectOf(u.user), user: u.user}
	var objects []Object
	var final *rbacindex.Snapshot
	for salt := 0; ; salt++ {
		g.name = objectName(u.user, salt)
		var err error
		if objects, final, err = g.generate(h.needs); err != nil {
			return nil, err
		}
		if a.free(objects) {
			break
		}
	}
	s.Proof = h.prove(final, on)
	if s.Proof.NewlyAllowed > 0 {
		// Names were left open, and that may be what allows too much: name them all.
		g.exact = true
		exact, policy, err := g.generate(h.needs)
		if err != nil {
			return nil, err
		}
		if p := h.prove(policy, on); p.NewlyAllowed < s.Proof.NewlyAllowed {
			objects, final, s.Proof = exact, policy, p
		}
	}
	if a.wild {
		g.wild = true
		wide, policy, err := g.generate(h.needs)
		if err != nil {
			return nil, err
		}
		if p := h.prove(policy, on); p.Holds || !s.Proof.Holds && p.NewlyAllowed == s.Proof.NewlyAllowed {
			objects, final, s.Proof = wide, policy, p
		} else {
			s.Gaps = append(s.Gaps, "verbs are listed although a wildcard may be used: it would allow what was refused")
		}
	}

	kept := map[rbacindex.Key]bool{}
	for _, o := range objects {
		k := change(o).Key
		have, exists := a.view.RBAC.Get(k)
		if exists && sameObject(have, o) {
			kept[k] = true
			continue
		}
		s.Apply = append(s.Apply, o)
		if exists {
			s.Rollback = append(s.Rollback, a.restored(k, have))
		}
	}
	for _, k := range a.own[u.user] {
		if kept[k] {
			continue
		}
		o, _ := a.view.RBAC.Get(k)
		s.Remove = append(s.Remove, a.removal(k, o, anyOf(map[string]bool{u.user: true}, k.Namespace)))
		s.Rollback = append(s.Rollback, a.restored(k, o))
	}
	var own []rbacindex.Key
	for _, o := range objects {
		own = append(own, change(o).Key)
	}
	_, _, s.Excess.After, _ = a.weigh(final, ix, own)
	return final, nil
}

// why says of each rule of the roles that are written why it stays, for users by the bindings of the final policy; each comes with the
// policy without its own.
func (a *Advisor) why(apply Objects, final *rbacindex.Snapshot, users map[string]*rbacindex.Snapshot, reasons keptOf) []RuleReason {
	out, of := []RuleReason{}, map[string]gets{}
	for user, base := range users {
		of[user] = gets{user: user, used: a.indexOf(user), base: base}
	}
	for _, o := range apply {
		rules, ok := rbacindex.RulesOf(o)
		if !ok {
			continue
		}
		k := change(o).Key
		out = append(out, whyOf(k, rules, getting(final, k, of), reasons[k])...)
	}
	slices.SortStableFunc(out, compareReasons)
	return out
}

// free reports whether no object under these names belongs to anybody else: a binding of another
// role or other subjects, or a role that other bindings name.
func (a *Advisor) free(objects []Object) bool {
	for _, o := range objects {
		k := change(o).Key
		have, exists := a.view.RBAC.Get(k)
		if !exists {
			continue
		}
		if _, _, binding := rbacindex.BindingOf(o); binding {
			if !sameObject(have, o) {
				return false
			}
			continue
		}
		ours := true
		a.view.RBAC.ReferencingRole(k, func(b rbacindex.Key) bool {
			ours = b.Name == k.Name && b.Namespace == k.Namespace
			return ours
		})
		if !ours {
			return false
		}
	}
	return true
}

// sameObject reports whether two objects mean the same.
func sameObject(a, b any) bool {
	if as, ar, ok := rbacindex.BindingOf(a); ok {
		bs, br, _ := rbacindex.BindingOf(b)
		return ar == br && slices.Equal(as, bs)
	}
	as, _ := rbacindex.RulesOf(a)
	bs, _ := rbacindex.RulesOf(b)
	return slices.EqualFunc(as, bs, rbacindex.SameRule)
}

func (a *Advisor) removal(k rbacindex.Key, o any, goes func(*rbacv1.Subject) bool) Remove {
	went, rest := parted(o, goes)
	r := Remove{Kind: k.Kind.String(), Namespace: k.Namespace, Name: k.Name, Action: ActionDelete, Subjects: went, key: k}
	if rest != nil {
		r.Action, r.Object = ActionReplace, a.restored(k, rest)
	}
	return r
}

// restored returns a copy of an object with its type, labels and annotations.
func (a *Advisor) restored(k rbacindex.Key, o any) Object {
	from := a.meta(k)
	meta := metav1.ObjectMeta{Name: k.Name, Namespace: k.Namespace, Labels: from.Labels, Annotations: maps.Clone(from.Annotations)}
	delete(meta.Annotations, kubenames.LastApplied)
	c := o.(interface{ DeepCopyObject() runtime.Object }).DeepCopyObject().(metav1.ObjectMetaAccessor)
	*c.GetObjectMeta().(*metav1.ObjectMeta) = meta
	return typed(c)
}

// effort returns the budget of a subject.
func (a *Advisor) effort() *effort {
	return &effort{left: max(leastSteps, min(mostSteps, a.steps)), atoms: mostAtoms, all: &a.steps}
}

// weigh sums the weight of what bindings grant beyond what was used, and of all that they grant.
func (a *Advisor) weigh(s *rbacindex.Snapshot, ix *usedIndex, bindings []rbacindex.Key) (unused []Unused, loose []scopedAtom,
	total, held int) {
	e := a.effort()
	for _, k := range bindings {
		o, ok := s.Get(k)
		if !ok {
			continue
		}
		_, ref, ok := rbacindex.BindingOf(o)
		if !ok {
			continue
		}
		rules, _ := rulesOf(s, &ref, k.Namespace)
		un, lo, n, all := ix.unusedOf(k.String(), roleText(&ref, k.Namespace), rules, k.Namespace, e)
		unused, loose, total, held = append(unused, un...), append(loose, lo...), total+n, held+all
	}
	slices.SortStableFunc(unused, func(a, b Unused) int { return cmp.Compare(b.Excess, a.Excess) })
	return unused, loose, total, held
}

func roleText(ref *rbacv1.RoleRef, namespace string) string {
	if ref.Kind == "Role" {
		return "Role/" + namespace + "/" + ref.Name
	}
	return ref.Kind + "/" + ref.Name
}
