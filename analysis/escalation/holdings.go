package escalation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
)

// Account identifies a service account.
type Account struct{ Namespace, Name string }

// Accounts is what is known of service accounts.
type Accounts struct {
	There []Account
	// Complete means that there are no others: a token of one that a binding names nevertheless
	// presumes that somebody creates it.
	Complete bool
}

// role is a role that exists or that a binding names.
type role struct {
	key    rbacindex.Key
	exists bool
	admin  bool // all verbs on all resources
	able   able
	mask   mask
	open   bool // it allows more than the budget of steps could find
}

// holding is a role as held: everywhere, or in a namespace.
type holding struct {
	namespace string
	role      int32
}

// identity is a user or a group with what bindings grant it by name.
type identity struct {
	name   string
	group  bool
	node   Node
	parent int32 // the group its name implies and that implies the others; -1: none
	own    []holding
	absent bool // a service account that does not exist
}

type identityKey struct {
	name  string
	group bool
}

// impliedGroup returns the first group that a name implies; that one implies the next.
func impliedGroup(name string, group bool) string {
	switch {
	case !group:
		if ns, _, ok := splitAccount(name); ok {
			return kubenames.ServiceAccountsOf(ns)
		}
		if name == kubenames.Anonymous {
			return kubenames.Unauthenticated
		}
		return kubenames.Authenticated
	case name == kubenames.Authenticated || name == kubenames.Unauthenticated:
		return ""
	case strings.HasPrefix(name, kubenames.ServiceAccountsOf("")):
		return kubenames.ServiceAccounts
	}
	return kubenames.Authenticated
}

// splitAccount splits the name of a possible service account; to the apiserver every other name is
// a plain user's.
func splitAccount(user string) (namespace, name string, ok bool) {
	namespace, name, ok = kubenames.SplitServiceAccount(user)
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", "", false
	}
	return namespace, name, true
}

// subjectName returns whom a binding's subject names.
func subjectName(s *rbacv1.Subject, namespace string) (name string, group, ok bool) {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name, false, true
	case rbacv1.GroupKind:
		return s.Name, true, true
	case rbacv1.ServiceAccountKind:
		if namespace = cmp.Or(s.Namespace, namespace); namespace != "" {
			return kubenames.ServiceAccount(namespace, s.Name), false, true
		}
	}
	return "", false, false
}

// holdings is a policy indexed by who holds what.
type holdings struct {
	book  *rulebook
	rbac  *rbacindex.Snapshot
	roles []role
	known map[rbacindex.Key]int32

	ids []identity
	at  map[identityKey]int32

	spaces   []string           // namespaces with a service account or a RoleBinding, sorted
	accounts map[string][]int32 // by namespace
	called   map[string][]int32 // by name, for rights that hold everywhere for one name
	// bound are the roles that bindings name, by the bindings' namespace: a subject that may change
	// any of those bindings may take any of these.
	bound map[string]map[int32]bool
	// in are the roles that exist, by namespace; "" for ClusterRoles.
	in     map[string][]int32
	admins []int32 // the ClusterRoles with all rights
	admin  int32   // one of them, preferably cluster-admin; -1: none
	held   map[heldBy]struct{}
	steps  budget
}

// heldBy is a holding of an identity, which several bindings may give.
type heldBy struct {
	identity int32
	holding
}

