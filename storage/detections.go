package storage

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/replay"
)

// This file has what the detections ask of events: sums of marks, and the marked requests.
// None of it reads FINAL: a mark's sum is that of the signs.

// overlap is how far behind the newest change MarkSums looks: an insert shows in the sums
// after the clock time it carries, and replicas' clocks differ.
const overlap = 5 * time.Minute

// MarkSums returns the sums that may have changed after a time by the store's clock, and the
// time to ask from next; the zero time asks for all. A rule's sum of a slot comes whole.
func (s *Store) MarkSums(ctx context.Context, since time.Time) (sums []replay.MarkSum, next time.Time, err error) {
	var newest int64
	p := clickhouse.Parameters{"since": fmt.Sprint(max(since.Unix(), 0))}
	if err := s.conn.QueryRow(ctx, "SELECT toInt64(toUnixTimestamp(max(changed))) FROM "+s.table("detections")).Scan(&newest); err != nil {
		return nil, next, fmt.Errorf("read newest change of detections: %w", err)
	}
	only := ""
	if !since.IsZero() {
		only = "\nWHERE (cluster, rule, slot) IN (SELECT cluster, rule, slot FROM %[1]s.detections WHERE changed >= {since:UInt32})"
	}
	sums, err = collect(ctx, s, `SELECT cluster, rule, toInt64(toUnixTimestamp(slot)), sum(count), sum(digest)
FROM %[1]s.detections`+only+`
GROUP BY cluster, rule, slot`, p, func(m *replay.MarkSum) ([]any, func()) {
		var at int64
		return []any{&m.Cluster, &m.Rule, &at, &m.Count, &m.Digest}, func() { m.Slot = time.Unix(at, 0).UTC() }
	})
	if newest > 0 {
		next = time.Unix(newest, 0).Add(-overlap)
	}
	return sums, next, err
}

// marked is the condition of rows that have a mark of a rule, and where the mark is.
const (
	marked = "arrayExists(h -> h = {rule:String} OR startsWith(h, {rule_slash:String}), hits)"
	markAt = "arrayFirstIndex(h -> h = {rule:String} OR startsWith(h, {rule_slash:String}), hits)"
	// markKey is the mark's key: one that is that of the audit ID is stored as 0.
	markKey = "if(hit_keys[" + markAt + "] = 0, xxHash64(audit_id), hit_keys[" + markAt + "])"
)

func markWhere(f replay.MarkFilter) (string, clickhouse.Parameters) {
	return "cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute <= {to_minute:UInt32} AND " + marked +
			" AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64}",
		clickhouse.Parameters{
			"cluster": text(f.Cluster), "rule": text(f.Rule), "rule_slash": text(f.Rule + "/"),
			"from": fmt.Sprint(f.From.UnixMicro()), "to": fmt.Sprint(f.To.UnixMicro()),
			"from_minute": fmt.Sprint(minute(f.From)), "to_minute": fmt.Sprint(minute(f.To)),
		}
}

// thrift keeps detections behind what comes in: one thread, and the disk for a query with a
// group for nearly every request of hours.
const thrift = "\nSETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456"

// paneOf is the number of a request's pane: rounded down, before 1970 too.
const paneOf = "intDiv(toUnixTimestamp64Micro(request_received) - positiveModulo(toUnixTimestamp64Micro(request_received), {every:Int64}), {every:Int64})"

// unasked are columns no rule can ask about (see analysis/detect, Variables), nor a finding
// shows. They are most of a row: each costs the store a column to read and the driver a value to
// convert, for every request of a rule that counts.
var unasked = map[string]bool{ //nolint:gochecknoglobals // constant table
	"source": true, "toUnixTimestamp64Micro(ingested)": true, "epoch": true, "kpart": true, "koffset": true, "content": true, "size": true, "row_revision": true,
	"impersonated_uid": true, "impersonated_extra": true, "impersonation_constraint": true,
	"object_resource": true, "object_namespace": true, "object_name": true, "object_uid": true, "object_api_group": true,
	"object_api_version": true, "object_resource_version": true, "object_subresource": true,
	"unknown_at": true, "unknown_name": true, "unknown_value": true, "cause": true, "errors": true,
	"attr_api_version": true, "attr_path": true, "attr_label_selector": true, "attr_field_selector": true,
	"impersonation": true, "impersonation_mode": true, "impersonation_grants": true, "impersonation_missing": true,
	"admission_plugin": true, "admission_namespace_lifecycle": true, "policy_revision": true, "engine_version": true, "config_version": true,
	"evidence": true, "explained": true, "chain": true, "implied": true, "implied_grants": true, "review": true,
}

