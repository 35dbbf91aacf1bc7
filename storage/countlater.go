package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// later makes the rollups of a store that nobody else writes to: not by each insert, but from the rows of many, at a pace of their own
// and before somebody asks (docs/adr/0087).
//
//	insert 1  2  3  4  5          each has a number, and its rows carry it
//	       ───────▶│     │
//	       counted     done       rollups have the rows up to counted; those up to done are in events
//
// What takes rows back is counted by the insert itself, after all rows before it have been: a merge may remove a row together with the one
// that takes it back, and nobody could count either afterwards.
type later struct {
	order    chan struct{} // has an element while somebody changes events, so that numbers and rows come in one order
	counting chan struct{} // has an element while somebody counts
	doubt    bool          // an interrupted count may have left rows in some rollups; by counting

	mu            sync.Mutex
	next          uint64 // number of the last insert that began
	done, counted uint64
	rows          int               // that are not counted
	day           uint16            // the oldest ingest day of these
	of            map[string]uint64 // clusters that rollups may lack rows of, with the number of the last insert that had any
}

const (
	countEvery = time.Minute // rests between two counts of which nobody asks anything
	mostLater  = 1 << 19     // rows that are counted together
	noDay      = ^uint16(0)

	countedKey  = "rollups counted"  // entry of meta: the number up to which rollups have the rows
	countingKey = "rollups counting" // the number up to which they are being given them
)

// begin gives an insert its number; by order.
func (l *later) begin() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	return l.next
}

// end notes that an insert is over, whatever came of it: its rows are there or will never be. It returns how many rows are not counted.
func (l *later) end(number uint64, members []insertMember) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = number
	l.rows += rowsOf(members)
	for i := range members {
		for j := range members[i].rows {
			row := &members[i].rows[j]
			l.day = min(l.day, codec.Day(row.Received))
			if l.of[row.Cluster] != number {
				l.of[row.Cluster] = number
			}
		}
	}
	return l.rows
}

// take returns what is to be counted: the rows of inserts after one number, up to another, with the oldest of their ingest days.
func (l *later) take() (after, to uint64, day uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	after, to, day = l.counted, l.done, l.day
	l.rows, l.day = 0, noDay
	return after, to, day
}

// finish notes up to which insert rows are counted.
func (l *later) finish(to uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counted = to
	maps.DeleteFunc(l.of, func(_ string, number uint64) bool { return number <= to })
}

// pending reports whether rows are not counted.
func (l *later) pending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done != l.counted
}

// has reports whether rollups have all rows of a cluster that this process has inserted.
func (l *later) has(cluster string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, lack := l.of[cluster]
	return !lack
}

// RollUp counts the rows that rollups lack. Readers need not call it: statements that name a rollup do. Where other processes write, each
// insert has counted its own.
func (s *Store) RollUp(ctx context.Context) error {
	l := s.later
	if l == nil || !l.pending() {
		return nil
	}
	select {
	case l.counting <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.counting }()
	if !l.pending() { // somebody has counted meanwhile
		return nil
	}
	began := time.Now()
	// A reader who leaves must not leave half of it behind.
	if err := s.count(context.WithValue(context.WithoutCancel(ctx), rollingUp{}, true), false); err != nil {
		return fmt.Errorf("count rows in rollups: %w", err)
	}
	s.metrics.rolled.Observe(time.Since(began).Seconds())
	return nil
}

// count is RollUp by whoever is counting; still tells whether he sees to it that nothing is inserted meanwhile.
func (s *Store) count(ctx context.Context, still bool) error {
	l := s.later
	if l.doubt {
		if !still {
			l.order <- struct{}{}
			defer func() { <-l.order }()
		}
		return s.recount(ctx)
	}
	after, to, day := l.take()
	l.doubt = true
	if err := s.note(ctx, countingKey, to); err != nil {
		return err
	}
	rows := fmt.Sprintf("(SELECT * FROM %s WHERE batch > %d AND batch <= %d AND ingest_day >= toDate(%d)) AS events", s.table("events"),
		after, to, day)
	for i := range interned {
		if err := s.exec(ctx, nil, interned[i].add(s.db, rows, "")); err != nil {
			return fmt.Errorf("%s: %w", interned[i].table, err)
		}
	}
	for i := range rollups {
		if !rollups[i].later() {
			continue
		}
		if err := s.exec(ctx, nil, rollups[i].add(s.db, rows)); err != nil {
			return fmt.Errorf("%s: %w", rollups[i].table, err)
		}
	}
	return s.rolledUpTo(ctx, to)
}

