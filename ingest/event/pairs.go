package event

import (
	"slices"
	"strings"
)

// sortPairs sorts by key. What the apiserver writes is sorted already (Go marshals maps in
// key order), so the check comes first.
func sortPairs(p Pairs) {
	if !slices.IsSortedFunc(p, comparePairs) {
		slices.SortStableFunc(p, comparePairs)
	}
}

func comparePairs(a, b Pair) int       { return strings.Compare(a.Key, b.Key) }
func compareExtra(a, b ExtraEntry) int { return strings.Compare(a.Key, b.Key) }

// lastPairs sorts in place and keeps the last of equal keys. Appending to the result copies it.
func lastPairs(p Pairs) Pairs {
	sorted := true
	for i := 1; i < len(p) && sorted; i++ {
		sorted = p[i-1].Key < p[i].Key
	}
	if sorted {
		return p[:len(p):len(p)]
	}
	slices.SortStableFunc(p, comparePairs)
	n := 0
	for i := range p {
		if i+1 < len(p) && p[i+1].Key == p[i].Key {
			continue
		}
		p[n] = p[i]
		n++
	}
	return p[:n:n]
}

// lastExtra does for extra what lastPairs does for pairs.
func lastExtra(x Extra) Extra {
	if len(x) < 2 {
		return x[:len(x):len(x)]
	}
	slices.SortStableFunc(x, compareExtra)
	n := 0
	for i := range x {
		if i+1 < len(x) && x[i+1].Key == x[i].Key {
			continue
		}
		x[n] = x[i]
		n++
	}
	return x[:n:n]
}

// lastMembers keeps the last of members of one name, in place and in order.
func lastMembers(m []Member) []Member {
	if len(m) < 2 {
		return m
	}
	last := make(map[string]int, len(m))
	for i := range m {
		last[m[i].Name] = i
	}
	if len(last) == len(m) {
		return m
	}
	n := 0
	for i := range m {
		if last[m[i].Name] == i {
			m[n] = m[i]
			n++
		}
	}
	return m[:n]
}
