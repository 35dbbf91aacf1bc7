package runner

import (
	"reflect"
	"slices"

	"github.com/retrial-io/retrial/verdict"
)

// sameVerdict tells whether two verdicts of one request say the same to whoever reads them.
// Revision, Engine and Config are left out: that nothing changed under a newer revision or a
// newer engine is not news. So are the attributes and the recorded decision, which come from
// the event alone, and the order of the grants.
func sameVerdict(a, b *verdict.Verdict) bool {
	return a.Outcome == b.Outcome &&
		a.Class == b.Class &&
		a.Cause == b.Cause &&
		a.Replayed == b.Replayed &&
		a.Authorizer == b.Authorizer &&
		a.Admission == b.Admission &&
		slices.Equal(a.Missing, b.Missing) &&
		slices.Equal(a.Errors, b.Errors) &&
		slices.Equal(a.Identity, b.Identity) &&
		slices.Equal(a.Evidence, b.Evidence) &&
		slices.Equal(a.Explained, b.Explained) &&
		a.Credential == b.Credential &&
		sameGrants(a.Grants, b.Grants) &&
		slices.Equal(a.Chain, b.Chain) &&
		slices.EqualFunc(a.Implied, b.Implied, sameImplied) &&
		sameReview(a.Review, b.Review) &&
		sameImpersonation(a.Impersonation, b.Impersonation)
}

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

func sameImpersonation(a, b *verdict.ImpersonationCheck) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Replayed == b.Replayed && a.Mode == b.Mode &&
		slices.Equal(a.Missing, b.Missing) && sameGrants(a.Grants, b.Grants)
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
