package event

import (
	"slices"
	"strings"
)

func comparePairs(a, b Pair) int       { return strings.Compare(a.Key, b.Key) }
func compareExtra(a, b ExtraEntry) int { return strings.Compare(a.Key, b.Key) }

// lastPairs sorts in place and keeps the last of equal keys. Appending to the result copies it.
// What the apiserver writes is sorted already (Go marshals maps in key order), so the check comes
// first.
func lastPairs(p Pairs) Pairs {
	sorted := true
	for i := 1; i < len(p) && sorted; i++ {
		sorted = p[i-1].Key < p[i].Key
	}
	if sorted {
		return p[:len(p):len(p)]
	}
	return lastOf(p, comparePairs)
}

// lastExtra does for extra what lastPairs does for pairs.
func lastExtra(x Extra) Extra {
	if len(x) < 2 {
		return x[:len(x):len(x)]
	}
	return lastOf(x, compareExtra)
}

func lastOf[S ~[]T, T any](list S, compare func(a, b T) int) S {
	slices.SortStableFunc(list, compare)
	n := 0
	for i := range list {
		if i+1 < len(list) && compare(list[i+1], list[i]) == 0 {
			continue
		}
		list[n] = list[i]
		n++
	}
	return list[:n:n]
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
