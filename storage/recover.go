package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
)

// rollup is a table whose counts must equal sum(sign) over events, or the part of one that a view feeds.
type rollup struct {
	table string
	only  string   // which rows of the table; empty: all
	keys  []string // grouping columns, of the same name in the rollup and in what the view reads
	from  string   // what the view reads, up to a condition; %[1]s is the database
	day   string   // the day of the request, as an expression over both sides
	times bool     // has first_seen and last_seen
	// digest is a second sum, over this expression of the events; such a table also notes when it changed.
	digest string
}

// What the views over the checks behind the filter read; members by place as encodeImplied writes them.
const (
	impliedItems = `%[1]s.events ARRAY JOIN implied AS item, implied_access AS item_access WHERE recorded != 'forbid' AND item_access != 0`
	impliedUsage = `(SELECT cluster, day, item_access AS access, JSONExtractString(item, 3) AS recorded, JSONExtractString(item, 2) AS replayed, outcome, class, kpart, ingest_day,
    JSONExtractString(item, 1) AS implied, toUInt8(JSONExtractInt(item, 4)) AS covered, sign, request_received
FROM (SELECT cluster, day, outcome, class, kpart, ingest_day, sign, request_received, item, item_access FROM ` + impliedItems + `)) WHERE 1`
	impliedGrants = `(SELECT cluster, day, granted, item_access AS access, kpart, ingest_day, JSONExtractString(item, 1) AS implied, sign, request_received
FROM (SELECT cluster, day, kpart, ingest_day, sign, request_received, item, item_access, arrayJoin(item_grants) AS granted
    FROM %[1]s.events ARRAY JOIN implied AS item, implied_access AS item_access, implied_grants AS item_grants WHERE recorded != 'forbid' AND item_access != 0)) WHERE 1`
	impliedAccesses = `(SELECT item_access AS access, if(group_set = 18446744073709551614, '(other)', if(requestor = '', effective, user_name)) AS subject, if(requestor = '', effective_set, toUInt64OrZero(requestor)) AS group_set,
    if(path = '(other)', path, JSONExtractString(item, 5)) AS verb, if(path = '(other)', '', JSONExtractString(item, 7)) AS api_group, if(path = '(other)', '', JSONExtractString(item, 9)) AS resource,
    if(path = '(other)', '', JSONExtractString(item, 10)) AS subresource, if(path = '(other)', '', JSONExtractString(item, 11)) AS namespace, JSONExtractString(item, 16) AS name, path, kpart, day, ingest_day
FROM (SELECT subject AS effective, group_set AS effective_set, user_name, kpart, day, ingest_day, item, item_access, JSONExtractString(item, 20) AS requestor, JSONExtractString(item, 17) AS path FROM ` + impliedItems + `))`
	impliedSets = `(SELECT toUInt64OrZero(requestor) AS group_set, user_groups, kpart, day, ingest_day
FROM (SELECT user_groups, kpart, day, ingest_day, JSONExtractString(item, 20) AS requestor FROM ` + impliedItems + `) WHERE requestor != '')`
)

var rollups = []rollup{ //nolint:gochecknoglobals // constant table
	{"access_usage", "implied = ''", []string{"cluster", "day", "access", "recorded", "replayed", "outcome", "class", "kpart",
		"ingest_day"}, "%[1]s.events WHERE outcome != ''", "day", true, ""},
	{"access_usage", "implied != ''", []string{"cluster", "day", "access", "recorded", "replayed", "outcome", "class", "kpart",
		"ingest_day", "implied", "covered"}, impliedUsage, "day", true, ""},
	{"grant_usage", "implied = ''", []string{"cluster", "day", "granted", "access", "kpart", "ingest_day"},
		"%[1]s.events ARRAY JOIN grants AS granted WHERE 1", "day", true, ""},
	{"grant_usage", "implied != ''", []string{"cluster", "day", "granted", "access", "kpart", "ingest_day", "implied"}, impliedGrants,
		"day", true, ""},
	{"volume", "", []string{"cluster", "minute", "recorded", "replayed", "outcome", "class", "kpart", "ingest_day"}, "%[1]s.events WHERE 1",
		"toDate(minute)", false, ""},
	{"activity", "", []string{"cluster", "slot", "subject", "user_agent", "recorded", "outcome", "kpart", "ingest_day"},
		"(SELECT cluster, toStartOfTenMinutes(minute) AS slot, if(group_set = 18446744073709551614, '(other)', events.subject) AS " +
			"subject, if(bitAnd(shape, 16) = 16 OR events.subject IN ('', 'system:anonymous') AND recorded != 'allow', '(other)', " +
			"events.user_agent) AS user_agent, recorded, outcome, kpart, ingest_day, sign FROM %[1]s.events WHERE outcome != '') WHERE 1",
		"toDate(slot)", false, ""},
	{"detections", "", []string{"cluster", "rule", "slot", "key", "kpart", "ingest_day"}, `%[1]s.events ARRAY JOIN hits AS hit, hit_keys AS hit_key, arrayMap(h -> substringIndex(h, '/', 1), hits) AS rule,
    arrayMap(h -> if(endsWith(h, '/first'), toStartOfDay(minute), toStartOfTenMinutes(minute)), hits) AS slot,
    arrayMap((h, k) -> if(endsWith(h, '/first'), if(bitAnd(shape, 32) = 32, 1, k), 0), hits, hit_keys) AS key WHERE 1`, "toDate(slot)", false,
		"reinterpretAsInt64(cityHash64(request_key, version, hit, hit_key))"},
}

