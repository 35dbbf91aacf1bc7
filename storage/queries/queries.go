// Package queries reads the store: every named question, and whatever else is asked of events, verdicts,
// usage, findings and policy. Its [Reader] changes nothing; package storage embeds it in its Store.
package queries

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// This file and its siblings hold the named queries of pages, API and commands. Counts are sum(sign), or sums over the rollups, and so
// exact at any state of merging; lists read FINAL. Times are those of the requests (requestReceivedTimestamp), bounds inclusive from,
// exclusive to. testdata/queries.golden keeps the SQL for review.

// Cluster is one cluster the store has events of.
type Cluster struct {
	Name        string
	Events      int64
	First, Last time.Time // start of the first and of the last minute with events
}

const clustersQuery = `SELECT cluster, sum(count) AS events, toInt64(toUnixTimestamp(minIf(minute, count > 0))), toInt64(toUnixTimestamp(maxIf(minute, count > 0)))
FROM %[1]s.volume%[2]s
GROUP BY cluster
HAVING events > 0
ORDER BY cluster`

// Clusters lists the clusters by name, each with the range of its events: pages open on the newest data, not on the last hour.
func (rd *Reader) Clusters(ctx context.Context) ([]Cluster, error) { return rd.clusters(ctx, "", nil) }

// ClustersOf lists those of some clusters that have events; nil: of all.
func (rd *Reader) ClustersOf(ctx context.Context, clusters []string) (out []Cluster, err error) {
	err = some(clusters, func(only string, p clickhouse.Parameters) error {
		list, err := rd.clusters(ctx, only, p)
		out = append(out, list...)
		return err
	})
	return out, err
}

func (rd *Reader) clusters(ctx context.Context, only string, p clickhouse.Parameters) ([]Cluster, error) {
	return statement.Collect(ctx, rd.at, fmt.Sprintf(clustersQuery, "%[1]s", only), p, func(c *Cluster) ([]any, func()) {
		var first, last int64
		return []any{&c.Name, &c.Events, &first, &last}, func() {
			c.First, c.Last = time.Unix(first, 0).UTC(), time.Unix(last, 0).UTC()
		}
	})
}

// someClusters bounds the names in one statement.
const someClusters = 1000

// some calls f with a condition on some clusters, as often as there are too many for one statement; nil: on none, once. Tables begin with
// the cluster, so that the others are not read.
func some(clusters []string, f func(only string, p clickhouse.Parameters) error) error {
	if clusters == nil {
		return f("", clickhouse.Parameters{})
	}
	for list := range slices.Chunk(clusters, someClusters) {
		if err := f(" WHERE cluster IN {clusters:Array(String)}", clickhouse.Parameters{"clusters": statement.Texts(list)}); err != nil {
			return err
		}
	}
	return nil
}

// Bucket is the volume of a stretch of time.
type Bucket struct {
	Start    time.Time
	Recorded string // allow, forbid, none; empty: later stages of requests
	Outcome  string // match, drift, ...; empty: later stages of requests
	Events   int64
}

const volumeQuery = `SELECT intDiv(toInt64(toUnixTimestamp(minute)), {step:Int64}) * {step:Int64} AS start, recorded, outcome, sum(count) AS events
FROM %s.volume
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
GROUP BY start, recorded, outcome
HAVING events != 0
ORDER BY start, recorded, outcome`

// Volume returns events per step (whole minutes, at least one) by decision and outcome.
func (rd *Reader) Volume(ctx context.Context, cluster string, from, to time.Time, step time.Duration) ([]Bucket, error) {
	p := window(cluster, from, to)
	p["step"] = fmt.Sprint(max(int64(step/time.Minute), 1) * 60)
	return statement.Collect(ctx, rd.at, volumeQuery, p, func(b *Bucket) ([]any, func()) {
		var start int64
		return []any{&start, &b.Recorded, &b.Outcome, &b.Events}, func() { b.Start = time.Unix(start, 0).UTC() }
	})
}

// Share is a count of requests of one outcome and class.
type Share struct {
	Outcome, Class string
	Requests       int64
}

const outcomesQuery = `SELECT outcome, class, sum(count) AS requests
FROM %s.volume
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AND outcome != ''
GROUP BY outcome, class
HAVING requests != 0
ORDER BY requests DESC, outcome, class`

