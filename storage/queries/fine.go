package queries

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/retrial-io/retrial/storage/statement"
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

// Overview runs the first page's queries. A short range of not too many events is summed from them, to the instant and in steps of seconds;
// any other from the rollup, in whole minutes. Lacks are those of the newest requests that lack something.
func (rd *Reader) Overview(ctx context.Context, cluster string, from, to time.Time) (Overview, error) {
	o := Overview{Cluster: cluster, From: from, To: to, Step: stepOf(to.Sub(from))}
	p := window(cluster, from, to)
	at, err := rd.extent(ctx, p)
	if err != nil {
		return o, err
	}
	sums, subjects, lacks := coarseQuery, subjectsQuery, lacksQuery
	switch {
	case to.Sub(from) <= fineRange && at.inside <= mostFine:
		sums, subjects, lacks = exactly(fineQuery), exactly(subjectsQuery), exactly(lacksQuery)
		p["from"], p["to"] = fmt.Sprint(from.UnixMicro()), fmt.Sprint(to.UnixMicro())
	default:
		subjects = busiest(p, from, to, at.outside == 0)
	}
	if sums == coarseQuery {
		o.Step = max(o.Step, time.Minute)
	}
	p["step"] = fmt.Sprint(o.Step.Microseconds())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return rd.sums(ctx, sums, &o, p) })
	g.Go(func() (err error) {
		o.Subjects, err = statement.Collect(ctx, rd.at, subjects, with(p, "limit", "15"), (*SubjectCount).targets)
		return err
	})
	if at.lacking > 0 {
		g.Go(func() (err error) {
			newest := with(p, "limit", "50")
			newest["from_minute"] = fmt.Sprint(at.lacking)
			o.Lacks, err = statement.Collect(ctx, rd.at, lacks, newest, (*Lack).targets)
			return err
		})
	}
	return o, g.Wait()
}

// with returns the parameters and one more.
func with(p clickhouse.Parameters, name, value string) clickhouse.Parameters {
	out := maps.Clone(p)
	out[name] = value
	return out
}

// extent is how many events lie inside and outside of a range, and the minute with which its
// newest requests that lack something begin: at least mostLacking, or all; 0: none does.
type extent struct{ inside, outside, lacking int64 }

// mostLacking bounds what is read for what is missing most: what to supply next shows in the newest requests.
const mostLacking = 20_000

const extentQuery = `SELECT toInt64(sumIf(c, inside)), toInt64(sumIf(c, NOT inside)), toInt64(toUnixTimestamp(minIf(minute, lacking > 0 AND later < {most:Int64})))
FROM (
    SELECT minute, minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AS inside, sum(count) AS c, sumIf(count, inside AND outcome = 'indeterminate') AS lacking,
        sum(lacking) OVER (ORDER BY minute DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later
    FROM %s.volume
    WHERE cluster = {cluster:String}
    GROUP BY minute
)`

func (rd *Reader) extent(ctx context.Context, p clickhouse.Parameters) (extent, error) {
	list, err := statement.Collect(ctx, rd.at, extentQuery, with(p, "most", fmt.Sprint(mostLacking)),
		func(e *extent) ([]any, func()) { return []any{&e.inside, &e.outside, &e.lacking}, nil })
	if err != nil || len(list) == 0 {
		return extent{}, err
	}
	return list[0], nil
}

// fineRange is the longest range that is summed from its events: two hours of a busy cluster are some seconds of reading, a month is not.
const fineRange = 2 * time.Hour

// mostFine is the most events a range is summed from: more take longer than a page may.
const mostFine = 500_000

// slot is how long the rollup of subjects counts requests together.
const slot = 10 * 60