func newHoldings(rbac *rbacindex.Snapshot, accounts Accounts, steps budget) *holdings {
	h := &holdings{book: newRulebook(), rbac: rbac, known: map[rbacindex.Key]int32{}, at: map[identityKey]int32{},
		accounts: map[string][]int32{}, called: map[string][]int32{}, bound: map[string]map[int32]bool{}, in: map[string][]int32{},
		admin: -1, held: map[heldBy]struct{}{}, steps: steps}
	var bindings []rbacindex.Key
	var roles []rbacindex.Key
	rbac.All(func(k rbacindex.Key, _ any) bool {
		if k.Kind == rbacindex.KindRole || k.Kind == rbacindex.KindClusterRole {
			roles = append(roles, k)
		} else {
			bindings = append(bindings, k)
		}
		return true
	})
	// The index visits in no order; numbers, and with them ties between paths, must be stable.
	slices.SortFunc(roles, rbacindex.Key.Compare)
	slices.SortFunc(bindings, rbacindex.Key.Compare)
	for _, k := range roles {
		h.roleOf(k)
	}
	h.identity(kubenames.Unauthenticated, true)
	h.identity(kubenames.Anonymous, false)
	for _, a := range accounts.There {
		h.identity(kubenames.ServiceAccount(a.Namespace, a.Name), false)
	}
	there := len(h.ids)
	for _, k := range bindings {
		h.binding(k)
	}
	for i := range h.ids {
		if n := h.ids[i].node; n.Kind == ServiceAccount {
			h.ids[i].absent = accounts.Complete && i >= there
			h.accounts[n.Namespace] = append(h.accounts[n.Namespace], int32(i))
			h.called[n.Name] = append(h.called[n.Name], int32(i))
		}
	}
	h.spaces = slices.AppendSeq(slices.Collect(maps.Keys(h.accounts)), maps.Keys(h.bound))
	h.spaces = slices.DeleteFunc(h.spaces, func(ns string) bool { return ns == "" })
	slices.Sort(h.spaces)
	h.spaces, h.held = slices.Compact(h.spaces), nil
	return h
}

// roleOf numbers a role, existing or not.
func (h *holdings) roleOf(k rbacindex.Key) int32 {
	if i, ok := h.known[k]; ok {
		return i
	}
	r := role{key: k}
	var rules []rbacv1.PolicyRule
	if o, ok := h.rbac.Get(k); ok {
		r.exists = true
		rules, _ = rbacindex.RulesOf(o)
	}
	r.open = !h.steps.within(func(e *effort) { r.able = h.book.ables(rules, e) })
	for i := range r.able {
		r.mask.set(r.able[i].what)
	}
	r.admin = r.able.of(h.book.admin).all
	i := int32(len(h.roles))
	h.roles = append(h.roles, r)
	h.known[k] = i
	if r.exists {
		h.in[k.Namespace] = append(h.in[k.Namespace], i)
	}
	if r.admin && k.Kind == rbacindex.KindClusterRole {
		if h.admins = append(h.admins, i); h.admin < 0 || k.Name == ClusterAdmin {
			h.admin = i
		}
	}
	return i
}

// identity numbers a user or group, after those its name implies.
func (h *holdings) identity(name string, group bool) int32 {
	k := identityKey{name, group}
	if i, ok := h.at[k]; ok {
		return i
	}
	id := identity{name: name, group: group, parent: -1, node: nodeOf(name, group)}
	if p := impliedGroup(name, group); p != "" {
		id.parent = h.identity(p, true)
	}
	i := int32(len(h.ids))
	h.ids = append(h.ids, id)
	h.at[k] = i
	return i
}

func nodeOf(name string, group bool) Node {
	if group {
		return Node{Kind: Group, Name: name}
	}
	if ns, n, ok := splitAccount(name); ok {
		return Node{Kind: ServiceAccount, Namespace: ns, Name: n}
	}
	return Node{Kind: User, Name: name}
}

func (h *holdings) binding(k rbacindex.Key) {
	o, _ := h.rbac.Get(k)
	subjects, ref, _ := rbacindex.BindingOf(o)
	of, ok := roleOfBinding(&ref, k.Namespace)
	if !ok {
		return // unknown kind: it grants nothing and cannot be changed
	}
	r := h.roleOf(of)
	if h.bound[k.Namespace] == nil {
		h.bound[k.Namespace] = map[int32]bool{}
	}
	h.bound[k.Namespace][r] = true
	for i := range subjects {
		name, group, ok := subjectName(&subjects[i], k.Namespace)
		if !ok {
			continue
		}
		by := heldBy{h.identity(name, group), holding{k.Namespace, r}}
		if _, twice := h.held[by]; !twice {
			h.held[by] = struct{}{}
			h.ids[by.identity].own = append(h.ids[by.identity].own, by.holding)
		}
	}
}

// inherited returns the holdings of the groups an identity's name implies; none are computed if it
// holds nothing itself.
func (h *holdings) inherited(i int32, e *effort) []holding {
	if len(h.ids[i].own) == 0 {
		return nil
	}
	var out []holding
	for p := h.ids[i].parent; p >= 0; p = h.ids[p].parent {
		if !e.take(len(h.ids[p].own)) {
			break
		}
		out = append(out, h.ids[p].own...)
	}
	return out
}
