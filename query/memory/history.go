package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// Recording sums up the minutes of a range.
func (s *Store) Recording(ctx context.Context, _ string, from, to time.Time) (out queries.Recording, err error) {
	type class struct{ outcome, class string }
	counts := map[class]int64{}
	err = s.judged(ctx, from, to, func(row *verdict.Row) error {
		e, v := row.Event, row.Verdict
		at := micro(e.RequestReceivedTimestamp)
		if out.First.IsZero() {
			out.First = at
		}
		widen(&out.First, &out.Last, at)
		out.Requests++
		counts[class{v.Outcome.String(), v.Class}]++
		for _, key := range [...]string{"audit.k8s.io/truncated", event.AnnotationStrippedBytes} {
			if _, cut := e.Annotations.Get(key); cut {
				out.Truncated++
				break
			}
		}
		return nil
	})
	for c, n := range counts {
		out.Classes = append(out.Classes, queries.Share{Outcome: strings.Clone(c.outcome), Class: strings.Clone(c.class), Requests: n})
	}
	slices.SortFunc(out.Classes, func(a, b queries.Share) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Outcome, b.Outcome), strings.Compare(a.Class, b.Class))
	})
	out.DeadLetters = s.malformed
	return out, err
}

// Malformed sets how many lines of the log are not events.
func (s *Store) Malformed(n int64) { s.malformed = n }

// History visits the requests of a range one by one; with subjects, what concerns them.
func (s *Store) History(ctx context.Context, _ string, from, to time.Time, subjects []string, visit func(codec.Alike) error) error {
	return s.judged(ctx, from, to, func(row *verdict.Row) error {
		e := row.Event
		if len(subjects) > 0 && !slices.Contains(subjects, e.EffectiveUser().Username) && !slices.Contains(subjects, e.User.Username) {
			return nil
		}
		at := micro(e.RequestReceivedTimestamp)
		return visit(codec.Alike{Event: e, Verdict: row.Verdict, Requests: 1, First: at, Last: at})
	})
}

// Counted sums up the whole log.
func (s *Store) Counted(ctx context.Context, cluster string) (out queries.Recording, since time.Time, err error) {
	out, err = s.Recording(ctx, cluster, time.Time{}, time.Time{})
	return out, out.First.Truncate(time.Minute), err
}

// Uses visits what every request asked for, and the checks behind it; with subjects, what they asked.
func (s *Store) Uses(ctx context.Context, _ string, subjects []string, visit func(verdict.Use) error) error {
	return s.judged(ctx, time.Time{}, time.Time{}, func(row *verdict.Row) error {
		for u := range codec.UsesOf(row) {
			if len(subjects) > 0 && !slices.Contains(subjects, u.Subject) {
				continue
			}
			if err := visit(u); err != nil {
				return err
			}
		}
		return nil
	})
}

// Untold visits one by one the requests that needed more than Uses tells.
func (s *Store) Untold(ctx context.Context, cluster string, subjects []string, writes bool, visit func(codec.Alike) error) error {
	return s.History(ctx, cluster, time.Time{}, time.Time{}, subjects, func(r codec.Alike) error {
		if !r.Verdict.Untold() || !writes && r.Verdict.Recorded != verdict.DecisionForbid {
			return nil
		}
		return visit(r)
	})
}

// Judged counts the requests of a range, and how many of them were compared with the replica.
func (s *Store) Judged(ctx context.Context, _ string, from, to time.Time) (requests, judged int64, err error) {
	err = s.judged(ctx, from, to, func(row *verdict.Row) error {
		requests++
		if row.Verdict.Outcome != verdict.OutcomeNotJudged {
			judged++
		}
		return nil
	})
	return requests, judged, err
}
