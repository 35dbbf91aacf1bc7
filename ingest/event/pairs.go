package event

import (
	"slices"
	"strings"
)

// sortPairs sorts by key. What the apiserver writes is sorted already (Go marshals maps in
// key order), so the check comes first.
func sortPairs(p Pairs) {
	for i := 1; i < len(p); i++ {
		if p[i-1].Key > p[i].Key {
			slices.SortStableFunc(p, func(a, b Pair) int { return strings.Compare(a.Key, b.Key) })
			return
		}
	}
}
