package leastpriv

import (
	"fmt"
	"maps"
	"slices"

	"github.com/retrial-io/retrial/rbacindex"
)

// Plan joins several suggestions. A binding that more than one of them leaves is replaced once,
// without all of their subjects.
type Plan struct {
	Apply    Objects  `json:"apply"`    // objects to write
	Remove   []Remove `json:"remove"`   // objects to delete
	Rollback Objects  `json:"rollback"` // objects that undo the plan
	// Why says of each rule of the roles in Apply why it stays.
	Why []RuleReason `json:"why"`
	// Owned are the objects to write or to remove that something else writes: the change has to be made there.
	Owned []Owned `json:"owned"`
	// Final are the RBAC objects of the final state that concern the subjects: their bindings,
	// those of their groups, and the roles that these name.
	Final Objects `json:"final"`
	Holds bool    `json:"holds"` // every recorded access is decided as before
	// Proofs are those of the subjects, in the order of the suggestions, against the policy
	// with all of the suggestions in force.
	Proofs []Proof `json:"proofs"`

	reasons keptOf
}

// Counted leaves out the objects: the proofs stay.
func (p *Plan) Counted() {
	p.Apply, p.Remove, p.Rollback, p.Final, p.Why, p.Owned = Objects{}, []Remove{}, Objects{}, Objects{}, []RuleReason{}, []Owned{}
}

// Together joins suggestions of this Advisor.
func (a *Advisor) Together(suggestions []*Suggestion) (*Plan, error) {
	if !a.strict {
		return a.narrowedTogether(suggestions)
	}
	p := &Plan{Apply: Objects{}, Remove: []Remove{}, Rollback: Objects{}, Proofs: []Proof{}, Holds: true}
	leaving := map[rbacindex.Key]map[string]bool{}
	var order []rbacindex.Key
	back := map[rbacindex.Key]bool{}
	var changes []rbacindex.Change
	for _, s := range suggestions {
		for _, o := range s.Apply {
			p.Apply = append(p.Apply, o)
			changes = append(changes, change(o))
		}
		for _, r := range s.Remove {
			if leaving[r.key] == nil {
				leaving[r.key] = map[string]bool{}
				order = append(order, r.key)
			}
			leaving[r.key][s.Subject] = true
		}
		for _, o := range s.Rollback {
			if k := change(o).Key; !back[k] {
				back[k] = true
				p.Rollback = append(p.Rollback, o)
			}
		}
	}
	slices.SortFunc(order, rbacindex.Key.Compare)
	base := make([]rbacindex.Change, 0, len(order))
	for _, k := range order {
		o, _ := a.view.RBAC.Get(k)
		r := a.removal(k, o, anyOf(leaving[k], k.Namespace))
		p.Remove = append(p.Remove, r)
		base = append(base, rbacindex.Change{Key: k, Object: r.Object})
	}
	kept, err := a.view.RBAC.Apply(base...)
	if err != nil {
		return nil, fmt.Errorf("remove bindings: %w", err)
	}
	final, err := kept.Apply(changes...)
	if err != nil {
		return nil, fmt.Errorf("apply suggestions: %w", err)
	}
	return p, a.proveTogether(p, final, suggestions)
}

// narrowedTogether narrows the roles of all subjects at once: a role that several of them hold is edited in place, or divided among them.
func (a *Advisor) narrowedTogether(suggestions []*Suggestion) (*Plan, error) {
	users := make([]planned, 0, len(suggestions))
	var own, back Objects // of those that get roles of their own
	for _, s := range suggestions {
		u := planned{user: s.Subject, used: a.indexOf(s.Subject), form: s.Form}
		switch {
		case s.Form == FormStrict:
			own, back = append(own, s.Apply...), append(back, s.Rollback...)
			for i := range s.Remove {
				u.leaves = append(u.leaves, s.Remove[i].key)
			}
		case len(s.Apply)+len(s.Remove) == 0:
			u.form = FormUnchanged // its own roles were all used
		}
		users = append(users, u)
	}
	var c *roleChange
	var final *rbacindex.Snapshot
	if _, _, err := a.edits(users, func(edits []roleEdit) (fits bool, err error) {
		c = a.changeOf(edits)
		c.write = append(c.write, own...)
		if final, err = a.view.RBAC.Apply(c.changes()...); err != nil {
			return false, fmt.Errorf("narrow roles: %w", err)
		}
		return len(users) == 1 || size(final)-len(own) <= size(a.view.RBAC), nil // of one, the plan is the suggestion
	}); err != nil {
		return nil, err
	}
	for _, o := range back {
		if k := change(o).Key; !slices.ContainsFunc(c.rollback, func(have Object) bool { return change(have).Key == k }) {
			c.rollback = append(c.rollback, o)
		}
	}
	p := &Plan{Apply: append(Objects{}, c.write...), Remove: append([]Remove{}, c.remove...), Rollback: append(Objects{}, c.rollback...),
		Proofs: []Proof{}, Holds: true, reasons: c.reasons}
	return p, a.proveTogether(p, final, suggestions)
}

