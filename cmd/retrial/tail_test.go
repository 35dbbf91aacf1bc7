package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrial-io/retrial/query"
)

// fakeEvents answers as api/v1/events does of what has arrived.
type fakeEvents struct {
	arrived []query.Event // newest first
	page    int           // most of an answer
}

func (f *fakeEvents) arrive(events ...query.Event) {
	f.arrived = append(f.arrived, events...)
	slices.SortFunc(f.arrived, func(a, b query.Event) int {
		return cmp.Or(b.Time.Compare(a.Time), strings.Compare(b.Request, a.Request))
	})
}

func (f *fakeEvents) ask(_ context.Context, q query.EventsRequest) (out query.EventsAnswer, err error) {
	for _, e := range f.arrived {
		place := fmt.Sprintf("%020d.%s", e.Time.UnixMicro(), e.Request)
		switch {
		case e.Time.Before(q.From), q.Before != "" && place >= q.Before:
		case len(out.Events) == min(f.page, q.Limit):
			last := &out.Events[len(out.Events)-1]
			out.Older = fmt.Sprintf("%020d.%s", last.Time.UnixMicro(), last.Request)
			return out, nil
		default:
			out.Events = append(out.Events, e)
		}
	}
	return out, nil
}

func madeEvent(n int, at time.Time) query.Event {
	return query.Event{AuditID: fmt.Sprint("id-", n), Request: fmt.Sprintf("%032d", n), Time: at, Subject: "alice", Verb: "get", Code: 200,
		Recorded: "allow", Outcome: "match", RequestURI: "/api/v1/pods"}
}

// TestTailTellsEveryRequestOnce: in whatever order they arrive, while pages are small, the server fails now and then, and a clock is wrong.
func TestTailTellsEveryRequestOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(7, 11))
		f := &fakeEvents{page: 7}
		n := 0
		arrive := func(count int, late time.Duration) {
			for range count {
				n++
				f.arrive(madeEvent(n, time.Now().Add(-time.Duration(random.Int64N(int64(late))))))
			}
		}
		arrive(40, time.Hour)
		old := len(f.arrived)
		f.arrive(madeEvent(1_000_000, time.Now().Add(2*time.Hour))) // of a clock that is wrong
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
		defer cancel()
		told := map[string]int{}
		var said []string
		failing := false
		tail := tailing{late: 5 * time.Minute, now: time.Now,
			say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) },
			ask: func(ctx context.Context, q query.EventsRequest) (query.EventsAnswer, error) {
				if failing && random.IntN(60) == 0 {
					return query.EventsAnswer{}, errors.New("connection refused")
				}
				return f.ask(ctx, q)
			},
			behind: func(context.Context) (int64, error) { return 2000, nil },
			tell: func(events []query.Event) error {
				for _, e := range events {
					told[e.AuditID]++
				}
				if ctx.Err() == nil && time.Until(must(ctx.Deadline())) > 2*time.Minute { // what comes last is told as well
					failing = true
					arrive(random.IntN(11), 4*time.Minute)
				}
				return nil
			}}
		if err := tail.run(ctx, 10, 0); err != nil {
			t.Fatal(err)
		}
		for i := old + 1; i <= n; i++ {
			if id := fmt.Sprint("id-", i); told[id] != 1 {
				t.Errorf("%s was told %d times", id, told[id])
			}
		}
		for id, times := range told {
			if times != 1 {
				t.Errorf("%s was told %d times", id, times)
			}
		}
		if n < 500 || !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "2,000 events are accepted") }) ||
			!slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "is asked again: connection refused") }) {
			t.Errorf("%d requests; said %q", n, said[:min(len(said), 5)])
		}
	})
}

func must(at time.Time, _ bool) time.Time { return at }

// TestTailBeginsWithTheNewest: with so many as were asked for, oldest first, or with all since a time.
func TestTailBeginsWithTheNewest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 11, 36, 0, 0, time.UTC)
	f := &fakeEvents{page: 500}
	for i := range 30 {
		f.arrive(madeEvent(i, now.Add(time.Duration(i-30)*time.Minute)))
	}
	for lines, want := range map[int]string{0: "", 3: "id-27 id-28 id-29", -1: "id-25 id-26 id-27 id-28 id-29"} {
		var told []string
		tail := tailing{late: time.Minute, now: func() time.Time { return now }, ask: f.ask, tell: func(events []query.Event) error {
			for _, e := range events {
				told = append(told, e.AuditID)
			}
			return nil
		}}
		if lines < 0 {
			tail.q.From = now.Add(-5 * time.Minute)
		}
		if err := tail.begin(t.Context(), lines); err != nil || strings.Join(told, " ") != want {
			t.Errorf("%d lines: %q, error %v", lines, told, err)
		}
		if again, err := tail.next(t.Context(), true); err != nil || len(again) != 0 {
			t.Errorf("%d lines: told again: %v, error %v", lines, again, err)
		}
	}
}
