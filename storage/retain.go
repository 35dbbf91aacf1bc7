package storage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
)

// Retention says for how many days tables keep what was ingested; 0 keeps it forever. Age counts from ingestion, so importing an old log
// does not delete it. Policy history is kept: every verdict about the past rests on it, and it is small; only the oldest contents of
// objects that are written constantly are forgotten.
type Retention struct {
	EventDays  int
	RollupDays int
	// DiskCap bounds the store's bytes on disk; 0: none. Over it the oldest ingest day of
	// events is dropped, then the next, never the newest; rollups and policy are not shed.
	DiskCap int64
	// KeepImports leaves imported events alone, whatever their ingest day, until the disk cap needs their room.
	KeepImports bool
	// Forget returns an observation of policy without its content. nil: no object is written too often.
	Forget func(observation []byte) ([]byte, error)
}

// droppedKey begins the entries of meta that name ingest days dropped from events.
const droppedKey = "events dropped "

// droppedDays returns the ingest days (since 1970) whose events, or the live ones of them,
// have been dropped: their rollups are the only record left.
func (s *Store) droppedDays(ctx context.Context) ([]uint16, error) {
	days, err := statement.Collect(ctx, s.at(), "SELECT DISTINCT toUInt16OrZero(value) FROM %s.meta WHERE startsWith(key, '"+droppedKey+
		"')", nil,
		func(d *uint16) ([]any, func()) { return []any{d}, nil })
	if err != nil {
		return nil, fmt.Errorf("read dropped days: %w", err)
	}
	return days, nil
}

// part is the live or the imported events of one ingest day.
type part struct {
	id      string // partition as the store prints it: ('2026-11-20',0)
	day     uint16
	imports bool
	bytes   int64
}

// Retain drops what is past its retention, and, over the disk cap, the oldest ingest days
// of events. It is idempotent, and cheap if there is nothing to do; call it periodically.
func (s *Store) Retain(ctx context.Context, r Retention) error {
	today := int(codec.Day(s.cfg.Now()))
	if r.EventDays > 0 {
		parts, err := s.eventParts(ctx)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if int(p.day)+r.EventDays >= today || r.KeepImports && p.imports {
				continue
			}
			if err := s.dropPart(ctx, p, "retention"); err != nil {
				return err
			}
		}
	}
	if r.DiskCap > 0 {
		if err := s.shed(ctx, r.DiskCap); err != nil {
			return err
		}
	}
	if r.RollupDays > 0 {
		for _, table := range []string{"access_usage", "grant_usage", "detections", "volume", "activity", "dead_letters", "query_log",
			"audit_samples"} {
			if err := s.dropMonths(ctx, table, s.cfg.Now().AddDate(0, 0, -r.RollupDays)); err != nil {
				return err
			}
		}
	}
	if r.Forget != nil { // last: an observation that cannot be read stops nothing else
		return s.trimPolicy(ctx, r.Forget)
	}
	return nil
}

// shed drops the oldest ingest days of events until the store fits the cap or one day is left.
func (s *Store) shed(ctx context.Context, limit int64) error {
	used, err := s.DiskBytes(ctx)
	if err != nil || used <= limit {
		return err
	}
	parts, err := s.eventParts(ctx)
	if err != nil {
		return err
	}
	for i := 0; used > limit && i < len(parts) && parts[i].day < parts[len(parts)-1].day; i++ {
		if err := s.dropPart(ctx, parts[i], "disk"); err != nil {
			return err
		}
		used -= parts[i].bytes
	}
	if used > limit {
		s.cfg.Log.Warn("store is over its disk cap with one day of events left", zap.Int64("bytes", used), zap.Int64("cap", limit))
	}
	return nil
}

// DiskBytes returns the bytes the store's tables use on disk.
func (s *Store) DiskBytes(ctx context.Context) (int64, error) {
	var n int64
	err := s.conn.QueryRow(statement.Params(ctx, clickhouse.Parameters{"db": statement.Text(s.localDatabase())}),
		"SELECT toInt64(sum(bytes_on_disk)) FROM "+s.parts()+" WHERE active AND database = {db:String}").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("read disk use: %w", err)
	}
	return n, nil
}

// eventParts lists the partitions of events, oldest ingest day first, live before imported.
func (s *Store) eventParts(ctx context.Context) ([]part, error) {
	return statement.Collect(ctx, s.at(), `SELECT partition, toUInt16(toDate(substring(partition, 3, 10))), toUInt8(endsWith(partition, '1)')), toInt64(sum(bytes_on_disk))
FROM `+s.parts()+` WHERE active AND database = {db:String} AND table = 'events' AND '%s' != ''
GROUP BY partition ORDER BY partition`,
		clickhouse.Parameters{"db": statement.Text(s.localDatabase())}, func(p *part) ([]any, func()) {
			var imports uint8
			return []any{&p.id, &p.day, &imports, &p.bytes}, func() { p.imports = imports != 0 }
		})
}

// dropPart drops one partition of events. It first notes that the day is dropped: from then on the day's rollups are the only record, and
// recovery leaves them alone.
func (s *Store) dropPart(ctx context.Context, p part, cause string) error {
	err := s.RollUp(ctx) // rows of the day are not counted afterwards
	if err == nil {
		err = s.remember(ctx, fmt.Sprint(droppedKey, p.day), fmt.Sprint(p.day))
	}
	for _, table := range append(slices.Clone(withEvents), "events") { // whoever is interrupted here finds the partition of events again
		if err == nil {
			err = s.conn.Exec(ctx, fmt.Sprintf("ALTER TABLE %s%s DROP PARTITION %s", s.local(table), s.form().OnCluster(), p.id))
		}
	}
	if err != nil {
		return fmt.Errorf("drop events partition %s: %w", p.id, err)
	}
	s.metrics.dropped.WithLabelValues("events", cause).Inc()
	s.cfg.Log.Info("events dropped", zap.String("partition", p.id), zap.String("cause", cause))
	return nil
}

// dropMonths drops the partitions (months of ingestion) of a table that end before a time.
func (s *Store) dropMonths(ctx context.Context, table string, before time.Time) error {
	type month struct{ id string }
	months, err := statement.Collect(ctx, s.at(), `SELECT DISTINCT partition FROM `+s.parts()+
		` WHERE active AND database = {db:String} AND table = {table:String} AND toUInt32OrZero(partition) < {month:UInt32} AND '%s' != ''`,
		clickhouse.Parameters{"db": statement.Text(s.localDatabase()), "table": table, "month": before.UTC().Format("200601")},
		func(m *month) ([]any, func()) { return []any{&m.id}, nil })
	if err != nil {
		return err
	}
	for _, m := range months {
		if err := s.conn.Exec(ctx,
			fmt.Sprintf("ALTER TABLE %s%s DROP PARTITION %s", s.local(table), s.form().OnCluster(), m.id)); err != nil {
			return fmt.Errorf("drop month %s of %s: %w", m.id, table, err)
		}
		s.metrics.dropped.WithLabelValues(table, "retention").Inc()
	}
	return nil
}
