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

// MarkedClusters returns the names of the clusters of which requests that have, or had, marks came in on the day of a time or later; the
// zero time asks for all. Months before it are not read.
func (rd *Reader) MarkedClusters(ctx context.Context, since time.Time) ([]string, error) {
	p := clickhouse.Parameters{"day": fmt.Sprint(codec.Day(since))}
	out, err := statement.Collect(ctx, rd.at, "SELECT DISTINCT cluster FROM %s.detections WHERE toUInt16(ingest_day) >= {day:UInt16}", p,
		func(name *string) ([]any, func()) { return []any{name}, nil })
	if err != nil {
		return nil, fmt.Errorf("list clusters with marked requests: %w", err)
	}
	return out, nil
}

// MarkSums returns the sums of some clusters (nil: of all) that may have changed after a time by the store's clock, and the
// time to ask from next; the zero time asks for all. A rule's sum of a slot comes whole.
func (rd *Reader) MarkSums(ctx context.Context, clusters []string, since time.Time) (sums []verdict.MarkSum, next time.Time, err error) {
	next = since
	err = some(clusters, func(only string, p clickhouse.Parameters) error {
		changed := only
		if !since.IsZero() {
			p["since"] = fmt.Sprint(max(since.Unix(), 0))
			changed = and(only, "changed >= {since:UInt32}")
			only = and(only, "(cluster, rule, slot) IN (SELECT cluster, rule, slot FROM %[1]s.detections"+changed+")")
		}
		var newest int64
		if err := rd.at.Conn.QueryRow(statement.Params(ctx, p),
			"SELECT toInt64(toUnixTimestamp(max(changed))) FROM "+rd.at.Table("detections")+changed).Scan(&newest); err != nil {
			return fmt.Errorf("read newest change of detections: %w", err)
		}
		if at := time.Unix(newest, 0).Add(-overlap); newest > 0 && at.After(next) {
			next = at
		}
		list, err := rd.markSums(ctx, only, p)
		sums = append(sums, list...)
		return err
	})
	return sums, next, err
}

func (rd *Reader) markSums(ctx context.Context, where string, p clickhouse.Parameters) ([]verdict.MarkSum, error) {
	return statement.Collect(ctx, rd.at, `SELECT cluster, rule, toInt64(toUnixTimestamp(slot)), sum(count), sum(digest)
FROM %[1]s.detections`+where+`
GROUP BY cluster, rule, slot`, p, func(m *verdict.MarkSum) ([]any, func()) {
		var at int64
		return []any{&m.Cluster, &m.Rule, &at, &m.Count, &m.Digest}, func() { m.Slot = time.Unix(at, 0).UTC() }
	})
}

// and adds a condition to a WHERE clause, which may be empty.
func and(where, condition string) string {
	if where == "" {
		return " WHERE " + condition
	}
	return where + " AND " + condition
}

// marked is the condition of rows that have a mark of a rule, and where the mark is.
const (
	marked = "arrayExists(h -> h = {rule:String} OR startsWith(h, {rule_slash:String}), hits)"
	markAt = "arrayFirstIndex(h -> h = {rule:String} OR startsWith(h, {rule_slash:String}), hits)"
	// markKey is the mark's key: one that is that of the audit ID is stored as 0.
	markKey = "if(hit_keys[" + markAt + "] = 0, xxHash64(audit_id), hit_keys[" + markAt + "])"
)

func markWhere(f verdict.MarkFilter) (string, clickhouse.Parameters) {
	return "cluster = {cluster:String} AND " + markMinutes + " AND " + marked +
			" AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64}",
		clickhouse.Parameters{
			"cluster": statement.Text(f.Cluster), "rule": statement.Text(f.Rule), "rule_slash": statement.Text(f.Rule + "/"),
			"from": fmt.Sprint(f.From.UnixMicro()), "to": fmt.Sprint(f.To.UnixMicro()),
			"from_minute": fmt.Sprint(codec.Minute(f.From)), "to_minute": fmt.Sprint(codec.Minute(f.To)),
		}
}

// thrift lets inserts go first: one thread, and the disk for a query with a group for nearly every request of hours.
const thrift = "\nSETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456"

// MarkedCount returns how many standing rows the filter selects; its panes are not looked at.
func (rd *Reader) MarkedCount(ctx context.Context, f verdict.MarkFilter) (n int64, err error) {
	where, p := markWhere(f)
	if err := rd.at.Conn.QueryRow(statement.Params(ctx, p),
		"SELECT sum(toInt64(sign)) FROM "+rd.at.Table("events")+" WHERE "+where+thrift).Scan(&n); err != nil {
		return 0, fmt.Errorf("count requests marked by %s: %w", f.Rule, err)
	}
	return n, nil
}