const (
	slotsQuery = `SELECT subject, sum(count) AS requests, sumIf(count, recorded = 'forbid') AS forbidden, sumIf(count, outcome = 'drift') AS drift
FROM %[1]s.activity
WHERE cluster = {cluster:String} AND slot >= {from_slot:UInt32} AND slot < {to_slot:UInt32}
GROUP BY subject`
	edgesQuery = `SELECT subject, sum(toInt64(sign)), toInt64(sumIf(toInt64(sign), recorded = 'forbid')), toInt64(sumIf(toInt64(sign), outcome = 'drift'))
FROM %[1]s.events
WHERE cluster = {cluster:String} AND (minute >= {from_minute:UInt32} AND minute < {from_slot:UInt32} OR minute >= {to_slot:UInt32} AND minute < {to_minute:UInt32}) AND outcome != ''
GROUP BY subject`
	mostFirst = `
HAVING requests > 0
ORDER BY requests DESC, subject
LIMIT {limit:UInt32}`
)

// busiest returns the query of subjects in a range of whole minutes, and completes its parameters: from the rollup, and what the range has
// of a slot's minutes at its ends from events. all: nothing lies outside of the range.
func busiest(p clickhouse.Parameters, from, to time.Time, all bool) string {
	first, end := wholeMinutes(from, to)
	if all {
		p["from_slot"], p["to_slot"] = fmt.Sprint(first/slot*slot), fmt.Sprint(end)
		return slotsQuery + mostFirst
	}
	begin, stop := (int64(first)+slot-1)/slot*slot, int64(end)/slot*slot
	if begin >= stop { // no whole slot
		return subjectsQuery
	}
	p["from_slot"], p["to_slot"] = fmt.Sprint(begin), fmt.Sprint(stop)
	if begin == int64(first) && stop == int64(end) {
		return slotsQuery + mostFirst
	}
	return "SELECT subject, sum(requests) AS requests, sum(forbidden), sum(drift)\nFROM\n(\n" + slotsQuery + "\nUNION ALL\n" + edgesQuery +
		"\n)\nGROUP BY subject" + mostFirst
}

// mostBuckets is how many steps a range is cut into at most: bars of a chart stay wide enough to be pointed at.
const mostBuckets = 120

// stepOf returns the length of buckets for a range, so that their borders are times people
// count in. Ranges beyond fineRange have steps of whole minutes.
func stepOf(length time.Duration) time.Duration { return stepWithin(length, mostBuckets) }

// stepWithin is stepOf for so many steps at most.
func stepWithin(length time.Duration, most int) time.Duration {
	const fourWeeks = 28 * 24 * time.Hour
	for _, s := range [...]time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour,
		14 * 24 * time.Hour, fourWeeks,
	} {
		if length <= time.Duration(most)*s {
			return s
		}
	}
	return (length/(time.Duration(most)*fourWeeks) + 1) * fourWeeks
}

// exactly narrows a query that reads events from whole minutes to instants.
func exactly(query string) string {
	const minutes = "minute < {to_minute:UInt32}"
	return strings.Replace(query, minutes, minutes+
		" AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64}", 1)
}

const fineQuery = `SELECT intDiv(toUnixTimestamp64Micro(request_received), {step:Int64}) * {step:Int64} AS start, recorded, replayed, outcome, class, sum(toInt64(sign)) AS events
FROM %s.events
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
GROUP BY start, recorded, replayed, outcome, class
HAVING events != 0
ORDER BY start, recorded, outcome, replayed, class`

// coarseQuery is fineQuery of the rollup.
const coarseQuery = `SELECT intDiv(toInt64(toUnixTimestamp(minute)) * 1000000, {step:Int64}) * {step:Int64} AS start, recorded, replayed, outcome, class, sum(count) AS events
FROM %s.volume
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
GROUP BY start, recorded, replayed, outcome, class
HAVING events != 0
ORDER BY start, recorded, outcome, replayed, class`

