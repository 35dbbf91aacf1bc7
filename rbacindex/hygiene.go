package rbacindex

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
)

// FlawKind is the kind of a flaw in a policy.
type FlawKind uint8

// Flaws. Those that Idle calls so can all be removed together without changing any decision.
const (
	// FlawMissingRole: a binding names a role that does not exist, or an unknown role kind.
	FlawMissingRole FlawKind = iota + 1
	// FlawNoSubject: no subject of a binding can match anybody.
	FlawNoSubject
	// FlawEmptyRole: a binding's role allows nothing.
	FlawEmptyRole
	// FlawDuplicateBinding: all that a binding gives its subjects, another binding to the same
	// role gives them as well.
	FlawDuplicateBinding
	// FlawShadowedBinding: all that a binding gives its subjects, other bindings give them.
	FlawShadowedBinding
	// FlawShadowedRule: other rules of the same role cover a rule, or it allows nothing.
	FlawShadowedRule
	// FlawUnboundRole: no binding names a role. It may be there to be aggregated, or to be bound
	// for a while.
	FlawUnboundRole
	// FlawEverybody: a binding grants something to every authenticated user (system:authenticated),
	// or to everybody (system:unauthenticated, system:anonymous).
	FlawEverybody
	// FlawTooLarge: finding out whether other bindings grant what a binding does, or other rules of
	// a role what one does, takes more work than the budget allows.
	FlawTooLarge
)

// flaws are the kinds in a few words.
var flaws = [...]string{ //nolint:gochecknoglobals // constant table
	FlawMissingRole: "missing role", FlawNoSubject: "no subject", FlawEmptyRole: "empty role", FlawDuplicateBinding: "duplicate binding",
	FlawShadowedBinding: "shadowed binding", FlawShadowedRule: "shadowed rule", FlawUnboundRole: "unbound role",
	FlawEverybody: "grants everybody", FlawTooLarge: "too large to check",
}

// String returns the kind in a few words.
func (k FlawKind) String() string { return flaws[k] }

// Idle reports whether what has the flaw does nothing: removing it changes no decision.
func (k FlawKind) Idle() bool { return k != FlawEverybody && k != FlawTooLarge }

// Flaw is something that is wrong with a policy, or does nothing in it.
type Flaw struct {
	Kind FlawKind
	Key  Key // the binding, or the role
	Role Key // of a binding
	// Rule is the index in the role's rules, FlawShadowedRule only.
	Rule int
	// Subject is the group or user that stands for everybody, FlawEverybody only.
	Subject rbacv1.Subject
	// By are the bindings that make it superfluous, in order. One may be named as superfluous
	// itself: what does so then stands in for both.
	By []Key
}

// Hygiene finds what is idle in a policy and what it grants to everybody, sorted by key. All that is idle can be
// removed together: of two bindings that each make the other superfluous, only one is named. What is found idle is idle
// for subjects by themselves: a user's binding counts as shadowed only by bindings of that user, not by those of groups
// it may be in.
//
// Removals change no decision about requests that URLs can make; a removed binding to a missing role takes its evaluation error
// along.
//
// The work is bounded whatever the policy looks like: all bindings and roles share hygieneSteps, each may use at most
// CoverSteps of them and is guaranteed hygieneLeast. What takes more is FlawTooLarge.
func (s *Snapshot) Hygiene() []Flaw {
	c := cleaner{s: s, gone: map[*binding]bool{}, left: hygieneSteps}
	c.all()
	return c.flaws
}

// all finds every flaw.
func (c *cleaner) all() {
	s := c.s
	var bindings []*binding
	add := func(b *binding) bool {
		bindings = append(bindings, b)
		return true
	}
	s.clusterRoleBindings.all(add)
	s.roleBindings.all(add)
	// RoleBindings first: of a pair it is the narrower that goes.
	slices.SortFunc(bindings, func(a, b *binding) int { return a.key().Compare(b.key()) })
	for _, b := range bindings {
		c.binding(b)
	}
	var all []*role
	roles := func(t trie[*role], uses trie[*uses]) {
		t.all(func(r *role) bool {
			ns, name := r.id()
			if _, used := uses.get(s.family.hasher, ns, name); !used {
				c.flaws = append(c.flaws, Flaw{Kind: FlawUnboundRole, Key: r.key()})
			}
			all = append(all, r)
			return true
		})
	}
	roles(s.clusterRoles, s.clusterRoleUses)
	roles(s.roles, s.roleUses)
	// Those of few rules first: one that is large leaves them what they need.
	slices.SortStableFunc(all, func(a, b *role) int {
		return cmp.Or(cmp.Compare(len(a.rules()), len(b.rules())), a.key().Compare(b.key()))
	})
	for _, r := range all {
		c.rules(r)
	}
	slices.SortStableFunc(c.flaws, func(a, b Flaw) int {
		return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rule, b.Rule))
	})
}

