package detect

import (
	"cmp"
	"slices"
	"time"

	"github.com/retrial-io/retrial/verdict"
)

// day is the stretch of time whose first-seen keys are told by themselves or together.
const day = 24 * time.Hour

// firstKey is a key that was not seen before.
type firstKey struct {
	group string
	key   uint64    // of the group, as marks have it
	first time.Time // its earliest request
	user  string    // whose that is, as it authenticated: whom somebody acts as he makes up
}

// restOf names the keys of a day that are told together: those of a user who has more than
// FirstLimits.User, or, when none of a user's is among the first FirstLimits.Cluster, those of all such users.
type restOf struct {
	user      string
	everybody bool
}

// ranked parts the keys of a day into those that are told and the rest, each by time. What the store
// answers to FirstSeen agrees with it.
func ranked(keys []firstKey, most verdict.FirstLimits) (told []firstKey, rests map[restOf][]firstKey) {
	slices.SortFunc(keys, func(a, b firstKey) int {
		return cmp.Or(cmp.Compare(a.first.UnixMicro(), b.first.UnixMicro()), cmp.Compare(a.key, b.key))
	})
	places, known, within := map[string]int{}, map[string]bool{}, 0
	var left []firstKey
	for _, k := range keys {
		if places[k.user]++; places[k.user] <= most.User {
			if within++; within <= most.Cluster {
				told, known[k.user] = append(told, k), true
				continue
			}
		}
		left = append(left, k)
	}
	rests = map[restOf][]firstKey{}
	for _, k := range left {
		of := restOf{everybody: true}
		if known[k.user] {
			of = restOf{user: k.user}
		}
		rests[of] = append(rests[of], k)
	}
	return told, rests
}
