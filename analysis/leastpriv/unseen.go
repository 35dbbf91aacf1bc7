package leastpriv

import (
	"cmp"
	"slices"
	"strings"
)

// Unseen is a user that bindings name and that made no request.
type Unseen struct {
	Subject  string   `json:"subject"`
	Bindings []string `json:"bindings"` // Kind/name or Kind/namespace/name
	Excess   int      `json:"excess"`   // weight of what it holds, all of it unused
}

// Unseen returns the users that bindings name and that made no request, the heaviest first.
func (a *Advisor) Unseen() []Unseen {
	out := []Unseen{}
	none := indexNeeds(nil)
	for name, keys := range a.own {
		if a.collector.Seen(name) {
			continue
		}
		u := Unseen{Subject: name}
		for _, k := range keys {
			u.Bindings = append(u.Bindings, k.String())
		}
		_, _, u.Excess = a.weigh(a.view.RBAC, none, keys)
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Unseen) int { return cmp.Or(b.Excess-a.Excess, strings.Compare(a.Subject, b.Subject)) })
	return out
}