// Steps of a run of Hygiene, and what a binding or a role has whatever others took.
const (
	hygieneSteps = 1 << 23
	hygieneLeast = 1 << 13
)

// cleaner is one run of Hygiene.
type cleaner struct {
	s     *Snapshot
	flaws []Flaw
	gone  map[*binding]bool // found idle: others must not rest on them
	left  int               // of hygieneSteps
}

// within runs a check of one binding or role with the steps it may take, and reports whether
// they sufficed.
func (c *cleaner) within(check func(*Steps)) bool {
	return withShare(&c.left, hygieneLeast, CoverSteps, check)
}

// binding finds what is wrong with a binding.
func (c *cleaner) binding(b *binding) {
	f := Flaw{Key: b.key(), Role: b.roleKey()}
	r := c.s.role(f.Role)
	named := 0
	for i := range b.subjects() {
		if _, _, ok := b.principal(&b.subjects()[i]); ok {
			named++
		}
	}
	switch {
	case r == nil:
		f.Kind = FlawMissingRole
	case named == 0:
		f.Kind = FlawNoSubject
	case !slices.ContainsFunc(r.rules(), func(r rbacv1.PolicyRule) bool { return gives(&r, b.rb == nil) }):
		f.Kind = FlawEmptyRole
	case !c.within(func(steps *Steps) { f.Kind, f.By = c.shadowed(b, r, steps) }):
		c.flaws = append(c.flaws, Flaw{Kind: FlawTooLarge, Key: f.Key, Role: f.Role})
		f.Kind = 0
	}
	if f.Kind != 0 {
		c.gone[b] = true
		c.flaws = append(c.flaws, f)
		return
	}
	for _, s := range b.subjects() {
		if s.Kind == rbacv1.GroupKind && (s.Name == kubenames.Authenticated || s.Name == kubenames.Unauthenticated) ||
			s.Kind == rbacv1.UserKind && s.Name == kubenames.Anonymous {
			c.flaws = append(c.flaws, Flaw{Kind: FlawEverybody, Key: f.Key, Role: f.Role, Subject: s})
		}
	}
}

// gives reports whether a rule gives anything; those of namespaces give no paths.
func gives(r *rbacv1.PolicyRule, cluster bool) bool {
	return len(r.Verbs) > 0 && (len(r.APIGroups) > 0 && len(r.Resources) > 0 || cluster && len(r.NonResourceURLs) > 0)
}

// shadowed reports whether others give every subject of b all that b does, and which. The answer
// counts only if the steps sufficed.
func (c *cleaner) shadowed(b *binding, r *role, steps *Steps) (FlawKind, []Key) {
	wanted := r.rules()
	if b.rb != nil {
		wanted = slices.Clone(wanted)
		for i := range wanted {
			wanted[i].NonResourceURLs = nil
		}
	}
	kind := FlawDuplicateBinding
	by := map[*binding]bool{}
	var last []*binding // that were enough for the subject before
	for i := range b.subjects() {
		name, group, ok := b.principal(&b.subjects()[i])
		if !ok {
			continue
		}
		others, ok := c.others(b, name, group, steps)
		if !ok {
			return 0, nil
		}
		if i := slices.IndexFunc(others, func(o *binding) bool { return c.s.role(o.roleKey()) == r }); i >= 0 {
			by[others[i]] = true
			continue
		}
		kind = FlawShadowedBinding
		if len(others) == 0 || !slices.Equal(others, last) && !c.covered(wanted, others, by, steps) {
			return 0, nil
		}
		last = others
	}
	keys := make([]Key, 0, len(by))
	for o := range by {
		keys = append(keys, o.key())
	}
	slices.SortFunc(keys, Key.Compare)
	return kind, keys
}

