package storage_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestOverviewOfShortRanges compares the overview of a range that ends inside of minutes
// with the same sums made of the rows in Go, and that of a long range with a short one.
func TestOverviewOfShortRanges(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	first, last := in[0].Event.RequestReceivedTimestamp, in[0].Event.RequestReceivedTimestamp
	for _, r := range in {
		at := r.Event.RequestReceivedTimestamp
		if at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	from, to := first.Add(last.Sub(first)/3), last // exclusive: the newest is left out
	o, err := s.Overview(ctx, "c", from, to)
	if err != nil {
		t.Fatal(err)
	}
	volume, wantVolume := map[string]int64{}, map[string]int64{}
	shares, wantShares := map[string]int64{}, map[string]int64{}
	decisions, wantDecisions := map[string]int64{}, map[string]int64{}
	subjects := map[string]int64{}
	for _, r := range in {
		at := r.Event.RequestReceivedTimestamp
		if at.Before(from) || !at.Before(to) {
			continue
		}
		start := at.Truncate(o.Step).Format(time.RFC3339)
		if v := r.Verdict; v == nil {
			wantVolume[start]++
		} else {
			wantVolume[start+v.Recorded.String()+v.Outcome.String()]++
			wantShares[v.Outcome.String()+"/"+v.Class]++
			wantDecisions[v.Recorded.String()+"/"+v.Replayed.String()]++
			subjects[r.Event.EffectiveUser().Username]++
		}
	}
	if len(wantVolume) == 0 || len(subjects) == 0 {
		t.Fatal("the range holds nothing")
	}
	for i, b := range o.Volume {
		volume[b.Start.Format(time.RFC3339)+b.Recorded+b.Outcome] += b.Events
		if i > 0 && b.Start.Before(o.Volume[i-1].Start) {
			t.Errorf("bucket %v after %v", b.Start, o.Volume[i-1].Start)
		}
	}
	for _, v := range o.Outcomes {
		shares[v.Outcome+"/"+v.Class] = v.Requests
	}
	for _, v := range o.Decisions {
		decisions[v.Recorded+"/"+v.Replayed] = v.Requests
	}
	equal(t, "volume", volume, wantVolume)
	equal(t, "outcomes", shares, wantShares)
	equal(t, "decisions", decisions, wantDecisions)
	for _, v := range o.Subjects {
		if v.Requests != subjects[v.Subject] {
			t.Errorf("subject %s: %d requests, want %d", v.Subject, v.Requests, subjects[v.Subject])
		}
	}

	short, err := s.Overview(ctx, "c", first.Truncate(time.Minute), last.Truncate(time.Minute).Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	long, err := s.Overview(ctx, "c", first.Add(-10*time.Hour), last.Add(10*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if len(short.Outcomes) == 0 || len(short.Outcomes) != len(long.Outcomes) || len(short.Decisions) != len(long.Decisions) {
		t.Fatalf("short %+v\nlong %+v", short, long)
	}
	for i := range short.Outcomes {
		if short.Outcomes[i] != long.Outcomes[i] {
			t.Errorf("outcome %+v of the events, %+v of the rollup", short.Outcomes[i], long.Outcomes[i])
		}
	}
	for i := range short.Decisions {
		if short.Decisions[i] != long.Decisions[i] {
			t.Errorf("decision %+v of the events, %+v of the rollup", short.Decisions[i], long.Decisions[i])
		}
	}

	t.Run("events of a recorded decision", func(t *testing.T) {
		page, err := s.Events(ctx, queries.EventFilter{Cluster: "c", From: from, To: to, Recorded: "allow", Judged: true, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		want := decisions["allow/allow"] + decisions["allow/forbid"] + decisions["allow/none"]
		if int64(len(page)) != want || want == 0 {
			t.Errorf("%d rows, want %d", len(page), want)
		}
		for _, r := range page {
			if r.Verdict.Recorded != verdict.DecisionAllow {
				t.Errorf("%s recorded %s", r.Event.AuditID, r.Verdict.Recorded)
			}
		}
	})
	t.Run("a visit of an audit ID ends when its visitor has enough", func(t *testing.T) {
		enough, visits := errors.New("enough"), 0
		err := s.VisitWhy(ctx, "c", in[0].Event.AuditID, func(verdict.Row) error { visits++; return enough })
		if !errors.Is(err, enough) || visits != 1 {
			t.Errorf("%d visits, %v", visits, err)
		}
	})
}

// TestOverviewSteps: bars are few enough to be seen and many enough to tell something, at
// whatever length of a range.
func TestOverviewSteps(t *testing.T) {
	s := storagetest.Open(t)
	from := time.Date(2026, 11, 20, 11, 36, 7, 0, time.UTC)
	for _, length := range []time.Duration{
		time.Millisecond, time.Second, time.Minute, 9 * time.Minute, time.Hour, 2 * time.Hour, 2*time.Hour + time.Second, 24 * time.Hour,
		30 * 24 * time.Hour, 50 * 365 * 24 * time.Hour,
	} {
		o, err := s.Overview(context.Background(), "c", from, from.Add(length))
		if err != nil {
			t.Fatalf("%v: %v", length, err)
		}
		n := length / o.Step
		if o.Step < time.Second || n > 120 || o.Step > time.Second && n < 30 {
			t.Errorf("%v in steps of %v: %d buckets", length, o.Step, n)
		}
		if length > 2*time.Hour && o.Step%time.Minute != 0 {
			t.Errorf("%v in steps of %v: the rollup has whole minutes", length, o.Step)
		}
	}
}

// TestOverviewSubjects: over a range that is summed from the rollup the busiest subjects are
// those of its minutes, wherever it begins and ends within ten of them.
func TestOverviewSubjects(t *testing.T) {
	ctx := context.Background()
	s := storagetest.Open(t)
	// Once more, spread over an hour: ends of ranges then fall into and between slots.
	in := rows(t, "c", 0)
	for i := range in {
		e := *in[i].Event
		start := in[0].Event.RequestReceivedTimestamp.Truncate(10 * time.Minute)
		e.RequestReceivedTimestamp = start.Add(time.Hour * time.Duration(i) / time.Duration(len(in)))
		e.StageTimestamp = e.RequestReceivedTimestamp
		in[i].Event = &e
	}
	insert(t, s, "a", in)
	first := in[0].Event.RequestReceivedTimestamp
	at := func(minutes int) time.Time { return first.Add(time.Duration(minutes) * time.Minute) }
	for name, r := range map[string][2]time.Time{
		"everything":                    {at(-100), at(100)},
		"from within a slot":            {at(13), at(200)},
		"from a slot's begin":           {at(20), at(200)},
		"to within a slot":              {at(-200), at(37)},
		"to a slot's end":               {at(-200), at(40)},
		"of the first seconds":          {at(-200), first.Add(time.Second)},
		"of the last minute":            {at(59), at(300)},
		"after all":                     {at(80), at(300)},
		"between the seconds of minute": {at(13).Add(17 * time.Second), at(200).Add(time.Second)},
	} {
		o, err := s.Overview(ctx, "c", r[0], r[1])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := map[string]queries.SubjectCount{}
		end := r[1].Add(time.Minute - 1).Truncate(time.Minute)
		for _, row := range in {
			when := row.Event.RequestReceivedTimestamp
			if row.Verdict == nil || when.Before(r[0].Truncate(time.Minute)) || !when.Before(end) {
				continue
			}
			c := want[row.Event.EffectiveUser().Username]
			c.Subject = row.Event.EffectiveUser().Username
			c.Requests++
			if row.Verdict.Recorded == verdict.DecisionForbid {
				c.Forbidden++
			}
			if row.Verdict.Outcome == verdict.OutcomeDrift {
				c.Drift++
			}
			want[c.Subject] = c
		}
		busiest := slices.SortedFunc(maps.Values(want), func(a, b queries.SubjectCount) int {
			return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Subject, b.Subject))
		})
		if busiest = busiest[:min(len(busiest), 15)]; !slices.Equal(o.Subjects, busiest) {
			t.Errorf("%s: %+v\nwant %+v", name, o.Subjects, busiest)
		}
	}
}

// TestOverviewLacks: what is missing is that of the newest requests, enough of them, and of all
// when they are few.
func TestOverviewLacks(t *testing.T) {
	s, ctx := storagetest.OpenShared(t), context.Background()
	at := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	add := func(begin time.Time, n int, missing string) {
		s.Exec(t, fmt.Sprintf(`INSERT INTO retrial.events (cluster, ingest_day, day, minute, request_received, request_key, stage, sign, version, outcome, missing)
SELECT 'c', toDate(%[1]d), toDate(%[1]d), toDateTime(%[1]d, 'UTC'), toDateTime64(%[1]d, 6, 'UTC'), sipHash128(number, '%[3]s'), 'ResponseComplete', 1, 1, 'indeterminate', ['%[3]s'] FROM numbers(%[2]d)`, begin.Unix(), n, missing))
	}
	lacks := func() map[string]int64 {
		o, err := s.Overview(ctx, "c", at.Add(-time.Hour), at.Add(5*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]int64{}
		for _, l := range o.Lacks {
			out[l.Missing] = l.Requests
		}
		return out
	}
	equal(t, "lacks of nothing", lacks(), map[string]int64{})
	add(at, 3, "old")
	add(at.Add(time.Minute), 2, "new")
	equal(t, "lacks of few", lacks(), map[string]int64{"old": 3, "new": 2})
	add(at.Add(2*time.Minute), 25_000, "newest")
	equal(t, "lacks of many", lacks(), map[string]int64{"newest": 25_000})
}
