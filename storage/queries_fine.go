package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Overview is the first page's content.
type Overview struct {
	Cluster   string
	From, To  time.Time
	Step      time.Duration // length of the volume's buckets
	Volume    []Bucket
	Outcomes  []Share // all outcomes; drift by class among them
	Decisions []Decided
	Subjects  []SubjectCount
	Lacks     []Lack // most wanted first
}

// Decided counts the requests of a recorded and a replayed decision.
type Decided struct {
	Recorded, Replayed string // allow, forbid, none
	Requests           int64
}

// Overview runs the first page's queries. A short range is summed from its events, to the
// instant and in steps of seconds; a long one from the rollup, in whole minutes.
func (s *Store) Overview(ctx context.Context, cluster string, from, to time.Time) (Overview, error) {
	o := Overview{Cluster: cluster, From: from, To: to, Step: stepOf(to.Sub(from))}
	subjects, lacks, p := subjectsQuery, lacksQuery, window(cluster, from, to)
	var err error
	if to.Sub(from) <= fineRange {
		subjects, lacks = exactly(subjectsQuery), exactly(lacksQuery)
		p["from"], p["to"] = fmt.Sprint(from.UnixMicro()), fmt.Sprint(to.UnixMicro())
		err = s.fine(ctx, &o, p)
	} else {
		err = s.coarse(ctx, &o)
	}
	if err != nil {
		return o, err
	}
	p["limit"] = "15"
	if o.Subjects, err = collect(ctx, s, subjects, p, (*SubjectCount).targets); err != nil {
		return o, err
	}
	p["limit"] = "50"
	o.Lacks, err = collect(ctx, s, lacks, p, (*Lack).targets)
	return o, err
}

// fineRange is the longest range that is summed from its events: two hours of a busy
// cluster are some seconds of reading, a month is not.
const fineRange = 2 * time.Hour

// mostBuckets is how many steps a range is cut into at most: bars of a chart stay wide
// enough to be pointed at.
const mostBuckets = 120

// stepOf returns the length of buckets for a range, so that their borders are times people
// count in. Ranges beyond fineRange have steps of whole minutes.
func stepOf(length time.Duration) time.Duration {
	const fourWeeks = 28 * 24 * time.Hour
	for _, s := range [...]time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, fourWeeks,
	} {
		if length <= mostBuckets*s {
			return s
		}
	}
	return (length/(mostBuckets*fourWeeks) + 1) * fourWeeks
}

// exactly narrows a query that reads events from whole minutes to instants.
func exactly(query string) string {
	const minutes = "minute < {to_minute:UInt32}"
	return strings.Replace(query, minutes, minutes+" AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64}", 1)
}

const fineQuery = `SELECT intDiv(toUnixTimestamp64Micro(request_received), {step:Int64}) * {step:Int64} AS start, recorded, replayed, outcome, class, sum(toInt64(sign)) AS events
FROM %s.events
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
GROUP BY start, recorded, replayed, outcome, class
HAVING events != 0
ORDER BY start, recorded, outcome, replayed, class`

// fine sums volume, outcomes and decisions from events, in one reading.
func (s *Store) fine(ctx context.Context, o *Overview, p clickhouse.Parameters) error {
	type group struct {
		start                              int64
		recorded, replayed, outcome, class string
		events                             int64
	}
	p["step"] = fmt.Sprint(o.Step.Microseconds())
	groups, err := collect(ctx, s, exactly(fineQuery), p, func(g *group) ([]any, func()) {
		return []any{&g.start, &g.recorded, &g.replayed, &g.outcome, &g.class, &g.events}, nil
	})
	if err != nil {
		return err
	}
	outcomes, decisions := map[Share]int64{}, map[Decided]int64{}
	for _, g := range groups {
		start := time.UnixMicro(g.start).UTC()
		if n := len(o.Volume); n > 0 && o.Volume[n-1].Start.Equal(start) && o.Volume[n-1].Recorded == g.recorded && o.Volume[n-1].Outcome == g.outcome {
			o.Volume[n-1].Events += g.events
		} else {
			o.Volume = append(o.Volume, Bucket{Start: start, Recorded: g.recorded, Outcome: g.outcome, Events: g.events})
		}
		if g.outcome != "" {
			outcomes[Share{Outcome: g.outcome, Class: g.class}] += g.events
			decisions[Decided{Recorded: g.recorded, Replayed: g.replayed}] += g.events
		}
	}
	for v, n := range outcomes {
		v.Requests = n
		o.Outcomes = append(o.Outcomes, v)
	}
	slices.SortFunc(o.Outcomes, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Class, b.Class))
	})
	for v, n := range decisions {
		v.Requests = n
		o.Decisions = append(o.Decisions, v)
	}
	slices.SortFunc(o.Decisions, func(a, b Decided) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Recorded, b.Recorded), cmp.Compare(a.Replayed, b.Replayed))
	})
	return nil
}

// coarse reads volume, outcomes and decisions from the rollup.
func (s *Store) coarse(ctx context.Context, o *Overview) (err error) {
	if o.Volume, err = s.Volume(ctx, o.Cluster, o.From, o.To, o.Step); err != nil {
		return err
	}
	if o.Outcomes, err = s.Outcomes(ctx, o.Cluster, o.From, o.To); err != nil {
		return err
	}
	o.Decisions, err = s.Decisions(ctx, o.Cluster, o.From, o.To)
	return err
}

const decisionsQuery = `SELECT recorded, replayed, sum(count) AS requests
FROM %s.volume
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AND outcome != ''
GROUP BY recorded, replayed
HAVING requests != 0
ORDER BY requests DESC, recorded, replayed`

// Decisions returns the requests by recorded and replayed decision, most requests first.
func (s *Store) Decisions(ctx context.Context, cluster string, from, to time.Time) ([]Decided, error) {
	return collect(ctx, s, decisionsQuery, window(cluster, from, to), func(v *Decided) ([]any, func()) {
		return []any{&v.Recorded, &v.Replayed, &v.Requests}, nil
	})
}
