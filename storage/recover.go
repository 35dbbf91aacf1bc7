package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	if s.later != nil { // rollups are of all partitions together: so is the comparison, for all that wait for one
		all := func([][]time.Time) bool { return true }
		return s.mends.do(ctx, days, all, nil, s.recoverTogether)
	}
	if err := s.endInserts(ctx, partition); err != nil {
		return err
	}
	p, err := s.recoverParams(ctx, days)
	if err != nil {
		return err
	}
	p["kpart"] = fmt.Sprint(partition)
	return s.mendAll(ctx, p)
}

// recoverTogether is Recover for several partitions of a store whose rollups are made later. Nothing is inserted meanwhile.
func (s *Store) recoverTogether(ctx context.Context, wanted [][]time.Time) error {
	days := slices.Concat(wanted...)
	if slices.ContainsFunc(wanted, func(d []time.Time) bool { return len(d) == 0 }) {
		days = nil
	}
	l := s.later
	for _, place := range []chan struct{}{l.counting, l.order} {
		select {
		case place <- struct{}{}:
			defer func() { <-place }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ctx = context.WithValue(ctx, rollingUp{}, true)
	if l.doubt || l.pending() { // what is compared below is all that was inserted
		if err := s.count(context.WithoutCancel(ctx), true); err != nil {
			return err
		}
	}
	p, err := s.recoverParams(ctx, days)
	if err != nil {
		return err
	}
	return s.mendAll(ctx, p)
}

// mendAll makes all rollups equal to the events that the parameters select, while nothing is inserted and nothing is left to count.
func (s *Store) mendAll(ctx context.Context, p clickhouse.Parameters) error {
	where := zap.String("partition", cmp.Or(p["kpart"], "all"))
	for i := range rollups {
		r := &rollups[i]
		n, err := s.mend(ctx, r, p)
		if err != nil {
			return fmt.Errorf("recover %s of partition %s: %w", r.table, where.String, err)
		}
		if n > 0 {
			s.metrics.repaired.WithLabelValues(r.table).Add(float64(n))
			s.cfg.Log.Warn("rollup repaired after an interrupted insert", zap.String("table", r.table), where, zap.Uint64("rows", n))
		}
	}
	for i := range interned {
		t := &interned[i]
		if err := s.exec(ctx, p, t.add(s.db, s.table("events"), only(p, "day")+t.lacking(s.db))); err != nil {
			return fmt.Errorf("recover %s of partition %s: %w", t.table, where.String, err)
		}
	}
	return nil
}

// only returns the conditions that the parameters of a recovery put on rows with a day, an expression.
func only(p clickhouse.Parameters, day string) (conditions string) {
	if _, one := p["kpart"]; one {
		conditions += " AND kpart = {kpart:Int32}"
	}
	if _, some := p["days"]; some {
		conditions += " AND toUInt16(" + day + ") IN {days:Array(UInt16)}"
	}
	return conditions
}

// recoverParams are the parameters of queries over days of requests (none: all), of every partition unless kpart is added.
func (s *Store) recoverParams(ctx context.Context, days []time.Time) (clickhouse.Parameters, error) {
	dropped, err := s.droppedDays(ctx)
	if err != nil {
		return nil, err
	}
	p := clickhouse.Parameters{}
	if len(dropped) > 0 {
		p["dropped"] = statement.Numbers(dropped)
	}
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
	return n, s.exec(ctx, p, r.repair(s.db, p))
}

// compare returns the query over the differences of a rollup and events: one row per key whose counts are not equal.
func (r *rollup) compare(db string, p clickhouse.Parameters) string {
	_, one := p["kpart"]
	keys := strings.Join(r.keys, ", ")
	read, _ := r.read(!one)
	where := only(p, r.day)
	if _, some := p["dropped"]; some && !r.goes() {
		where += " AND toUInt16(ingest_day) NOT IN {dropped:Array(UInt16)}"
	}
	times, none, bounds := "", "", ""
	if r.times {
		times = ", request_received AS t"
		none = ", CAST(NULL AS Nullable(DateTime64(6, 'UTC'))) AS t"
		// A key that only the rollup has comes without a time: any time of the day will do, as its count becomes 0 and no reader shows it.
		bounds = fmt.Sprintf(", ifNull(min(t), toDateTime64(%[1]s, 6, 'UTC')) AS first_seen, "+
			"ifNull(max(t), toDateTime64(%[1]s, 6, 'UTC')) AS last_seen", r.day)
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
    SELECT %[11]s, toInt64(sign) AS c%[4]s FROM %[3]s%[7]s
    UNION ALL
    SELECT %[11]s, -count AS c%[5]s FROM %[2]s.%[8]s WHERE 1%[7]s%[10]s
)
GROUP BY %[1]s
HAVING %[9]s`, keys, db, fmt.Sprintf(r.from, db+".events"), times, none, bounds, where, r.table, having, part, read)
}

func (r *rollup) repair(db string, p clickhouse.Parameters) string {
	return fmt.Sprintf("INSERT INTO %s.%s (%s) %s", db, r.table, r.columns(), r.compare(db, p))
}

// difference counts the keys in which a rollup and events differ.
func (s *Store) difference(ctx context.Context, r *rollup, p clickhouse.Parameters) (uint64, error) {
	var n uint64
	err := s.conn.QueryRow(statement.Params(ctx, p), "SELECT count() FROM ("+r.compare(s.db, p)+")").Scan(&n)
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