// Earliest returns when the earliest judged request of a cluster was received; where its
// events have been dropped, the start of the first minute known to have had any.
func (rd *Reader) Earliest(ctx context.Context, cluster string) (time.Time, error) {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster)}
	var first, exact int64
	var n uint64
	if err := rd.at.Conn.QueryRow(statement.Params(ctx, p),
		"SELECT toInt64(toUnixTimestamp(min(minute))) FROM (SELECT minute FROM "+rd.at.Table("volume")+
			" WHERE cluster = {cluster:String} AND outcome != '' GROUP BY minute HAVING sum(count) > 0)").Scan(&first); err != nil {
		return time.Time{}, fmt.Errorf("find the first request of cluster %q: %w", cluster, err)
	}
	p["minute"] = fmt.Sprint(first)
	if err := rd.at.Conn.QueryRow(statement.Params(ctx, p), "SELECT toInt64(min(received)), count() "+
		"FROM (SELECT toUnixTimestamp64Micro(request_received) AS received FROM "+rd.at.Table("events")+
		" WHERE cluster = {cluster:String} AND minute = {minute:UInt32} AND outcome != '' GROUP BY received "+
		"HAVING sum(toInt64(sign)) > 0)").Scan(&exact, &n); err != nil {
		return time.Time{}, fmt.Errorf("find the first request of cluster %q: %w", cluster, err)
	}
	if n == 0 {
		return time.Unix(first, 0).UTC(), nil
	}
	return codec.FromMicro(exact), nil
}

// This file has what first-seen rules ask. Sums keep keys by day, not all of a day that has too many:
// of such a day the marked rows are read, so that it does not matter which of its keys are kept.

// firstOtherDays has the days, up to one, on which keys of a first-seen rule are not all kept.
const firstOtherDays = `SELECT toUnixTimestamp(slot)
FROM %[1]s.detections
WHERE cluster = {cluster:String} AND rule = {rule:String} AND key = 1 AND toUnixTimestamp(slot) <= {day:UInt32}
GROUP BY slot HAVING sum(count) > 0
ORDER BY slot`

// Keys that are kept: those a day has and no day before, and those of the days before it. All are of
// marks on standing rows, those of dropped events included.
const (
	firstKeptToday = `SELECT key
    FROM (SELECT key, slot, sum(count) AS n FROM %[1]s.detections WHERE cluster = {cluster:String} AND rule = {rule:String} AND key > 1 GROUP BY key, slot HAVING n > 0)
    GROUP BY key HAVING toUnixTimestamp(min(slot)) = {day:UInt32}`
	firstKeptBefore = `SELECT key FROM %[1]s.detections WHERE cluster = {cluster:String} AND rule = {rule:String} AND key > 1 AND toUnixTimestamp(slot) < {day:UInt32}
    GROUP BY key, slot HAVING sum(count) > 0`
	// firstMarkedBefore are those of the marked rows of days whose keys are not all kept.
	firstMarkedBefore = `SELECT k FROM (SELECT ` + markKey + ` AS k, sign FROM %[1]s.events
        WHERE cluster = {cluster:String} AND minute >= {others_from:UInt32} AND minute < {day:UInt32} AND toUnixTimestamp(toStartOfDay(minute)) IN {others:Array(UInt32)} AND ` + marked + `)
    GROUP BY k HAVING sum(toInt64(sign)) > 0`
)

// firstSeenQuery ranks the keys of marked rows: side is 0 for those reported one by one, 1 for others of the same users, 2 for those of
// everybody else.
const firstSeenQuery = `SELECT key, seen, side, whose, keys, requests, since, until
FROM (
    SELECT key, seen, side, whose, toInt64(count() OVER w) AS keys, toInt64(sum(n) OVER w) AS requests, min(seen) OVER w AS since, max(gone) OVER w AS until,
        row_number() OVER (PARTITION BY side, whose ORDER BY seen, key) AS turn
    FROM (
        SELECT key, n, seen, gone, toUInt8(multiIf(shown, 0, max(shown) OVER (PARTITION BY user), 1, 2)) AS side, if(side = 1, user, '') AS whose
        FROM (
            SELECT key, n, seen, gone, user, place <= {own:UInt32} AND countIf(place <= {own:UInt32}) OVER (ORDER BY seen, key ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) <= {all:UInt32} AS shown
            FROM (
                SELECT key, n, seen, gone, user, row_number() OVER (PARTITION BY user ORDER BY seen, key) AS place
                FROM (
                    SELECT key, argMin(requests, hour) AS n, min(first) AS seen, argMin(last, hour) AS gone, argMin(who, hour) AS user
                    FROM (
                        SELECT key, received - positiveModulo(received, 3600000000) AS hour, count() AS requests, min(received) AS first, max(received) AS last, argMin(name, (received, request_key)) AS who
                        FROM (
                            SELECT ` + markKey + ` AS key, toUnixTimestamp64Micro(request_received) AS received, request_key, toString(any(user_name)) AS name
                            FROM %[1]s.events WHERE %[2]s
                            GROUP BY key, received, request_key HAVING sum(toInt64(sign)) > 0
                        )
                        GROUP BY key, hour
                    )
                    GROUP BY key HAVING seen >= {since:Int64}
                )
            )
        )
    )
    WINDOW w AS (PARTITION BY side, whose)
)
WHERE side = 0 OR turn <= {examples:UInt32}
ORDER BY side, whose, seen, key` + thrift