// interned are the tables without counts: what they lack is added.
var interned = []struct{ table, query string }{ //nolint:gochecknoglobals // constant table
	{"accesses", `SELECT access, if(group_set = 18446744073709551614, '(other)', subject), group_set, if(access_path = '(other)', access_path, attr_verb), if(access_path = '(other)', '', attr_api_group), if(access_path = '(other)', '', attr_resource),
    if(access_path = '(other)', '', attr_subresource), if(access_path = '(other)', '', attr_namespace), access_name, access_path, max(ingest_day)
FROM %[1]s.events WHERE outcome != '' AND kpart = {kpart:Int32}%[2]s AND access NOT IN (SELECT access FROM %[1]s.accesses)
GROUP BY ALL`},
	{"accesses", `SELECT access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path, max(ingest_day)
FROM ` + impliedAccesses + ` WHERE kpart = {kpart:Int32}%[2]s AND access NOT IN (SELECT access FROM %[1]s.accesses)
GROUP BY ALL`},
	{"group_sets", `SELECT group_set, if(group_set >= 18446744073709551614, ['(other)'], arraySort(arrayDistinct(arrayMap(g -> toString(g), any(user_groups))))), max(ingest_day)
FROM ` + impliedSets + ` WHERE kpart = {kpart:Int32}%[2]s AND group_set NOT IN (SELECT group_set FROM %[1]s.group_sets)
GROUP BY group_set`},
	{"group_sets", `SELECT group_set, if(group_set >= 18446744073709551614, ['(other)'], arraySort(arrayDistinct(arrayMap(g -> toString(g), any(if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups)))))), max(ingest_day)
FROM %[1]s.events WHERE outcome != '' AND kpart = {kpart:Int32}%[2]s AND group_set NOT IN (SELECT group_set FROM %[1]s.group_sets)
GROUP BY group_set`},
}

// Recover makes every rollup equal to the standing rows of a Kafka partition whose requests were received on the given days (UTC; none: all
// days), by adding the differences. It goes by state alone, so it may be repeated, and converges from whatever an interrupted Insert left
// behind. No Insert of this process into the partition runs meanwhile; one that a server still runs for another connection is ended first.
//
// first_seen and last_seen are bounds: a difference can widen, never narrow them. Days whose
// events retention has dropped are left as they are.
func (s *Store) Recover(ctx context.Context, partition int32, _ uint32, days []time.Time) error {
	part := s.partition(partition)
	part.Lock()
	defer part.Unlock()
	part.checked = 0
	if err := s.endInserts(ctx, partition); err != nil {
		return err
	}
	p, err := s.recoverParams(ctx, partition, days)
	if err != nil {
		return err
	}
	for _, r := range rollups {
		n, err := s.mend(ctx, r, p)
		if err != nil {
			return fmt.Errorf("recover %s of partition %d: %w", r.table, partition, err)
		}
		if n > 0 {
			s.metrics.repaired.WithLabelValues(r.table).Add(float64(n))
			s.cfg.Log.Warn("rollup repaired after an interrupted insert", zap.String("table", r.table), zap.Int32("partition", partition),
				zap.Uint64("rows", n))
		}
	}
	only := ""
	if len(days) > 0 {
		only = " AND toUInt16(day) IN {days:Array(UInt16)}"
	}
	for _, t := range interned {
		if err := s.exec(ctx, p, fmt.Sprintf("INSERT INTO %[1]s.%[3]s "+t.query, s.db, only, t.table)); err != nil {
			return fmt.Errorf("recover %s of partition %d: %w", t.table, partition, err)
		}
	}
	return nil
}

