package leastpriv

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

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
		unused, _, excess := a.weigh(a.view.RBAC, none, keys)
		u.Excess, u.TooLarge = excess, slices.ContainsFunc(unused, func(u Unused) bool { return u.TooLarge })
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Unseen) int { return cmp.Or(b.Excess-a.Excess, strings.Compare(a.Subject, b.Subject)) })
	return out
}