// FirstSeen returns the keys of a first-seen rule that no day before the filter's has, seen at since or later: those to report one by one,
// and a summary of the others. The filter's day begins with From.
func (rd *Reader) FirstSeen(ctx context.Context, f verdict.MarkFilter, since time.Time,
	most verdict.FirstLimits) (out verdict.FirstSeen, err error) {
	where, p := markWhere(f)
	day := uint32(f.From.Unix())
	for name, v := range map[string]any{"day": day, "since": since.UnixMicro(), "own": most.User, "all": most.Cluster,
		"examples": most.Examples} {
		p[name] = fmt.Sprint(v)
	}
	others, err := statement.Collect(ctx, rd.at, firstOtherDays, p, func(at *uint32) ([]any, func()) { return []any{at}, nil })
	if err != nil {
		return out, fmt.Errorf("find days of %s with more keys than are kept: %w", f.Rule, err)
	}
	if n := len(others); n > 0 && others[n-1] == day {
		where += " AND key NOT IN (" + firstKeptBefore + ")"
		others = others[:n-1]
	} else {
		var kept uint64
		if err := rd.at.Conn.QueryRow(statement.Params(ctx, p),
			fmt.Sprintf("SELECT count() FROM ("+firstKeptToday+")", rd.at.Name)).Scan(&kept); err != nil {
			return out, fmt.Errorf("find what %s sees first: %w", f.Rule, err)
		}
		if kept == 0 {
			return out, nil
		}
		where += " AND key IN (" + firstKeptToday + ")"
	}
	if len(others) > 0 {
		p["others"], p["others_from"] = statement.Numbers(others), fmt.Sprint(others[0])
		where += " AND key NOT IN (" + firstMarkedBefore + ")"
	}
	return rd.firstSeen(ctx, fmt.Sprintf(firstSeenQuery, rd.at.Name, fmt.Sprintf(where, rd.at.Name)), p, f.Rule)
}

func (rd *Reader) firstSeen(ctx context.Context, sql string, p clickhouse.Parameters, rule string) (out verdict.FirstSeen, err error) {
	res, err := rd.at.Conn.Query(statement.Params(ctx, p), sql)
	if err != nil {
		return out, fmt.Errorf("find first requests of %s: %w", rule, err)
	}
	defer res.Close()
	for res.Next() {
		var key verdict.KeyTime
		var side uint8
		var r verdict.FirstRest
		var seen, first, last int64
		if err := res.Scan(&key.Key, &seen, &side, &r.User, &r.Keys, &r.Requests, &first, &last); err != nil {
			return out, fmt.Errorf("find first requests of %s: %w", rule, err)
		}
		key.First, r.First, r.Last, r.Everybody = codec.FromMicro(seen), codec.FromMicro(first), codec.FromMicro(last), side == 2
		out.Keys = append(out.Keys, key)
		if n := len(out.Rest); side > 0 && (n == 0 || out.Rest[n-1] != r) {
			out.Rest = append(out.Rest, r)
		}
	}
	if err := res.Err(); err != nil {
		return out, fmt.Errorf("find first requests of %s: %w", rule, err)
	}
	return out, nil
}

// FoldedDay is what a cluster's sums do not tell apart: requests with keys of a first-seen rule, or, without a rule, of subjects.
type FoldedDay struct {
	Cluster, Rule string
	Requests      int64
}

const foldedQuery = `SELECT cluster, toString(rule), sum(count) AS n FROM %[1]s.detections
WHERE key = 1 AND toUInt16(toDate(slot)) >= {day:UInt16} GROUP BY cluster, rule HAVING n > 0
UNION ALL
SELECT cluster, '', sum(count) AS n FROM %[1]s.access_usage
WHERE toUInt16(day) >= {day:UInt16} AND implied = '' AND (cluster, access) IN (SELECT cluster, access FROM %[1]s.accesses WHERE group_set = {nobody:UInt64}) GROUP BY cluster HAVING n > 0`

// Folded returns what sums do not tell apart of a day and those after it, by cluster and rule.
func (rd *Reader) Folded(ctx context.Context, since time.Time) ([]FoldedDay, error) {
	p := clickhouse.Parameters{"day": fmt.Sprint(codec.Day(since)), "nobody": fmt.Sprint(codec.OtherSubject)}
	out, err := statement.Collect(ctx, rd.at, "SELECT * FROM ("+foldedQuery+") ORDER BY 1, 2", p,
		func(d *FoldedDay) ([]any, func()) { return []any{&d.Cluster, &d.Rule, &d.Requests}, nil })
	if err != nil {
		return nil, fmt.Errorf("find what is not told apart: %w", err)
	}
	return out, nil
}
