package rbacindex

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// FlawKind tells flaws of a policy apart.
type FlawKind uint8

// Flaws. Those that Idle calls so can all be removed together without changing any decision.
const (
	// FlawMissingRole: a binding names a role that does not exist, or of a kind there is not.
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
	// FlawEverybody: a binding gives something to everybody who logs in
	// (system:authenticated), or to everybody (system:unauthenticated, system:anonymous).
	FlawEverybody
)

// String returns the kind in a few words.
func (k FlawKind) String() string {
	switch k {
	case FlawMissingRole:
		return "missing role"
	case FlawNoSubject:
		return "no subject"
	case FlawEmptyRole:
		return "empty role"
	case FlawDuplicateBinding:
		return "duplicate binding"
	case FlawShadowedBinding:
		return "shadowed binding"
	case FlawShadowedRule:
		return "shadowed rule"
	case FlawUnboundRole:
		return "unbound role"
	case FlawEverybody:
		return "grants everybody"
	}
	return "unknown"
}

// Idle reports whether what has the flaw does nothing: removing it changes no decision.
func (k FlawKind) Idle() bool { return k != FlawEverybody }

// Flaw is something that is wrong with a policy, or does nothing in it.
type Flaw struct {
	Kind FlawKind
	Key  Key // the binding, or the role
	Role Key // of a binding
	// Rule is the index in the role's rules, FlawShadowedRule only.
	Rule int
	// Subject is who everybody is, FlawEverybody only.
	Subject rbacv1.Subject
	// By are the bindings that make it superfluous, in order. One may be named as superfluous
	// itself: what does so then stands in for both.
	By []Key
}

// Hygiene finds what is idle in a policy and what it grants everybody, ordered by key. All
// idle things can be removed together: of two bindings that each make the other superfluous,
// only one is named. What is found idle is idle for subjects by themselves: a user's binding
// counts as shadowed only by bindings of that user, not by those of groups it may be in.
//
// Removals change no decision about requests that URLs can make; a removed binding to a missing role takes its evaluation error
// along.
func (s *Snapshot) Hygiene() []Flaw {
	c := cleaner{s: s, gone: map[*binding]bool{}, pieces: map[*role]*roleLeast{}}
	var bindings []*binding
	add := func(b *binding) bool {
		bindings = append(bindings, b)
		return true
	}
	s.clusterRoleBindings.all(add)
	s.roleBindings.all(add)
	// RoleBindings first: of a pair it is the narrower that goes.
	slices.SortFunc(bindings, func(a, b *binding) int { return compareKeys(a.key(), b.key()) })
	for _, b := range bindings {
		c.binding(b)
	}
	roles := func(t trie[*role], uses trie[*uses]) {
		t.all(func(r *role) bool {
			ns, name := r.id()
			if _, used := uses.get(s.family.hasher, ns, name); !used {
				c.flaws = append(c.flaws, Flaw{Kind: FlawUnboundRole, Key: r.key()})
			}
			c.rules(r)
			return true
		})
	}
	roles(s.clusterRoles, s.clusterRoleUses)
	roles(s.roles, s.roleUses)
	slices.SortStableFunc(c.flaws, func(a, b Flaw) int {
		return cmp.Or(compareKeys(a.Key, b.Key), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rule, b.Rule))
	})
	return c.flaws
}

// cleaner is one run of Hygiene.
type cleaner struct {
	s      *Snapshot
	flaws  []Flaw
	gone   map[*binding]bool // found idle: others must not rest on them
	pieces map[*role]*roleLeast
}

// roleLeast is a role taken apart. Rules out of all proportion are not (wide): a role with
// one is superfluous only beside a binding to itself.
type roleLeast struct {
	resources, paths []piece
	wide             bool
}

func (c *cleaner) least(r *role) *roleLeast {
	l, ok := c.pieces[r]
	if !ok {
		l = &roleLeast{}
		rules := r.rules()
		for i := range rules {
			if pieceCount(&rules[i]) > maxExpansion {
				l.wide = true
				continue
			}
			eachPiece(&rules[i], func(p *piece) {
				if p.isPath {
					l.paths = append(l.paths, *p)
				} else {
					l.resources = append(l.resources, *p)
				}
			})
		}
		c.pieces[r] = l
	}
	return l
}