// Outcomes returns the requests by outcome and class: the drift by class, the verdict coverage.
func (rd *Reader) Outcomes(ctx context.Context, cluster string, from, to time.Time) ([]Share, error) {
	return statement.Collect(ctx, rd.at, outcomesQuery, window(cluster, from, to), func(v *Share) ([]any, func()) {
		return []any{&v.Outcome, &v.Class, &v.Requests}, nil
	})
}

// Lack is something whose absence made verdicts indeterminate.
type Lack struct {
	Missing  string
	Requests int64
}

const lacksQuery = `SELECT m, sum(toInt64(sign)) AS requests
FROM %s.events
ARRAY JOIN missing AS m
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AND outcome = 'indeterminate'
GROUP BY m
HAVING requests > 0
ORDER BY requests DESC, m
LIMIT {limit:UInt32}`

// Lacks returns what is missing most, most requests first: the first is the one thing to supply next.
func (rd *Reader) Lacks(ctx context.Context, cluster string, from, to time.Time, limit int) ([]Lack, error) {
	p := window(cluster, from, to)
	p["limit"] = fmt.Sprint(limit)
	return statement.Collect(ctx, rd.at, lacksQuery, p, (*Lack).targets)
}

func (l *Lack) targets() ([]any, func()) { return []any{&l.Missing, &l.Requests}, nil }

// SubjectCount is what one subject did.
type SubjectCount struct {
	Subject                    string
	Requests, Forbidden, Drift int64
}

const subjectsQuery = `SELECT subject, sum(toInt64(sign)) AS requests, toInt64(sumIf(toInt64(sign), recorded = 'forbid')) AS forbidden, toInt64(sumIf(toInt64(sign), outcome = 'drift')) AS drift
FROM %s.events
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AND outcome != ''
GROUP BY subject
HAVING requests > 0
ORDER BY requests DESC, subject
LIMIT {limit:UInt32}`

func (c *SubjectCount) targets() ([]any, func()) {
	return []any{&c.Subject, &c.Requests, &c.Forbidden, &c.Drift}, nil
}

// window returns the parameters of a cluster and a stretch of time, rounded to whole minutes: a page's range covers the minutes it touches.
func window(cluster string, from, to time.Time) clickhouse.Parameters {
	first, end := wholeMinutes(from, to)
	return clickhouse.Parameters{"cluster": statement.Text(cluster), "from_minute": fmt.Sprint(first), "to_minute": fmt.Sprint(end)}
}

// wholeMinutes returns the start of the first minute a range touches and the end of the last.
func wholeMinutes(from, to time.Time) (first, end uint32) {
	if end = codec.Minute(to); to.After(time.Unix(int64(end), 0)) {
		end += 60
	}
	return codec.Minute(from), end
}

// EventFilter selects events for a list. Empty members do not restrict.
type EventFilter struct {
	Cluster  string
	From, To time.Time // requestReceivedTimestamp: From inclusive, To exclusive
	Subject  string
	Recorded string // decision: allow, forbid or none
	Outcome  string
	Class    string
	Verb     string
	Resource string
	Where    []Condition // and these
	also     string      // and this, in SQL
	// Judged leaves the rows of later stages out: one row per request.
	Judged bool
	// Before continues a list: the cursor of the last row of the page before.
	Before Cursor
	Limit  int // default 50, at most 1,000
}

// Cursor is a place in the newest-first list of events.
type Cursor struct {
	Received int64  // microseconds since 1970
	Key      string // request key and stage, hexadecimal
}

// CursorOf returns the cursor of a row.
func CursorOf(r *verdict.Row) Cursor {
	return Cursor{Received: r.Event.RequestReceivedTimestamp.UnixMicro(), Key: r.Request.String() + string(r.Event.Stage)}
}

// behind reports whether a place comes after another in the list.
func (c Cursor) behind(o Cursor) bool {
	return c.Received < o.Received || c.Received == o.Received && c.Key < o.Key
}

// Reader answers questions of a store: it reads and changes nothing.
type Reader struct{ at statement.DB }

// New returns the Reader of a database.
func New(at statement.DB) *Reader { return &Reader{at} }
