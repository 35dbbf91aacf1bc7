package queries

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// Drift is a group of requests whose verdicts are not a match and all say the same, except for which object a path was looked for to.
type Drift struct {
	APIServer          string
	Outcome            verdict.Outcome
	Class              string
	Cause              string // "" if the outcome is indeterminate: examples have it
	Missing            []string
	Recorded, Replayed verdict.Decision
	RecordedReason     string
	Code               int32 // of the response, 0 when not recorded
	Config             string
	Requests           int64
	Users              uint64 // distinct, as whom the requests were made
	First, Last        time.Time
	Examples           []DriftExample // the earliest, one a user at most
}

// DriftExample is one request of a group.
type DriftExample struct {
	AuditID, User, Verb, URI, Cause string
	At                              time.Time
}

// What tells groups apart, in the rollup and of events.
const (
	groupKeys   = "apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version"
	eventGroups = "apiserver, outcome, class, " + codec.FoldedCause + " AS cause, " + codec.FoldedMissing + " AS missing, recorded, " +
		"recorded_reason, replayed, code, config_version"
	notMatch = "outcome IN ('drift', 'ambiguous', 'indeterminate')"
)

// What a range has of whole slots comes from the rollup, what is left at its ends from events.
const (
	driftSlots = `    SELECT ` + groupKeys + `, subject, slot, sum(count) AS n, toUnixTimestamp64Micro(min(first_seen)) AS at, toUnixTimestamp64Micro(max(last_seen)) AS until
    FROM %[1]s.unmatched
    WHERE cluster = {cluster:String} AND slot >= {from_slot:UInt32} AND slot < {to_slot:UInt32}
    GROUP BY ` + groupKeys + `, subject, slot
    HAVING n > 0`
	driftEdges = `    SELECT ` + eventGroups + `, subject, toStartOfTenMinutes(minute) AS slot, sum(toInt64(sign)) AS n, toUnixTimestamp64Micro(min(request_received)) AS at, toUnixTimestamp64Micro(max(request_received)) AS until
    FROM %[1]s.events AS events
    WHERE cluster = {cluster:String} AND (minute >= {first_minute:UInt32} AND minute < {from_slot:UInt32} OR minute >= {to_slot:UInt32} AND minute <= {last_minute:UInt32}) AND ` + notMatch + `
    GROUP BY ` + groupKeys + `, subject, slot
    HAVING n > 0`
	driftQuery = `SELECT ` + groupKeys + `, sum(m) AS requests, uniqExact(subject), min(first), max(last),
    arrayMap(e -> e.1, arraySlice(arraySort(groupArray((first, subject, begin, cityHash64(` + groupKeys + `, subject)))), 1, {examples:UInt32}) AS some),
    arrayMap(e -> toUInt32(e.3), some), arrayMap(e -> e.4, some)
FROM (
    SELECT ` + groupKeys + `, subject, sum(n) AS m, min(at) AS first, argMin(slot, at) AS begin, max(until) AS last
    FROM (
%s
    )
    GROUP BY ` + groupKeys + `, subject
)
GROUP BY ` + groupKeys + `
ORDER BY outcome, requests DESC, class, cause, missing, recorded_reason, apiserver, code, config_version
LIMIT {limit:UInt32}
SETTINGS max_bytes_before_external_group_by = 268435456`
)

// place is where the first request of a user in a group is looked for.
type place struct {
	group int    // in the list
	first int64  // its time in microseconds, or that of one that was taken back
	slot  uint32 // in which it certainly is
	key   uint64 // hash of group and user
}

// DriftGroups returns what is drift, ambiguous or indeterminate, grouped by what the verdicts say, most requests of an outcome first; zero
// bounds leave the range open. Each has up to the given number of examples, as long as these are in few minutes.
func (rd *Reader) DriftGroups(ctx context.Context, cluster string, from, to time.Time, examples, limit int) ([]Drift, error) {
	p := minutes(cluster, from, to)
	p["examples"], p["limit"] = fmt.Sprint(examples), fmt.Sprint(limit)
	out, places, err := rd.driftGroups(ctx, slotsOf(p, from, to), p)
	if err != nil {
		return nil, fmt.Errorf("drift of cluster %q: %w", cluster, err)
	}
	if err := rd.driftExamples(ctx, out, places, p); err != nil {
		return nil, fmt.Errorf("examples of drift of cluster %q: %w", cluster, err)
	}
	return out, nil
}

// slotsOf returns the query of what the range has, and completes its parameters.
func slotsOf(p clickhouse.Parameters, from, to time.Time) string {
	begin, end := int64(0), int64(math.MaxUint32)
	stop := end
	if !from.IsZero() {
		begin = (int64(codec.Minute(from)) + slot - 1) / slot * slot
	}
	if !to.IsZero() {
		end = int64(codec.Minute(to.Add(-time.Microsecond))) + 60
		stop = end / slot * slot
	}
	whole := begin < stop
	if !whole { // all is before the first slot
		begin, stop = end, math.MaxUint32
	}
	p["from_slot"], p["to_slot"] = fmt.Sprint(begin), fmt.Sprint(stop)
	switch edges := !from.IsZero() || !to.IsZero(); {
	case whole && edges:
		return driftSlots + "\n    UNION ALL\n" + driftEdges
	case whole:
		return driftSlots
	}
	return driftEdges
}

