package leastpriv

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// leastPeriod is how many days lie between two uses that may be a job's.
const leastPeriod = 2

// periodText says of what was used on two days only, so far apart that the recording does not cover that twice: it may come again, or
// not. It is empty if there is nothing of the kind; the longest distance is named.
func periodText(needs []need, covers time.Duration) string {
	on := map[pair]days{}
	for i := range needs {
		k := askedPair(&needs[i].attrs)
		for _, day := range needs[i].days {
			on[k] = on[k].and(day)
		}
	}
	var longest pair
	apart, kinds := 0, 0
	for _, k := range slices.SortedFunc(maps.Keys(on), comparePairs) {
		if len(on[k]) != 2 {
			continue
		}
		between := int(on[k][1] - on[k][0])
		if between < leastPeriod || covers >= 2*time.Duration(between)*24*time.Hour {
			continue
		}
		if kinds++; between > apart {
			longest, apart = k, between
		}
	}
	if kinds == 0 {
		return ""
	}
	what := longest.verb + " " + resourceText(longest.group, longest.resource)
	if longest.url != "" {
		what = longest.verb + " " + longest.url
	}
	return fmt.Sprintf("%s was seen on two days, %d days apart, and the recording covers %.0f, less than twice that: what comes as rarely "+
		"may be missing (verbs on resources of which this is so: %d)", what, apart, covers.Hours()/24, kinds)
}