// sums adds up volume, outcomes and decisions, in one reading.
func (rd *Reader) sums(ctx context.Context, query string, o *Overview, p clickhouse.Parameters) error {
	type group struct {
		start                              int64
		recorded, replayed, outcome, class string
		events                             int64
	}
	groups, err := statement.Collect(ctx, rd.at, query, p, func(g *group) ([]any, func()) {
		return []any{&g.start, &g.recorded, &g.replayed, &g.outcome, &g.class, &g.events}, nil
	})
	if err != nil {
		return err
	}
	outcomes, decisions := map[Share]int64{}, map[Decided]int64{}
	for _, g := range groups {
		start := time.UnixMicro(g.start).UTC()
		if n := len(o.Volume); n > 0 && o.Volume[n-1].Start.Equal(start) && o.Volume[n-1].Recorded == g.recorded &&
			o.Volume[n-1].Outcome == g.outcome {
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

// Totals are sums over whole tables, for tests and for the doctor: Volume equals Events,
// Usage and Activity equal Judged, ImpliedUsage Implied, and Grants equals GrantRows, whenever no insert is in between.
type Totals struct {
	Events    int64 // standing rows: sum(sign)
	Rows      int64 // rows that are not taken back as a list shows them
	Judged    int64 // standing rows with a verdict
	Implied   int64 // checks behind the standing rows that were not refused
	GrantRows int64 // grants of the standing rows and of those checks
	Checksum  uint64
	// Sums over the rollups.
	Volume, Usage, ImpliedUsage, Grants, Activity int64
	// The checksums depend on every key and its sum.
	UsageChecksum, GrantChecksum, VolumeChecksum, ActivityChecksum uint64
	Accesses, GroupSets                                            uint64
	PolicyVersions, DeadLetters                                    uint64
}

// Totals reads the totals of the store.
func (rd *Reader) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	for _, q := range []struct {
		sql string
		to  []any
	}{
		{`SELECT sum(toInt64(sign)), toInt64(sumIf(toInt64(sign), outcome != '')), toInt64(sumIf(sign * toInt64(arrayCount(a -> a != 0, ` +
			`implied_access)), recorded != 'forbid')), sum(sign * (toInt64(length(grants)) + if(recorded != 'forbid', ` +
			`toInt64(arraySum(arrayMap((a, g) -> if(a = 0, 0, length(g)), implied_access, implied_grants))), 0))), toUInt64(sum(sign * ` +
			`reinterpretAsInt64(cityHash64(cluster, request_key, stage, stage_delay, content, version, koffset)))) FROM %s.events`,
			[]any{&t.Events, &t.Judged, &t.Implied, &t.GrantRows, &t.Checksum}},
		{`SELECT toInt64(count()) FROM %s.events FINAL WHERE sign = 1`, []any{&t.Rows}},
		{`SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, minute, outcome, ` +
			`class, recorded, replayed, kpart, ingest_day) AS h FROM %s.volume GROUP BY h)`, []any{&t.Volume, &t.VolumeChecksum}},
		{`SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, slot, subject, ` +
			`user_agent, recorded, outcome, kpart, ingest_day) AS h FROM %s.activity GROUP BY h)`, []any{&t.Activity, &t.ActivityChecksum}},
		{`SELECT toInt64(sumIf(c, behind = '')), toInt64(sumIf(c, behind != '')), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT ` +
			`sum(count) AS c, implied AS behind, cityHash64(cluster, access, day, recorded, replayed, outcome, class, kpart, ingest_day, ` +
			`implied, covered) AS h FROM %s.access_usage GROUP BY h, behind)`, []any{&t.Usage, &t.ImpliedUsage, &t.UsageChecksum}},
		{`SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, granted, access, day,` +
			` kpart, ingest_day, implied) AS h FROM %s.grant_usage GROUP BY h)`, []any{&t.Grants, &t.GrantChecksum}},
		{`SELECT uniqExact((cluster, access)) FROM %s.accesses`, []any{&t.Accesses}},
		{`SELECT uniqExact(group_set) FROM %s.group_sets`, []any{&t.GroupSets}},
		{`SELECT count() FROM %s.policy_objects FINAL`, []any{&t.PolicyVersions}},
		{`SELECT count() FROM %s.dead_letters FINAL`, []any{&t.DeadLetters}},
	} {
		if err := rd.at.Conn.QueryRow(ctx, fmt.Sprintf(q.sql, rd.at.Name)).Scan(q.to...); err != nil {
			return t, fmt.Errorf("read totals: %w", err)
		}
	}
	return t, nil
}