func (rd *Reader) driftGroups(ctx context.Context, rows string, p clickhouse.Parameters) (out []Drift, places []place, err error) {
	n := 0
	out, err = statement.Collect(ctx, rd.at, fmt.Sprintf(driftQuery, rows), p, func(d *Drift) ([]any, func()) {
		var first, last int64
		var outcome, recorded, replayed string
		var at []int64
		var slots []uint32
		var keys []uint64
		return []any{&d.APIServer, &outcome, &d.Class, &d.Cause, &d.Missing, &recorded, &d.RecordedReason, &replayed, &d.Code, &d.Config,
				&d.Requests, &d.Users, &first, &last, &at, &slots, &keys}, func() {
				d.First, d.Last, d.Missing = codec.FromMicro(first), codec.FromMicro(last), codec.OrNil(d.Missing)
				d.Outcome, d.Recorded, d.Replayed = verdict.OutcomeOf(outcome), verdict.DecisionOf(recorded), verdict.DecisionOf(replayed)
				for i := range at {
					places = append(places, place{n, at[i], slots[i], keys[i]})
				}
				n++
			}
	})
	return out, places, err
}

// mostExampleMinutes bounds the minutes of events that are read for examples, each time.
const mostExampleMinutes = 300

const exampleQuery = `SELECT key, toUnixTimestamp64Micro(min(request_received)), argMin(audit_id, (request_received, request_key)), argMin(toString(subject), (request_received, request_key)),
    argMin(toString(verb), (request_received, request_key)), argMin(toString(request_uri), (request_received, request_key)), argMin(said, (request_received, request_key))
FROM (
    SELECT ` + eventGroups + `, cityHash64(` + groupKeys + `, subject) AS key, request_received, request_key, audit_id, subject, verb, request_uri, toString(events.cause) AS said
    FROM %s.events AS events FINAL
    PREWHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND minute IN (SELECT arrayJoin({minutes:Array(UInt32)})) AND ` + notMatch + `
    WHERE sign = 1 AND key IN (SELECT arrayJoin({keys:Array(UInt64)}))
)
GROUP BY key`

// driftExamples finds the first request of each user in a group: in the minute of the first that there was or, if that was taken back,
// wherever it is in the slot.
func (rd *Reader) driftExamples(ctx context.Context, out []Drift, places []place, p clickhouse.Parameters) error {
	type example struct {
		key uint64
		DriftExample
	}
	for _, long := range []uint32{1, slot / 60} {
		read, keys := map[uint32]bool{}, []uint64{}
		for _, x := range places {
			begin := codec.Minute(codec.FromMicro(x.first))
			if long > 1 {
				begin = x.slot
			}
			if !read[begin] && len(read)+int(long) > mostExampleMinutes {
				continue
			}
			for i := range long {
				read[begin+60*i] = true
			}
			keys = append(keys, x.key)
		}
		if len(keys) == 0 {
			return nil
		}
		p["minutes"], p["keys"] = statement.Numbers(slices.Collect(maps.Keys(read))), statement.Numbers(keys)
		list, err := statement.Collect(ctx, rd.at, exampleQuery, p, func(x *example) ([]any, func()) {
			var at int64
			return []any{&x.key, &at, &x.AuditID, &x.User, &x.Verb, &x.URI, &x.Cause}, func() { x.At = codec.FromMicro(at) }
		})
		if err != nil {
			return err
		}
		found := map[uint64]DriftExample{}
		for _, x := range list {
			found[x.key] = x.DriftExample
		}
		places = slices.DeleteFunc(places, func(x place) bool {
			e, ok := found[x.key]
			if ok {
				out[x.group].Examples = append(out[x.group].Examples, e)
			}
			return ok
		})
	}
	for i := range out {
		d := &out[i]
		slices.SortFunc(d.Examples, byTime)
		if len(d.Examples) > 0 {
			d.First = d.Examples[0].At
		}
	}
	return nil
}

// byTime orders examples.
func byTime(a, b DriftExample) int {
	return cmp.Or(a.At.Compare(b.At), strings.Compare(a.User, b.User), strings.Compare(a.AuditID, b.AuditID))
}

// judgedQuery counts what the volume knows of days whose events are there.
const judgedQuery = `SELECT sum(count) AS requests, sumIf(count, outcome != 'not_judged') AS judged
FROM %[1]s.volume
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != ''
    AND ingest_day IN (SELECT ingest_day FROM %[1]s.events GROUP BY ingest_day, source = 'import')`

// Judged counts the requests from the minute of from to the minute of to, and how many of them were compared with the replica; zero bounds
// leave the range open.
func (rd *Reader) Judged(ctx context.Context, cluster string, from, to time.Time) (requests, judged int64, err error) {
	type counts struct{ requests, judged int64 }
	out, err := statement.Collect(ctx, rd.at, judgedQuery, minutes(cluster, from, to),
		func(c *counts) ([]any, func()) { return []any{&c.requests, &c.judged}, nil })
	if err != nil {
		return 0, 0, fmt.Errorf("judged requests of cluster %q: %w", cluster, err)
	}
	if len(out) == 0 {
		return 0, 0, nil
	}
	return out[0].requests, out[0].judged, nil
}