func pieceCount(r *rbacv1.PolicyRule) int {
	return len(r.Verbs) * (len(r.APIGroups)*len(r.Resources)*max(1, len(r.ResourceNames)) + len(r.NonResourceURLs))
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
	case c.gives(b, r) == 0 && !c.least(r).wide:
		f.Kind = FlawEmptyRole
	default:
		f.Kind, f.By = c.shadowed(b, r)
	}
	if f.Kind != 0 {
		c.gone[b] = true
		c.flaws = append(c.flaws, f)
		return
	}
	for _, s := range b.subjects() {
		if s.Kind == rbacv1.GroupKind && (s.Name == "system:authenticated" || s.Name == "system:unauthenticated") || s.Kind == rbacv1.UserKind && s.Name == "system:anonymous" {
			c.flaws = append(c.flaws, Flaw{Kind: FlawEverybody, Key: f.Key, Role: f.Role, Subject: s})
		}
	}
}

// gives counts the pieces a binding gives; those of namespaces give no paths.
func (c *cleaner) gives(b *binding, r *role) int {
	l := c.least(r)
	if b.rb != nil {
		return len(l.resources)
	}
	return len(l.resources) + len(l.paths)
}

// shadowed tells whether others give every subject of b all that b does, and which.
func (c *cleaner) shadowed(b *binding, r *role) (FlawKind, []Key) {
	kind := FlawDuplicateBinding
	by := map[*binding]bool{}
	for i := range b.subjects() {
		name, group, ok := b.principal(&b.subjects()[i])
		if !ok {
			continue
		}
		others := c.others(b, name, group)
		if i := slices.IndexFunc(others, func(o *binding) bool { return c.s.role(o.roleKey()) == r }); i >= 0 {
			by[others[i]] = true
			continue
		}
		if kind = FlawShadowedBinding; len(others) == 0 || !c.covered(b, r, others, by) {
			return 0, nil
		}
	}
	keys := make([]Key, 0, len(by))
	for o := range by {
		keys = append(keys, o.key())
	}
	slices.SortFunc(keys, compareKeys)
	return kind, keys
}

// others are the bindings that give something to a subject wherever b does.
func (c *cleaner) others(b *binding, name string, group bool) []*binding {
	h := c.s.family.hasher
	p, ok := c.s.principals(group).get(h, "", name)
	if !ok {
		return nil
	}
	refs := p.cluster.appendTo(nil)
	if b.rb != nil {
		if sp, ok := p.spaces.get(h, "", b.rb.Namespace); ok {
			refs = sp.refs.appendTo(refs)
		}
	}
	out := make([]*binding, 0, len(refs))
	for _, r := range refs {
		if r.b != b && !c.gone[r.b] && c.s.role(r.b.roleKey()) != nil {
			out = append(out, r.b)
		}
	}
	slices.SortFunc(out, func(x, y *binding) int { return compareKeys(x.key(), y.key()) })
	return out
}

// covered tells whether others' rules cover all that b gives, and adds those it takes.
func (c *cleaner) covered(b *binding, r *role, others []*binding, by map[*binding]bool) bool {
	l := c.least(r)
	if l.wide {
		return false
	}
	all := [][]piece{l.resources, l.paths}
	if b.rb != nil {
		all = all[:1]
	}
	for _, pieces := range all {
		for i := range pieces {
			at := slices.IndexFunc(others, func(o *binding) bool {
				rules := c.s.role(o.roleKey()).rules()
				for j := range rules {
					if pieces[i].coveredBy(&rules[j]) {
						return true
					}
				}
				return false
			})
			if at < 0 {
				return false
			}
			by[others[at]] = true
		}
	}
	return true
}

// rules finds rules of a role that its others cover. Of two that cover each other the later
// one is named.
func (c *cleaner) rules(r *role) {
	rules := r.rules()
	gone := make([]bool, len(rules))
	for i := len(rules) - 1; i >= 0; i-- {
		if pieceCount(&rules[i]) > maxExpansion {
			continue
		}
		covered := true
		eachPiece(&rules[i], func(p *piece) {
			for j := range rules {
				if j != i && !gone[j] && p.coveredBy(&rules[j]) {
					return
				}
			}
			covered = false
		})
		if covered {
			gone[i] = true
			c.flaws = append(c.flaws, Flaw{Kind: FlawShadowedRule, Key: r.key(), Rule: i})
		}
	}
}
