package leastpriv

import (
	"slices"
	"time"
)

// days are distinct days in order, in days since 1970 (UTC).
type days []int32

// with returns the days with those of two moments; a zero one is none.
func (d days) with(moments ...time.Time) days {
	for _, m := range moments {
		if m.IsZero() {
			continue
		}
		day := int32(m.Unix() / 86400)
		if i, found := slices.BinarySearch(d, day); !found {
			d = slices.Insert(d, i, day)
		}
	}
	return d
}