// recount makes rollups equal to the rows of all days that an interrupted count may have been about. Nothing is inserted meanwhile.
func (s *Store) recount(ctx context.Context) error {
	after, to, _ := s.later.take()
	days, err := statement.Collect(ctx, s.at(), fmt.Sprintf("SELECT DISTINCT day FROM %%s.events WHERE batch > %d", after), nil,
		func(d *time.Time) ([]any, func()) { return []any{d}, nil })
	if err != nil {
		return err
	}
	if len(days) > 0 {
		p, err := s.recoverParams(ctx, days)
		if err != nil {
			return err
		}
		if err := s.mendAll(ctx, p); err != nil {
			return err
		}
	}
	return s.rolledUpTo(ctx, to)
}

// rolledUpTo notes that rollups have the rows of inserts up to a number.
func (s *Store) rolledUpTo(ctx context.Context, to uint64) error {
	if err := s.note(ctx, countedKey, to); err != nil {
		return err
	}
	s.later.doubt = false
	s.later.finish(to)
	return nil
}

// remember keeps an entry of meta.
func (s *Store) remember(ctx context.Context, key, value string) error {
	return s.setMeta(ctx, key, value, "now64(6)")
}

// note keeps a number that only grows. Its time is made of it: of two, the greater one stands whatever the clock does.
func (s *Store) note(ctx context.Context, key string, number uint64) error {
	return s.setMeta(ctx, key, fmt.Sprint(number), fmt.Sprintf("fromUnixTimestamp64Micro(toInt64(%d))", number))
}

// setMeta writes an entry of meta; of entries with one key the one with the latest time, an expression, stands.
func (s *Store) setMeta(ctx context.Context, key, value, updated string) error {
	return s.conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s (key, value, updated) SELECT '%s', '%s', %s", s.table("meta"), key, value, updated))
}

// RollUpEvery counts from time to time until ctx ends, so that little is left to do when somebody asks.
func (s *Store) RollUpEvery(ctx context.Context) {
	for sleep.For(ctx, countEvery) == nil {
		if err := s.RollUp(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("rollups not made; it is tried again before the next question about them", zap.Error(err))
		}
	}
}

// alone reports whether no other process writes into the store. Partitions then share inserts, under a token that no other owner of one
// would use (docs/adr/0086); rollups are made later, and of all partitions together: whoever recovers one of these may compare all of them.
func (s *Store) alone() bool {
	return s.cfg.Transport != nil && !s.cfg.Shared && s.cfg.ClusterName == ""
}

// countLater has the rollups of a store made later: by no view of events, but by views of a table without rows that takes what takes rows
// back. Rows that an earlier process left uncounted are counted.
func (s *Store) countLater(ctx context.Context) error {
	if !s.alone() {
		return nil
	}
	s.recent = newRecent()
	if err := s.correctionViews(ctx); err != nil {
		return fmt.Errorf("make views of corrections: %w", err)
	}
	type numbers struct{ counted, counting, last uint64 }
	n, err := statement.Collect(ctx, s.at(), fmt.Sprintf(`WITH (SELECT maxOrDefault(toUInt64OrZero(value)) FROM %%[1]s.meta WHERE key = '%s') AS counted
SELECT ifNull(counted, 0), ifNull((SELECT max(toUInt64OrZero(value)) FROM %%[1]s.meta WHERE key = '%s'), 0),
    ifNull((SELECT max(batch) FROM %%[1]s.events WHERE batch > counted), 0)`, countedKey, countingKey), nil,
		func(n *numbers) ([]any, func()) { return []any{&n.counted, &n.counting, &n.last}, nil })
	if err != nil {
		return fmt.Errorf("read how far rollups are: %w", err)
	}
	last := max(n[0].counted, n[0].counting, n[0].last)
	s.later = &later{order: make(chan struct{}, 1), counting: make(chan struct{}, 1), doubt: n[0].counting > n[0].counted, next: last,
		done: last, counted: n[0].counted, of: map[string]uint64{}}
	return s.RollUp(ctx)
}

// correctionsKey is the entry of meta that tells from which statements and columns the table of corrections and its views were made.
const correctionsKey = "corrections"

