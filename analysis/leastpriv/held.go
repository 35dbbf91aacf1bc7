package leastpriv

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
)

// Held is a binding that grants a subject something, by name or through a group.
type Held struct {
	Binding rbacindex.Key
	Subject rbacv1.Subject // of the binding
	Role    rbacv1.RoleRef
	Rules   []rbacv1.PolicyRule // none when the role does not exist
}

// HeldBy returns the bindings of a policy that name a user or one of the groups, in the
// order of kind, namespace and name. It reads every binding of the policy.
func HeldBy(policy *rbacindex.Snapshot, user string, groups []string) []Held {
	var out []Held
	policy.All(func(k rbacindex.Key, o any) bool {
		subjects, ref, ok := rbacindex.BindingOf(o)
		if !ok {
			return true
		}
		for i := range subjects {
			s := &subjects[i]
			if rbacindex.UserOf(s, k.Namespace) != user && !(s.Kind == rbacv1.GroupKind && slices.Contains(groups, s.Name)) {
				continue
			}
			rules, _ := rulesOf(policy, &ref, k.Namespace)
			out = append(out, Held{Binding: k, Subject: *s, Role: ref, Rules: rules})
		}
		return true
	})
	slices.SortStableFunc(out, func(a, b Held) int { return a.Binding.Compare(b.Binding) })
	return out
}

// GroupsOf returns the groups that every user of that name is in, whatever else a token or
// certificate says.
func GroupsOf(user string) []string {
	if namespace, _, ok := authn.ServiceAccountUsername(user); ok {
		return []string{kubenames.Authenticated, kubenames.ServiceAccounts, kubenames.ServiceAccountsOf(namespace)}
	}
	if user == kubenames.Anonymous {
		return []string{kubenames.Unauthenticated}
	}
	return []string{kubenames.Authenticated}
}

// Unseen is a user that bindings name and that made no request.
type Unseen struct {
	Subject  string   `json:"subject"`
	Bindings []string `json:"bindings"` // Kind/name or Kind/namespace/name
	Excess   int      `json:"excess"`   // weight of what it holds, all of it unused
	// TooLarge means that some of it is too much work to weigh; Excess is a lower bound.
	TooLarge bool `json:"tooLarge,omitempty"`
}

// Unseen returns the users that bindings name and that made no request, the heaviest first.
func (a *Advisor) Unseen() []Unseen {
	out := []Unseen{}
	none := indexNeeds(nil)
	for _, name := range slices.Sorted(maps.Keys(a.own)) { // in order: they share the work
		keys := a.own[name]
		if a.collector.Seen(name) {
			continue
		}
		u := Unseen{Subject: name}
		for _, k := range keys {
			u.Bindings = append(u.Bindings, k.String())
		}
		unused, _, excess, _ := a.weigh(a.view.RBAC, none, keys)
		u.Excess, u.TooLarge = excess, slices.ContainsFunc(unused, func(u Unused) bool { return u.TooLarge })
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Unseen) int { return cmp.Or(b.Excess-a.Excess, strings.Compare(a.Subject, b.Subject)) })
	return out
}
