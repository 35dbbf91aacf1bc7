package runner

import (
	"slices"

	"github.com/retrial-io/retrial/replay"
)

// sameVerdict tells whether two verdicts of one request say the same to whoever reads them.
// Revision, Engine and Config are left out: that nothing changed under a newer revision or a
// newer engine is not news. So are the attributes and the recorded decision, which come from
// the event alone, and the order of the grants.
func sameVerdict(a, b *replay.Verdict) bool {
	return a.Outcome == b.Outcome &&
		a.Class == b.Class &&
		a.Cause == b.Cause &&
		a.Replayed == b.Replayed &&
		a.Authorizer == b.Authorizer &&
		a.Admission == b.Admission &&
		slices.Equal(a.Missing, b.Missing) &&
		slices.Equal(a.Errors, b.Errors) &&
		slices.Equal(a.Identity, b.Identity) &&
		sameGrants(a.Grants, b.Grants) &&
		sameImpersonation(a.Impersonation, b.Impersonation)
}

func sameImpersonation(a, b *replay.ImpersonationCheck) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Replayed == b.Replayed && a.Mode == b.Mode &&
		slices.Equal(a.Missing, b.Missing) && sameGrants(a.Grants, b.Grants)
}

// sameGrants compares two sets of grants. Both engines' orders are stable, so the common
// case is one pass; only a different order costs a map.
func sameGrants(a, b []replay.Grant) bool {
	if len(a) != len(b) {
		return false
	}
	if slices.Equal(a, b) {
		return true
	}
	left := make(map[replay.Grant]int, len(a))
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
