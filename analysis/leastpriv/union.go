package leastpriv

import (
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// united is the policy with every subject's own bindings replaced by the roles that audit2rbac makes of its requests, to compare others
// with: requests that are alike but for their namespace, or name, are one rule without it; list, watch and get go together, and so do
// update, patch and get. It mirrors cmd/audit2rbac and pkg/process.go of github.com/liggitt/audit2rbac, flags at their defaults.
func (a *Advisor) united(subjects []string) (*rbacindex.Snapshot, error) {
	var changes []rbacindex.Change
	users := make(map[string]bool, len(subjects))
	for _, name := range subjects {
		users[name] = true
	}
	for _, k := range slices.SortedFunc(maps.Keys(a.bindingsOf(subjects)), rbacindex.Key.Compare) {
		o, _ := a.view.RBAC.Get(k)
		_, rest := parted(o, anyOf(users, k.Namespace))
		changes = append(changes, rbacindex.Change{Key: k, Object: rest})
	}
	for _, name := range subjects {
		g := generator{user: name, subject: subjectOf(name), name: objectName(name, 0)}
		for scope, rules := range unionOf(a.historyOf(name).needs) {
			role, binding := g.objects(scope, rules)
			changes = append(changes, change(role), change(binding))
		}
	}
	final, err := a.view.RBAC.Apply(changes...)
	if err != nil {
		return nil, fmt.Errorf("put unions in force: %w", err)
	}
	return final, nil
}

// bindingsOf returns the bindings that name any of the subjects.
func (a *Advisor) bindingsOf(subjects []string) map[rbacindex.Key]bool {
	out := map[rbacindex.Key]bool{}
	for _, name := range subjects {
		for _, k := range a.own[name] {
			out[k] = true
		}
	}
	return out
}

// unionOf returns rules by scope that allow the requests of one subject; hidden checks are not among what audit2rbac reads.
func unionOf(needs []need) map[string][]rbacv1.PolicyRule {
	type used struct{ namespaces, names map[string]bool }
	by := map[pair]*used{}
	for i := range needs {
		n := &needs[i]
		if n.why != "" || n.alternative {
			continue
		}
		k := askedPair(&n.attrs)
		u, ok := by[k]
		if !ok {
			u = &used{map[string]bool{}, map[string]bool{}}
			by[k] = u
		}
		name := n.attrs.Name
		if k.verb == "create" {
			name = ""
		}
		u.namespaces[n.attrs.Namespace], u.names[name] = true, true
	}
	sets := map[string]*ruleSet{}
	for k, u := range by {
		scope, only := "", slices.Sorted(maps.Keys(u.names))
		if len(u.namespaces) == 1 {
			scope = slices.Collect(maps.Keys(u.namespaces))[0]
		}
		if len(only) > 1 || only[0] == "" {
			only = nil
		}
		if sets[scope] == nil {
			sets[scope] = &ruleSet{}
		}
		for _, verb := range unionVerbs(k.verb) {
			k.verb = verb
			sets[scope].of(only)[k] = true
		}
	}
	out := map[string][]rbacv1.PolicyRule{}
	for scope, set := range sets {
		out[scope] = set.rules()
	}
	return out
}

// unionVerbs returns the verbs that go with one.
func unionVerbs(verb string) []string {
	switch verb {
	case "list", "watch":
		return []string{"get", "list", "watch"}
	case "update", "patch":
		return []string{"get", "patch", "update"}
	}
	return []string{verb}
}
