package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// This file has what the detections ask of events: sums of marks, and the marked requests.
// None of it reads FINAL: a mark's sum is that of the signs.

// overlap is how far behind the newest change MarkSums looks: an insert shows in the sums
// after the clock time it carries, and replicas' clocks differ.
const overlap = 5 * time.Minute

// MarkSums returns the sums that may have changed after a time by the store's clock, and the
// time to ask from next; the zero time asks for all. A rule's sum of a slot comes whole.
func (rd *Reader) MarkSums(ctx context.Context, since time.Time) (sums []verdict.MarkSum, next time.Time, err error) {
	var newest int64
	p := clickhouse.Parameters{"since": fmt.Sprint(max(since.Unix(), 0))}
	if err := rd.at.Conn.QueryRow(ctx, "SELECT toInt64(toUnixTimestamp(max(changed))) FROM "+rd.at.Table("detections")).Scan(&newest); err != nil {
		return nil, next, fmt.Errorf("read newest change of detections: %w", err)
	}
	only := ""
	if !since.IsZero() {
		only = "\nWHERE (cluster, rule, slot) IN (SELECT cluster, rule, slot FROM %[1]s.detections WHERE changed >= {since:UInt32})"
	}
	sums, err = statement.Collect(ctx, rd.at, `SELECT cluster, rule, toInt64(toUnixTimestamp(slot)), sum(count), sum(digest)
FROM %[1]s.detections`+only+`
GROUP BY cluster, rule, slot`, p, func(m *verdict.MarkSum) ([]any, func()) {
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

func markWhere(f verdict.MarkFilter) (string, clickhouse.Parameters) {
	return markSpan + " AND " + marked +
			" AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64}",
		clickhouse.Parameters{
			"cluster": statement.Text(f.Cluster), "rule": statement.Text(f.Rule), "rule_slash": statement.Text(f.Rule + "/"),
			"from": fmt.Sprint(f.From.UnixMicro()), "to": fmt.Sprint(f.To.UnixMicro()),
			"from_minute": fmt.Sprint(codec.Minute(f.From)), "to_minute": fmt.Sprint(codec.Minute(f.To)),
		}
}

// thrift keeps detections behind what comes in: one thread, and the disk for a query with a
// group for nearly every request of hours.
const thrift = "\nSETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456"

// MarkedCount returns how many standing rows the filter selects; its panes are not looked at.
func (rd *Reader) MarkedCount(ctx context.Context, f verdict.MarkFilter) (n int64, err error) {
	where, p := markWhere(f)
	if err := rd.at.Conn.QueryRow(statement.Params(ctx, p), "SELECT sum(toInt64(sign)) FROM "+rd.at.Table("events")+" WHERE "+where+thrift).Scan(&n); err != nil {
		return 0, fmt.Errorf("count requests marked by %s: %w", f.Rule, err)
	}
	return n, nil
}

// Earliest returns when the earliest judged request of a cluster was received; where its
// events have been dropped, the begin of the first minute known to have had any.
func (rd *Reader) Earliest(ctx context.Context, cluster string) (time.Time, error) {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster)}
	var first, exact int64
	var n uint64
	if err := rd.at.Conn.QueryRow(statement.Params(ctx, p), "SELECT toInt64(toUnixTimestamp(min(minute))) FROM (SELECT minute FROM "+rd.at.Table("volume")+
		" WHERE cluster = {cluster:String} AND outcome != '' GROUP BY minute HAVING sum(count) > 0)").Scan(&first); err != nil {
		return time.Time{}, fmt.Errorf("find the begin of cluster %q: %w", cluster, err)
	}
	p["minute"] = fmt.Sprint(first)
	if err := rd.at.Conn.QueryRow(statement.Params(ctx, p), "SELECT toInt64(min(received)), count() FROM (SELECT toUnixTimestamp64Micro(request_received) AS received FROM "+rd.at.Table("events")+
		" WHERE cluster = {cluster:String} AND minute = {minute:UInt32} AND outcome != '' GROUP BY received HAVING sum(toInt64(sign)) > 0)").Scan(&exact, &n); err != nil {
		return time.Time{}, fmt.Errorf("find the begin of cluster %q: %w", cluster, err)
	}
	if n == 0 {
		return time.Unix(first, 0).UTC(), nil
	}
	return codec.FromMicro(exact), nil
}
