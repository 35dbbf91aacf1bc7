package storage_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestObjectInAnyWindow: whatever part of hours a window begins and ends with, it counts what stands in it, neither twice nor not at all.
func TestObjectInAnyWindow(t *testing.T) {
	s := storagetest.Open(t)
	var like verdict.Row
	for _, r := range rows(t, "c", 0) {
		if ref := r.Event.ObjectRef; r.Verdict != nil && ref != nil && ref.Name != "" {
			like = r
		}
	}
	ref := like.Event.ObjectRef
	begin := like.Event.RequestReceivedTimestamp.Truncate(24 * time.Hour)
	var in, fix []verdict.Row
	touched := func(r *verdict.Row) string {
		return strings.Join([]string{r.Event.User.Username, r.Event.Verb, ref.Subresource, r.Verdict.Recorded.String()}, "|")
	}
	stands := map[time.Time]string{} // at each time, one request
	for i := range 60 {
		e, v := *like.Event, *like.Verdict
		e.RequestReceivedTimestamp = begin.Add(time.Duration(i)*7*time.Minute + time.Duration(i%2)*time.Microsecond)
		e.StageTimestamp = e.RequestReceivedTimestamp.Add(time.Millisecond)
		e.User.Username = fmt.Sprint("user-", i%3)
		r := like
		r.Event, r.Verdict = &e, &v
		r.Request.Lo += uint64(i)
		r.Position.Offset = int64(i)
		in = append(in, r)
		if i%5 == 0 {
			taken, again := r, v
			taken.Sign = -1
			again.Recorded = verdict.DecisionForbid
			r.Verdict, r.Revision = &again, r.Revision+1
			fix = append(fix, taken, r)
		}
		stands[e.RequestReceivedTimestamp] = touched(&r)
	}
	insert(t, s, "a", in)
	insert(t, s, "b", fix)

	ends := []time.Duration{-time.Hour, 0, time.Microsecond, 7 * time.Minute, 59 * time.Minute, time.Hour, time.Hour + 1000,
		100 * time.Minute, 2 * time.Hour, 3*time.Hour - 1000, 4 * time.Hour, 24 * time.Hour}
	for i, from := range ends {
		for _, to := range ends[i:] {
			want, got := map[string]int{}, map[string]int{}
			for at, who := range stands {
				if !at.Before(begin.Add(from)) && at.Before(begin.Add(to)) {
					want[who]++
				}
			}
			_, lines, err := s.Ask(context.Background(), "object", "c", map[string]string{"resource": ref.Resource,
				"namespace": ref.Namespace, "name": ref.Name, "from": begin.Add(from).Format(time.RFC3339Nano),
				"to": begin.Add(to).Format(time.RFC3339Nano)})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range lines {
				got[fmt.Sprintf("%v|%v|%v|%v", l[0], l[1], l[2], l[3])] = int(l[4].(int64))
			}
			if !maps.Equal(got, want) {
				t.Errorf("from %v to %v: %v, want %v", from, to, got, want)
			}
		}
	}
}
