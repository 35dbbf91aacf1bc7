// Package instant counts times as unix nanoseconds, with a value that stands for no time.
package instant

import (
	"math"
	"time"
)

// None stands for "no lower bound" in unix nanoseconds; it sorts before every time.
const None int64 = math.MinInt64

// earliest and latest are the times between which nanoseconds can tell times apart, with
// room to add to them. A log may hold any year from 0 to 9999.
const (
	earliest = math.MinInt64 + int64(time.Hour)
	latest   = math.MaxInt64 - int64(time.Hour)
)

// Of converts a time; the zero time becomes None.
func Of(t time.Time) int64 {
	switch s := t.Unix(); {
	case t.IsZero():
		return None
	case s <= earliest/int64(time.Second):
		return earliest
	case s >= latest/int64(time.Second):
		return latest
	}
	return t.UnixNano()
}

// Time is the inverse of Of, as far as there is one.
func Time(n int64) time.Time {
	if n == None {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
