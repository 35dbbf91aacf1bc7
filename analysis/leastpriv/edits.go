package leastpriv

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/retrial-io/retrial/rbacindex"
)

// planned is a user whose roles are narrowed together with those of others.
type planned struct {
	user string
	used *usedIndex
	form string
	// leaves are the bindings that a user leaves who gets roles of its own.
	leaves []rbacindex.Key
}

// holder is a user that bindings name, or a group, or all that they name, with what was used of one role.
type holder struct {
	user     string
	group    string
	everyone bool
	bindings []rbacindex.Key // to the role, in order
	part     *part
}

// is reports whether a subject of a binding in a namespace is the holder.
func (h *holder) is(s *rbacv1.Subject, namespace string) bool {
	switch {
	case h.everyone:
		return true
	case h.group != "":
		return s.Kind == rbacv1.GroupKind && s.Name == h.group
	}
	return rbacindex.UserOf(s, namespace) == h.user
}

// roleEdit is what becomes of one role.
type roleEdit struct {
	role   rbacindex.Key
	shares []share   // by what they used; the first edits the role in place, if inPlace
	leave  []*holder // used nothing of it
	// inPlace: nobody else holds the role, and neither Kubernetes nor a controller writes it.
	inPlace bool
}

// edits narrows the roles that users hold by their own bindings, each to what they need of it. tooMuch are the users for whom that is too
// much work: they keep what they have. What a role gives that a holder keeps whole is not kept of others, so holders are looked at twice.
// An object more weighs objectWeight, or where the edits do not fit with that, twice as much as often as it takes, if that helps at all.
func (a *Advisor) edits(users []planned, fit func([]roleEdit) (bool, error)) (edits []roleEdit, tooMuch []string, err error) {
	holders, _, err := a.holders(users, nil)
	if err != nil {
		return nil, nil, err
	}
	whole := map[rbacindex.Key]map[string]bool{}
	edits = a.joined(holders, objectWeight)
	for i := range edits {
		e := &edits[i]
		for _, s := range e.shares {
			if !s.complete {
				continue
			}
			if whole[e.role] == nil {
				whole[e.role] = map[string]bool{}
			}
			for _, h := range s.holders {
				whole[e.role][h.user] = true
			}
		}
	}
	if holders, tooMuch, err = a.holders(users, whole); err != nil {
		return nil, nil, err
	}
	at := func(exponent int) (bool, error) {
		edits = a.joined(holders, objectWeight<<exponent)
		return fit(edits)
	}
	fits, err := at(0)
	if fits || err != nil {
		return edits, tooMuch, err
	}
	if fits, err = at(mostDoubled); !fits || err != nil {
		if err == nil { // then what it takes away counts
			_, err = at(0)
		}
		return edits, tooMuch, err
	}
	low, high := 0, mostDoubled
	for low+1 < high && err == nil {
		middle := (low + high) / 2
		if fits, err = at(middle); fits {
			high = middle
		} else {
			low = middle
		}
	}
	if !fits && err == nil {
		_, err = at(high)
	}
	return edits, tooMuch, err
}

// holders returns the holders of roles, by role and user, beside those that users keep whole.
func (a *Advisor) holders(users []planned, whole map[rbacindex.Key]map[string]bool) (holders map[rbacindex.Key]map[string]*holder,
	tooMuch []string, err error) {
	holders = map[rbacindex.Key]map[string]*holder{}
	for _, u := range users {
		mine := a.holdings(&u)
		for rk, h := range mine {
			if holders[rk] == nil {
				holders[rk] = map[string]*holder{}
			}
			holders[rk][u.user] = h
			h.part.all = whole[rk][u.user] || u.form == FormUnchanged
		}
		if u.form != FormNarrow {
			continue
		}
		base, err := a.without(u.user)
		if err != nil {
			return nil, nil, err
		}
		if !assign(u.used, base, mine, a.effort()) {
			for _, h := range mine {
				h.part.all = true
			}
			tooMuch = append(tooMuch, u.user)
		}
		if a.companions {
			a.complement(&u, mine, base)
		}
	}
	return holders, tooMuch, nil
}

// complement adds the verbs that go with those a user used; more of them if it writes, and is still learning.
func (a *Advisor) complement(u *planned, roles map[rbacindex.Key]*holder, base *rbacindex.Snapshot) {
	learning := false
	if m := a.maturityOf(u.user, base); !m.Learned {
		for _, h := range roles {
			learning = learning || h.part.writes()
		}
	}
	for _, h := range roles {
		if !h.part.all {
			h.part.complement(learning)
		}
	}
}

// joined puts the holders of each role together, where an object more weighs so much.
func (a *Advisor) joined(holders map[rbacindex.Key]map[string]*holder, object int) (edits []roleEdit) {
	for _, rk := range slices.SortedFunc(maps.Keys(holders), rbacindex.Key.Compare) {
		e := roleEdit{role: rk, inPlace: a.editable(rk, func(b rbacindex.Key, s *rbacv1.Subject) bool {
			return holders[rk][rbacindex.UserOf(s, b.Namespace)] != nil
		})}
		for _, user := range slices.Sorted(maps.Keys(holders[rk])) {
			h := holders[rk][user]
			if h.part.empty() {
				e.leave = append(e.leave, h)
			} else {
				e.shares = append(e.shares, share{holders: []*holder{h}, part: h.part})
			}
		}
		e.join(object)
		edits = append(edits, e)
	}
	return edits
}