// recoverParams are the parameters of queries over a Kafka partition and days of requests (none: all).
func (s *Store) recoverParams(ctx context.Context, partition int32, days []time.Time) (clickhouse.Parameters, error) {
	dropped, err := s.droppedDays(ctx)
	if err != nil {
		return nil, err
	}
	p := clickhouse.Parameters{"kpart": fmt.Sprint(partition), "dropped": statement.Numbers(dropped)}
	if len(days) > 0 {
		list := make([]uint16, len(days))
		for i, d := range days {
			list[i] = codec.Day(d)
		}
		p["days"] = statement.Numbers(list)
	}
	return p, nil
}

// mend adds the differences between a rollup and its events, and returns how many keys differed.
func (s *Store) mend(ctx context.Context, r rollup, p clickhouse.Parameters) (uint64, error) {
	n, err := s.difference(ctx, r, p)
	if err != nil || n == 0 {
		return n, err
	}
	_, days := p["days"]
	return n, s.exec(ctx, p, r.repair(s.db, days))
}

// compare returns the query over the differences of a rollup and events: one row per key whose counts are not equal.
func (r rollup) compare(db string, days bool) string {
	only := ""
	if days {
		only = " AND toUInt16(" + r.day + ") IN {days:Array(UInt16)}"
	}
	keys := strings.Join(r.keys, ", ")
	times, none, bounds := "", "", ""
	if r.times {
		times = ", request_received AS t"
		none = ", CAST(NULL AS Nullable(DateTime64(6, 'UTC'))) AS t"
		bounds = ", min(t) AS first_seen, max(t) AS last_seen"
	}
	// A key that only the rollup has comes without a time: any time of the day will do, as its count becomes 0 and no reader shows it.
	if r.times {
		bounds = ", ifNull(min(t), toDateTime64(day, 6, 'UTC')) AS first_seen, ifNull(max(t), toDateTime64(day, 6, 'UTC')) AS last_seen"
	}
	having := "count != 0"
	if r.digest != "" {
		times, none = ", toInt64(sign) * "+r.digest+" AS d", ", -digest AS d"
		bounds, having = ", sum(d) AS digest, now() AS changed", "count != 0 OR digest != 0"
	}
	part := ""
	if r.only != "" {
		part = " AND " + r.only
	}
	return fmt.Sprintf(`SELECT %[1]s, sum(c) AS count%[6]s
FROM
(
    SELECT %[1]s, toInt64(sign) AS c%[4]s FROM %[3]s AND kpart = {kpart:Int32} AND toUInt16(ingest_day) NOT IN {dropped:Array(UInt16)}%[7]s
    UNION ALL
    SELECT %[1]s, -count AS c%[5]s FROM %[2]s.%[8]s WHERE kpart = {kpart:Int32} AND toUInt16(ingest_day) NOT IN {dropped:Array(UInt16)}%[7]s%[10]s
)
GROUP BY %[1]s
HAVING %[9]s`, keys, db, fmt.Sprintf(r.from, db), times, none, bounds, only, r.table, having, part)
}

func (r rollup) repair(db string, days bool) string {
	cols := strings.Join(r.keys, ", ") + ", count"
	if r.times {
		cols += ", first_seen, last_seen"
	}
	if r.digest != "" {
		cols += ", digest, changed"
	}
	return fmt.Sprintf("INSERT INTO %s.%s (%s) %s", db, r.table, cols, r.compare(db, days))
}

// difference counts the keys in which a rollup and events differ.
func (s *Store) difference(ctx context.Context, r rollup, p clickhouse.Parameters) (uint64, error) {
	var n uint64
	_, days := p["days"]
	err := s.conn.QueryRow(statement.Params(ctx, p), "SELECT count() FROM ("+r.compare(s.db, days)+")").Scan(&n)
	return n, err
}

// exec runs an INSERT ... SELECT that must never be taken for a duplicate of an earlier one: the same difference may be needed twice.
func (s *Store) exec(ctx context.Context, p clickhouse.Parameters, sql string) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(p), clickhouse.WithSettings(clickhouse.Settings{"insert_deduplicate": 0}))
	return s.conn.Exec(ctx, sql)
}

// insertComment tags the inserts of a partition at the server, to be found by endInserts.
func (s *Store) insertComment(partition int32) string {
	return fmt.Sprintf("retrial insert %s %d", s.cfg.Database, partition)
}

// endInserts ends inserts into the partition that a server still runs for a lost connection. The embedded engine has none: there a call
// ends with its insert.
func (s *Store) endInserts(ctx context.Context, partition int32) error {
	if s.cfg.Transport != nil {
		return nil
	}
	sql := "KILL QUERY" + s.form().OnCluster() + " WHERE Settings['log_comment'] = {c:String} SYNC"
	if err := s.conn.Exec(statement.Params(ctx, clickhouse.Parameters{"c": statement.Text(s.insertComment(partition))}), sql); err != nil {
		return fmt.Errorf("end earlier inserts of partition %d: %w", partition, err)
	}
	return nil
}
