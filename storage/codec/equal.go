package codec

import (
	"reflect"
	"slices"

	"github.com/retrial-io/retrial/verdict"
)

func sameImplied(a, b verdict.Implied) bool {
	return a.Check == b.Check && a.Attributes == b.Attributes && a.Replayed == b.Replayed && a.Recorded == b.Recorded &&
		a.Covered == b.Covered && a.Perhaps == b.Perhaps && slices.Equal(a.Missing, b.Missing) && sameGrants(a.Grants, b.Grants) &&
		len(a.Wanted) == len(b.Wanted) && (len(a.Wanted) == 0 || reflect.DeepEqual(a.Wanted, b.Wanted))
}

func sameReview(a, b *verdict.ReviewCheck) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.User == b.User && slices.Equal(a.Groups, b.Groups) && a.Attributes == b.Attributes &&
		a.Recorded == b.Recorded && a.Replayed == b.Replayed && a.Reason == b.Reason && a.Outcome == b.Outcome && a.Cause == b.Cause
}

// sameGrants compares two sets of grants. Both engines' orders are stable, so the common
// case is one pass; only a different order costs a map.
func sameGrants(a, b []verdict.Grant) bool {
	if len(a) != len(b) {
		return false
	}
	if slices.Equal(a, b) {
		return true
	}
	left := make(map[verdict.Grant]int, len(a))
	for _, g := range a {
		left[g]++
	}
	for _, g := range b {
		if left[g] == 0 {
			return false
		}
		left[g]--
	}
	return true
}