// proveTogether evaluates the histories of all subjects against a final state.
func (a *Advisor) proveTogether(p *Plan, final *rbacindex.Snapshot, suggestions []*Suggestion) error {
	users := map[string]*rbacindex.Snapshot{}
	for _, s := range suggestions {
		h := a.historyOf(s.Subject)
		on, err := a.ground(s.Subject, h)
		if err != nil {
			return err
		}
		users[s.Subject] = on.base
		proof := h.prove(final, on)
		p.Proofs = append(p.Proofs, proof)
		p.Holds = p.Holds && proof.Holds
	}
	p.Final = a.concerning(final, suggestions)
	p.Why, p.Owned = a.why(p.Apply, final, users, p.reasons), a.owned(p.Apply, p.Remove)
	return nil
}

// concerning returns the objects of a policy that concern subjects.
func (a *Advisor) concerning(policy *rbacindex.Snapshot, suggestions []*Suggestion) Objects {
	users, groups := map[string]bool{}, map[string]bool{}
	for _, s := range suggestions {
		users[s.Subject] = true
		for _, set := range s.Groups {
			for _, g := range set {
				groups[g] = true
			}
		}
	}
	keys := map[rbacindex.Key]any{}
	policy.All(func(k rbacindex.Key, o any) bool {
		subjects, ref, ok := rbacindex.BindingOf(o)
		if !ok {
			return true
		}
		for i := range subjects {
			s := &subjects[i]
			if !users[rbacindex.UserOf(s, k.Namespace)] && !(s.Kind == "Group" && groups[s.Name]) {
				continue
			}
			keys[k] = o
			role := rbacindex.RoleKey(&ref, k.Namespace)
			if r, found := policy.Get(role); found {
				keys[role] = r
			}
			break
		}
		return true
	})
	out := make(Objects, 0, len(keys))
	for _, k := range slices.SortedFunc(maps.Keys(keys), rbacindex.Key.Compare) {
		out = append(out, a.finally(k, keys[k]))
	}
	return out
}

// finally returns an object of a final state, with its metadata if it is what it was.
func (a *Advisor) finally(k rbacindex.Key, o any) Object {
	if have, ok := a.view.RBAC.Get(k); ok && sameObject(have, o) {
		return a.restored(k, o)
	}
	return o
}

// maxFailures bounds the requests a Proof names.
const maxFailures = 10

// ground holds the policies that a subject's proofs are evaluated against.
type ground struct {
	// base is the policy without the subject's own bindings: what it allows does not come from the
	// suggestion.
	base *rbacindex.Snapshot
	// forced is base with one exact rule for each plain request on record: every policy that allows
	// them allows at least that. It is nil where no refusal needs it: none is allowed today, beyond which nothing is suggested, or each is
	// explained otherwise.
	forced *rbacindex.Snapshot
	// handed is forced with what the roles the subject wrote need: a right to write one role is a
	// right to write others with rules it names, and escalate, which a create cannot limit to a
	// name, is a right to write any in that namespace.
	handed *rbacindex.Snapshot
	// today is the policy beyond which nothing is suggested; nil: what was used is, whatever is granted today.
	today *rbacindex.Snapshot
}

// prove evaluates the whole history again.
func (h *history) prove(final *rbacindex.Snapshot, on *ground) Proof {
	p := Proof{Accesses: len(h.needs), Refusals: len(h.refusals)}
	for i := range h.leftOut {
		if n := &h.leftOut[i]; n.allowed(final) {
			p.Requests += n.count
			p.Accesses++
		} else {
			p.LeftOut += n.count
		}
	}
	fail := func(what string, n *need) {
		if len(p.Failures) < maxFailures {
			p.Failures = append(p.Failures, what+": "+n.String())
		}
	}
	for i := range h.needs {
		n := &h.needs[i]
		if on.today != nil && !n.allowed(on.today) {
			p.TakenAway += n.count
			p.Accesses--
			continue
		}
		p.Requests += n.count
		if !n.allowed(final) {
			p.Refused += n.count
			fail("refused", n)
		}
	}
	for i := range h.refusals {
		n := &h.refusals[i]
		if !n.allowed(final) {
			continue
		}
		switch h.explains(n, on) {
		case allowedBefore:
			p.AllowedBefore++
		case allowedByKept:
			p.AllowedByKept++
		case comesWith:
			p.Implied++
		case allowedToday:
			p.AllowedToday++
		case nothingExplains:
			p.NewlyAllowed++
			fail("newly allowed", n)
		}
	}
	p.Holds = p.Refused == 0 && p.NewlyAllowed == 0
	return p
}

// explanation returns why a refusal on record may be allowed by a final state.
type explanation int

const (
	nothingExplains explanation = iota
	allowedBefore
	allowedByKept
	comesWith
	allowedToday
)

func (h *history) explains(n *need, on *ground) explanation {
	switch {
	case h.before[anyGroups(n.key)]:
		return allowedBefore
	case n.allowed(on.base):
		return allowedByKept
	case on.forced != nil && (n.allowed(on.forced) || n.alternative && n.allowed(on.handed)):
		return comesWith
	case on.today != nil && n.allowed(on.today):
		return allowedToday
	}
	return nothingExplains
}