// correctionViews makes the table of corrections and its views, and removes those of events, unless that has been done.
func (s *Store) correctionViews(ctx context.Context) error {
	columns, err := statement.Collect(ctx, s.at(), "SELECT concat(name, ' ', type) FROM system.columns WHERE database = {db:String} "+
		"AND table = 'events' AND '%s' != '' ORDER BY position", clickhouse.Parameters{"db": statement.Text(s.cfg.Database)},
		func(v *string) ([]any, func()) { return []any{v}, nil })
	if err != nil {
		return err
	}
	statements := s.correctionStatements()
	text := fmt.Sprintf("%016x", xxhash.Sum64String(strings.Join(slices.Concat(statements, columns), ";")))
	made, err := statement.Collect(ctx, s.at(), "SELECT value FROM %s.meta FINAL WHERE key = '"+correctionsKey+"'", nil,
		func(v *string) ([]any, func()) { return []any{v}, nil })
	if err != nil || slices.Equal(made, []string{text}) {
		return err
	}
	for _, sql := range statements {
		if err := s.conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%.60s…: %w", sql, err)
		}
	}
	return s.remember(ctx, correctionsKey, text)
}

// correctionStatements returns the statements of correctionViews, which may be repeated. Rollups that are counted at once are by a view of
// events, which counts all partitions together.
func (s *Store) correctionStatements() []string {
	corrections := s.table("corrections")
	var drop, create []string
	view := func(name, table, query string) {
		drop = append(drop, "DROP VIEW IF EXISTS "+s.table(name+"_corrections_mv"))
		create = append(create,
			fmt.Sprintf("CREATE MATERIALIZED VIEW %s TO %s AS %s", s.table(name+"_corrections_mv"), s.table(table), query))
	}
	view("events", "events", "SELECT * FROM "+corrections)
	later := map[string]bool{} // tables that have a view
	add := func(table, query string) {
		name := table
		if later[table] {
			name += "_implied"
		}
		later[table] = true
		view(name, table, query)
		drop = append(drop, "DROP VIEW IF EXISTS "+s.table(name+"_mv")) // that of events
	}
	for i := range interned {
		add(interned[i].table, interned[i].list(corrections+" AS events", ""))
	}
	for i := range rollups {
		r := &rollups[i]
		if r.later() {
			add(r.table, r.count(corrections+" AS events", true))
			continue
		}
		drop = append(drop, "DROP VIEW IF EXISTS "+s.table(r.table+"_mv"))
		create = append(create, fmt.Sprintf("CREATE MATERIALIZED VIEW %s TO %s AS %s", s.table(r.table+"_mv"), s.table(r.table),
			r.count(s.table("events"), true)))
	}
	return slices.Concat(drop, []string{"DROP TABLE IF EXISTS " + corrections,
		fmt.Sprintf("CREATE TABLE %s AS %s ENGINE = Null COMMENT 'passes rows on that take others back'", corrections, s.table("events"))},
		create)
}

// takesBack reports whether rows take others back.
func takesBack(members []insertMember) bool {
	return slices.ContainsFunc(members, func(m insertMember) bool {
		return slices.ContainsFunc(m.rows, func(r verdict.Row) bool { return r.Sign < 0 })
	})
}

// rollingUp is the context key of the statements that make rollups, and of those that ask of a cluster that they have all rows of.
type rollingUp struct{}

// upToDate is the round tripper before an embedded store: statements that name a rollup find every row in it that was inserted before.
type upToDate struct {
	next  http.RoundTripper
	store *Store
}

// RoundTrip implements http.RoundTripper.
func (t upToDate) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if l := t.store.later; l == nil || ctx.Value(rollingUp{}) != nil || ctx.Value(payloadKey{}) != nil || req.Body == nil || !l.pending() {
		return t.next.RoundTrip(req)
	}
	sql, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read statement: %w", err)
	}
	if slices.ContainsFunc(rolledUp, func(name string) bool { return bytes.Contains(sql, []byte(name)) }) {
		if err := t.store.RollUp(ctx); err != nil {
			return nil, err
		}
	}
	req = req.Clone(ctx)
	req.Body = io.NopCloser(bytes.NewReader(sql))
	return t.next.RoundTrip(req)
}

// rolledUp are the names in statements of the tables that are filled later.
//
//nolint:gochecknoglobals // constant table
var rolledUp = []string{".accesses", ".group_sets", ".access_usage", ".grant_usage", ".activity", ".unmatched", ".objects", ".arrivals",
	".halves", ".refused"}