// holdings returns the roles that a user holds by bindings that name it: those that exist, and of one that gets roles of its own those it
// leaves.
func (a *Advisor) holdings(u *planned) map[rbacindex.Key]*holder {
	mine := map[rbacindex.Key]*holder{}
	for _, k := range a.own[u.user] {
		if u.form == FormStrict && !slices.Contains(u.leaves, k) {
			continue
		}
		o, _ := a.view.RBAC.Get(k)
		_, ref, _ := rbacindex.BindingOf(o)
		rules, known := rulesOf(a.view.RBAC, &ref, k.Namespace)
		if !known {
			continue // the role does not exist: its bindings give nothing
		}
		rk := rbacindex.RoleKey(&ref, k.Namespace)
		if mine[rk] == nil {
			mine[rk] = &holder{user: u.user, part: newPart(rules)}
		}
		mine[rk].bindings = append(mine[rk].bindings, k)
	}
	return mine
}

// assign gives each request that nothing but the user's own roles allows to one rule of one of them: the one that allows most like it, in
// the most namespaces and whatever their names, so that what it leaves serves requests to come; none if a role that is kept whole does. It
// returns false if that takes too many steps.
func assign(ix *usedIndex, base *rbacindex.Snapshot, roles map[rbacindex.Key]*holder, e *effort) bool {
	order := slices.SortedFunc(maps.Keys(roles), func(x, y rbacindex.Key) int {
		if roles[x].part.all != roles[y].part.all {
			return map[bool]int{true: -1, false: 1}[roles[x].part.all]
		}
		return cmp.Or(roles[y].width()-roles[x].width(), x.Compare(y))
	})
	for i := range ix.asked {
		q := &ix.asked[i]
		if base.Authorize(q, nil).Allowed {
			continue
		}
		var at *holder
		rule := 0
		for _, k := range order {
			h := roles[k]
			if at != nil && (at.part.all || h.width() < at.width()) {
				break
			}
			if scopes := h.scopes(); !scopes[""] && (!q.ResourceRequest || !scopes[q.Namespace]) {
				continue
			}
			rules := h.part.rules
			if !e.take(1 + len(rules)) {
				return false
			}
			for n := range rules {
				if rbacindex.RuleAllows(q, &rules[n]) &&
					(at == nil || len(at.part.rules[rule].ResourceNames) > 0 && len(rules[n].ResourceNames) == 0) {
					at, rule = h, n
				}
			}
		}
		if at != nil && !at.part.all {
			at.part.need(rule, q)
		}
	}
	return true
}

// width returns in how many namespaces a holder has the role; more than there can be if it is everywhere.
func (h *holder) width() int {
	scopes := h.scopes()
	if scopes[""] {
		return 1 << 30
	}
	return len(scopes)
}

// scopes returns where a holder's bindings of the role hold: namespaces, or everywhere, which is "".
func (h *holder) scopes() map[string]bool {
	out := map[string]bool{}
	for _, k := range h.bindings {
		out[k.Namespace] = true
	}
	return out
}

// editable reports whether a role may be written in place: all its bindings name holders only that are ours, and neither Kubernetes nor a
// controller writes it or reads others' rules from it.
func (a *Advisor) editable(role rbacindex.Key, isOurs func(binding rbacindex.Key, s *rbacv1.Subject) bool) bool {
	if a.builtIn(role) || a.aggregates(role) {
		return false
	}
	ours := true
	a.view.RBAC.ReferencingRole(role, func(b rbacindex.Key) bool {
		o, _ := a.view.RBAC.Get(b)
		subjects, _, _ := rbacindex.BindingOf(o)
		for i := range subjects {
			ours = ours && isOurs(b, &subjects[i])
		}
		return ours
	})
	return ours
}

// builtIn reports whether a role comes with Kubernetes, which writes it again when an apiserver starts.
func (a *Advisor) builtIn(role rbacindex.Key) bool {
	return a.meta(role).Labels["kubernetes.io/bootstrapping"] != "" || strings.HasPrefix(role.Name, "system:") ||
		role.Kind == rbacindex.KindClusterRole && slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, role.Name)
}

// aggregates reports whether a role's rules are copied from other roles, or to them.
func (a *Advisor) aggregates(role rbacindex.Key) bool {
	if role.Kind != rbacindex.KindClusterRole {
		return false
	}
	o, _ := a.view.RBAC.Get(role)
	if r, ok := o.(*rbacv1.ClusterRole); ok && r.AggregationRule != nil {
		return true
	}
	own := a.meta(role).Labels
	for label := range own {
		if strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-") {
			return true
		}
	}
	if a.selectors == nil {
		a.selectors = a.aggregationSelectors()
	}
	return slices.ContainsFunc(a.selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(own)) })
}

// aggregationSelectors returns by which labels roles copy the rules of others.
func (a *Advisor) aggregationSelectors() []labels.Selector {
	out := []labels.Selector{}
	a.view.RBAC.All(func(_ rbacindex.Key, o any) bool {
		out = append(out, rbacindex.SelectorsOf(o)...)
		return true
	})
	return out
}
