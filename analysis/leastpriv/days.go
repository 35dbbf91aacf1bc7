package leastpriv

import (
	"slices"
	"time"
)

// days are distinct days in order, in days since 1970 (UTC).
type days []int32

// with returns the days with those of requests; a zero time is none.
func (d days) with(n *Count) days {
	for _, day := range n.Days {
		d = d.and(int32(day))
	}
	if n.Days != nil {
		return d
	}
	for _, m := range [...]time.Time{n.First, n.Last} {
		if !m.IsZero() {
			d = d.and(int32(m.Unix() / 86400))
		}
	}
	return d
}

func (d days) and(day int32) days {
	if i, found := slices.BinarySearch(d, day); !found {
		d = slices.Insert(d, i, day)
	}
	return d
}