// others returns the bindings that give something to a subject wherever b does; false if the
// steps did not suffice.
func (c *cleaner) others(b *binding, name string, group bool, steps *Steps) ([]*binding, bool) {
	h := c.s.family.hasher
	p, ok := c.s.principals(group).get(h, "", name)
	if !ok {
		return nil, steps.take(1)
	}
	var out []*binding
	add := func(r *ref) bool {
		if r.b != b && !c.gone[r.b] && c.s.role(r.b.roleKey()) != nil {
			out = append(out, r.b)
		}
		return steps.take(stepsABinding)
	}
	if !p.cluster.all(add) {
		return nil, false
	}
	if b.rb != nil {
		if sp, ok := p.spaces.get(h, "", b.rb.Namespace); ok && !sp.refs.all(add) {
			return nil, false
		}
	}
	slices.SortFunc(out, func(x, y *binding) int { return x.key().Compare(y.key()) })
	return out, true
}

// covered reports whether others' rules cover all that is wanted, and adds those it takes: of
// several that would do the first.
func (c *cleaner) covered(wanted []rbacv1.PolicyRule, others []*binding, by map[*binding]bool, steps *Steps) bool {
	cover := func(some []*binding) bool {
		var owner []*rbacv1.PolicyRule
		seen := map[*role]bool{}
		for _, o := range some {
			r := c.s.role(o.roleKey())
			if !seen[r] {
				seen[r], owner = true, pointers(owner, r.rules())
			}
		}
		return allCovered(owner, wanted, steps)
	}
	if !cover(others) {
		return false
	}
	var needed []*binding
	for rest := others; !cover(needed); {
		at := sort.Search(len(rest), func(i int) bool { return cover(slices.Concat(needed, rest[:i+1])) })
		if at == len(rest) {
			return false // the steps did not suffice
		}
		needed, rest = append(needed, rest[at]), rest[:at]
	}
	for _, o := range needed {
		by[o] = true
	}
	return true
}

// allCovered reports whether rules cover others. Most do not, and the first piece shows it.
func allCovered(owner []*rbacv1.PolicyRule, wanted []rbacv1.PolicyRule, steps *Steps) bool {
	for i := range wanted {
		if gives(&wanted[i], true) {
			if !slices.ContainsFunc(owner, func(r *rbacv1.PolicyRule) bool { return coversFirst(r, &wanted[i], steps) }) {
				return false
			}
			break
		}
	}
	covered := covers(owner, wanted, 1, steps)
	return covered.Covered()
}

// coversFirst reports whether a rule covers the first piece of another that gives something.
func coversFirst(r, w *rbacv1.PolicyRule, steps *Steps) bool {
	if !steps.take(1+len(r.Verbs)) || !verbMatches(r.Verbs, w.Verbs[0]) {
		return false
	}
	if len(w.APIGroups) == 0 || len(w.Resources) == 0 {
		return len(r.ResourceNames) == 0 && steps.take(len(r.NonResourceURLs)) && pathMatches(r.NonResourceURLs, w.NonResourceURLs[0])
	}
	if len(r.ResourceNames) > 0 && (len(w.ResourceNames) == 0 || !steps.take(len(r.ResourceNames)) || !slices.Contains(r.ResourceNames,
		w.ResourceNames[0])) {
		return false
	}
	return steps.take(len(r.APIGroups)+len(r.Resources)) && groupMatches(r.APIGroups, w.APIGroups[0]) && coversResource(r.Resources,
		w.Resources[0])
}

// coversResource reports whether a rule's resources hold one, by name, by "*", or by that of
// its subresource for every resource.
func coversResource(have []string, resource string) bool {
	_, sub, ok := strings.Cut(resource, "/")
	return slices.Contains(have, rbacv1.ResourceAll) || slices.Contains(have, resource) || ok && slices.Contains(have, "*/"+sub)
}

// rules finds rules of a role that its others cover. Of two that cover each other the later
// one is named.
func (c *cleaner) rules(r *role) {
	rules := r.rules()
	others := pointers(nil, rules)
	if !c.within(func(steps *Steps) {
		for i := len(rules) - 1; i >= 0 && steps.take(1); i-- {
			without := slices.Concat(others[:i], others[i+1:])
			if allCovered(without, rules[i:i+1], steps) {
				others = without
				c.flaws = append(c.flaws, Flaw{Kind: FlawShadowedRule, Key: r.key(), Rule: i})
			}
		}
	}) {
		c.flaws = append(c.flaws, Flaw{Kind: FlawTooLarge, Key: r.key()})
	}
}
