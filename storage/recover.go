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
	if err := s.RollUp(ctx); err != nil { // what is compared below is all that was inserted
		return err
	}
	return s.mendAll(ctx, partition, days)
}

// mendAll is Recover while nothing is inserted into the partition and nothing is left to count.
func (s *Store) mendAll(ctx context.Context, partition int32, days []time.Time) error {
	p, err := s.recoverParams(ctx, partition, days)
	if err != nil {
		return err
	}
	for i := range rollups {
		r := &rollups[i]
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
	only := " AND kpart = {kpart:Int32}"
	if len(days) > 0 {
		only += " AND toUInt16(day) IN {days:Array(UInt16)}"
	}
	for i := range interned {
		t := &interned[i]
		lacking := fmt.Sprintf("%s AND %s NOT IN (SELECT %[2]s FROM %[3]s)", only, t.key, s.table(t.table))
		if err := s.exec(ctx, p, t.add(s.db, s.table("events"), lacking)); err != nil {
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
func (s *Store) mend(ctx context.Context, r *rollup, p clickhouse.Parameters) (uint64, error) {
	n, err := s.difference(ctx, r, p)
	if err != nil || n == 0 {
		return n, err
	}
	_, days := p["days"]
	return n, s.exec(ctx, p, r.repair(s.db, days))
}

// compare returns the query over the differences of a rollup and events: one row per key whose counts are not equal.
func (r *rollup) compare(db string, days bool) string {
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
HAVING %[9]s`, keys, db, fmt.Sprintf(r.from, db+".events"), times, none, bounds, only, r.table, having, part)
}

func (r *rollup) repair(db string, days bool) string {
	return fmt.Sprintf("INSERT INTO %s.%s (%s) %s", db, r.table, r.columns(), r.compare(db, days))
}

// difference counts the keys in which a rollup and events differ.
func (s *Store) difference(ctx context.Context, r *rollup, p clickhouse.Parameters) (uint64, error) {
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