// asked are the places in stored.targets of what rules can ask about.
func asked(bodies bool) (places []int, columns []string) {
	for i, t := range new(stored).targets() {
		if !unasked[t.sql] && (bodies || t.sql != "request_object" && t.sql != "response_object") {
			places, columns = append(places, i), append(columns, t.sql)
		}
	}
	return places, columns
}

// Marked visits the standing rows the filter selects, with what rules can ask about: see unasked
// for what stays empty.
func (s *Store) Marked(ctx context.Context, f replay.MarkFilter, visit func(replay.Row) error) error {
	where, p := markWhere(f)
	if len(f.Panes) > 0 {
		p["every"] = fmt.Sprint(f.Every.Microseconds())
		where += " AND (" + markKey + ", " + paneOf + ") IN " + paneSet(f.Panes)
	}
	ctx, cancel := context.WithCancel(params(ctx, p))
	defer cancel()
	// What stands is found by the columns that tell rows apart; only of those the rest is read.
	places, columns := asked(!f.NoBodies)
	to := make([]any, len(places))
	res, err := s.conn.Query(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM "+s.table("events")+" WHERE sign = 1 AND "+where+
		"\nAND (request_key, stage, version) IN (SELECT request_key, stage, version FROM "+s.table("events")+" WHERE "+where+
		" GROUP BY request_key, stage, version HAVING sum(sign) > 0)\nLIMIT 1 BY request_key, stage, version"+thrift)
	if err != nil {
		return fmt.Errorf("read requests marked by %s: %w", f.Rule, err)
	}
	defer res.Close()
	for res.Next() {
		var r stored
		all := r.targets()
		for i, at := range places {
			to[i] = all[at].to
		}
		if err := res.Scan(to...); err != nil {
			return fmt.Errorf("read requests marked by %s: %w", f.Rule, err)
		}
		row, err := r.row()
		if err != nil {
			return fmt.Errorf("read requests marked by %s: %w", f.Rule, err)
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	if err := res.Err(); err != nil {
		return fmt.Errorf("read requests marked by %s: %w", f.Rule, err)
	}
	return nil
}

// paneSet is a subquery of panes. They go into the statement, as keys do: see keySet.
func paneSet(panes []replay.Pane) string {
	var keys, numbers strings.Builder
	for i, p := range panes {
		if i > 0 {
			keys.WriteByte(',')
			numbers.WriteByte(',')
		}
		keys.WriteString(strconv.FormatUint(p.Key, 10))
		numbers.WriteString(strconv.FormatInt(p.Number, 10))
	}
	return "(SELECT k, n FROM (SELECT CAST('[" + keys.String() + "]', 'Array(UInt64)') AS ks, CAST('[" + numbers.String() + "]', 'Array(Int64)') AS ns) ARRAY JOIN ks AS k, ns AS n)"
}

// MarkedCount returns how many standing rows the filter selects; its panes are not looked at.
func (s *Store) MarkedCount(ctx context.Context, f replay.MarkFilter) (n int64, err error) {
	where, p := markWhere(f)
	if err := s.conn.QueryRow(params(ctx, p), "SELECT sum(toInt64(sign)) FROM "+s.table("events")+" WHERE "+where+thrift).Scan(&n); err != nil {
		return 0, fmt.Errorf("count requests marked by %s: %w", f.Rule, err)
	}
	return n, nil
}

// PaneCounts returns the groups of a rule whose marks in the stretch count often enough for
// every one of its thresholds, pane by pane of length Every. The name of a mark says after
// the slash, as a number, which thresholds the request counts for: bit i for the i-th.
func (s *Store) PaneCounts(ctx context.Context, f replay.MarkFilter, atLeast []int) ([]replay.PaneCounts, error) {
	where, p := markWhere(f)
	p["every"] = fmt.Sprint(f.Every.Microseconds())
	inner, outer, having := make([]string, len(atLeast)), make([]string, len(atLeast)), make([]string, len(atLeast))
	for i, n := range atLeast {
		inner[i] = fmt.Sprintf("sum(toInt64(sign) * toInt64(bitTest(mask, %d))) AS c%[1]d", i)
		outer[i] = fmt.Sprintf("c%d", i)
		having[i] = fmt.Sprintf("sum(c%d) >= %d", i, n)
	}
	out, err := collect(ctx, s, `SELECT key, groupArray(pane), groupArray([`+strings.Join(outer, ", ")+`])
FROM
(
    SELECT key, pane, `+strings.Join(inner, ", ")+`
    FROM
    (
        SELECT `+markKey+` AS key, `+paneOf+` AS pane, toUInt64OrZero(substringIndex(hits[`+markAt+`], '/', -1)) AS mask, sign
        FROM %[1]s.events WHERE `+where+`
    )
    GROUP BY key, pane HAVING sum(toInt64(sign)) > 0
)
GROUP BY key HAVING `+strings.Join(having, " AND ")+thrift, p, func(c *replay.PaneCounts) ([]any, func()) {
		return []any{&c.Key, &c.Panes, &c.Counts}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("count requests marked by %s: %w", f.Rule, err)
	}
	return out, nil
}

// FirstKeys returns the keys of a first-seen rule that no day before has: of the marks on
// standing rows, those of dropped events included.
func (s *Store) FirstKeys(ctx context.Context, cluster, rule string, day time.Time) ([]uint64, error) {
	keys, err := collect(ctx, s, `SELECT key
FROM (SELECT key, slot, sum(count) AS n FROM %[1]s.detections WHERE cluster = {cluster:String} AND rule = {rule:String} AND key != 0 GROUP BY key, slot HAVING n > 0)
GROUP BY key HAVING toUnixTimestamp(min(slot)) = {day:UInt32}`,
		clickhouse.Parameters{"cluster": text(cluster), "rule": text(rule), "day": fmt.Sprint(day.Unix())},
		func(k *uint64) ([]any, func()) { return []any{k}, nil })
	if err != nil {
		return nil, fmt.Errorf("find what %s sees first: %w", rule, err)
	}
	return keys, nil
}

// FirstTimes returns the earliest standing request of each of the keys within the filter's
// stretch; those without one are left out.
func (s *Store) FirstTimes(ctx context.Context, f replay.MarkFilter, keys []uint64) ([]replay.KeyTime, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	where, p := markWhere(f)
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = strconv.FormatUint(k, 10)
	}
	out, err := collect(ctx, s, `SELECT key, min(received)
FROM
(
    SELECT `+markKey+` AS key, toUnixTimestamp64Micro(request_received) AS received
    FROM %[1]s.events WHERE `+where+` AND key IN (SELECT arrayJoin(CAST('[`+strings.Join(list, ",")+`]', 'Array(UInt64)')))
    GROUP BY key, received HAVING sum(toInt64(sign)) > 0
)
GROUP BY key`+thrift, p, func(k *replay.KeyTime) ([]any, func()) {
		var us int64
		return []any{&k.Key, &us}, func() { k.First = fromMicro(us) }
	})
	if err != nil {
		return nil, fmt.Errorf("find first requests of %s: %w", f.Rule, err)
	}
	return out, nil
}

// Earliest returns when the earliest judged request of a cluster was received; where its
// events have been dropped, the begin of the first minute known to have had any.
func (s *Store) Earliest(ctx context.Context, cluster string) (time.Time, error) {
	p := clickhouse.Parameters{"cluster": text(cluster)}
	var first, exact int64
	var n uint64
	if err := s.conn.QueryRow(params(ctx, p), "SELECT toInt64(toUnixTimestamp(min(minute))) FROM (SELECT minute FROM "+s.table("volume")+
		" WHERE cluster = {cluster:String} AND outcome != '' GROUP BY minute HAVING sum(count) > 0)").Scan(&first); err != nil {
		return time.Time{}, fmt.Errorf("find the begin of cluster %q: %w", cluster, err)
	}
	p["minute"] = fmt.Sprint(first)
	if err := s.conn.QueryRow(params(ctx, p), "SELECT toInt64(min(received)), count() FROM (SELECT toUnixTimestamp64Micro(request_received) AS received FROM "+s.table("events")+
		" WHERE cluster = {cluster:String} AND minute = {minute:UInt32} AND outcome != '' GROUP BY received HAVING sum(toInt64(sign)) > 0)").Scan(&exact, &n); err != nil {
		return time.Time{}, fmt.Errorf("find the begin of cluster %q: %w", cluster, err)
	}
	if n == 0 {
		return time.Unix(first, 0).UTC(), nil
	}
	return fromMicro(exact), nil
}
