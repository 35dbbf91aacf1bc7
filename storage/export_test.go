package storage

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// Exec runs a statement as an operator or a crash would; for tests alone.
func (s *Store) Exec(t testing.TB, sql string) {
	t.Helper()
	if s.cfg.ClusterName != "" { // what is about a table, not about its rows
		sql = strings.Replace(sql, " TABLE "+s.cfg.Database+".", " TABLE "+s.localDatabase()+".", 1)
	}
	if err := s.conn.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Strings runs a query of one text column.
func (s *Store) Strings(t testing.TB, sql string) []string {
	t.Helper()
	out, err := statement.Collect(context.Background(), s.at(), sql+" AND '%s' != ''", nil,
		func(v *string) ([]any, func()) { return []any{v}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Uncounted runs a query of one number without counting for it what is not counted yet.
func (s *Store) Uncounted(t testing.TB, sql string) (n int64) {
	t.Helper()
	ctx := context.WithValue(context.Background(), rollingUp{}, true)
	if err := s.conn.QueryRow(ctx, sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// Explain returns how the engine would run a query: the lines about tables and indexes.
func (s *Store) Explain(t testing.TB, sql string, bound map[string]string) (out []string) {
	t.Helper()
	res, err := s.conn.Query(statement.Params(context.Background(), clickhouse.Parameters(bound)), "EXPLAIN indexes = 1 "+sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer res.Close()
	for res.Next() {
		var line string
		if err := res.Scan(&line); err != nil {
			t.Fatal(err)
		}
		line = strings.TrimLeft(line, " │└├─")
		word, _, _ := strings.Cut(line, " ")
		switch strings.TrimSuffix(word, ":") {
		case "ReadFromMergeTree", "PrimaryKey", "Skip", "Name", "Condition", "Keys", "cluster", "minute", "user_name", "access", "granted",
			"resource", "day":
			out = append(out, line)
		}
	}
	if err := res.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Parse returns the number of lines of a statement's syntax tree; nothing is run.
func (s *Store) Parse(t testing.TB, sql string) (lines int) {
	t.Helper()
	res, err := s.conn.Query(context.Background(), "EXPLAIN AST "+sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer res.Close()
	for res.Next() {
		lines++
	}
	if err := res.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// FoldName is foldName.
func FoldName(name string) string { return codec.FoldName(name) }

// FoldPath is foldPath.
func FoldPath(path string) string { return codec.FoldPath(path) }

// FoldBeyond makes the store count fewer accesses by themselves.
func (s *Store) FoldBeyond(accesses, kinds, cluster, held int) {
	s.folds.Limit(func(l *codec.FoldLimits) {
		*l = codec.FoldLimits{Accesses: accesses, Kinds: kinds, Cluster: cluster, Held: held, Subjects: 1000, Groups: 1000, Sets: 1000,
			First: 1000, Firsts: 1000}
	})
}

// FoldAgentsBeyond makes the store count fewer user agents by themselves.
func (s *Store) FoldAgentsBeyond(agents, clients int) {
	s.folds.Limit(func(l *codec.FoldLimits) { l.Agents, l.Clients = agents, clients })
}

// FoldGroupsBeyond makes the store count fewer subjects and sets of groups by themselves.
func (s *Store) FoldGroupsBeyond(subjects, groups, sets int) {
	s.folds.Limit(func(l *codec.FoldLimits) { l.Subjects, l.Groups, l.Sets = subjects, groups, sets })
}

// FoldFirstBeyond makes the store keep fewer keys of first-seen rules.
func (s *Store) FoldFirstBeyond(first, firsts int) {
	s.folds.Limit(func(l *codec.FoldLimits) { l.First, l.Firsts = first, firsts })
}

// FoldsHeld returns how many accesses the store remembers, and of how many days.
func (s *Store) FoldsHeld() (keys, days int) { return s.folds.Remembered() }

// EveryColumn is what is read of a whole row, as a SELECT has it.
func EveryColumn() string {
	list, _ := codec.NewStored().Reads(codec.EveryColumn)
	return strings.Join(list, ", ")
}

// Encoded returns rows as an INSERT sends them, without its number and the columns behind a place.
func Encoded(rows []verdict.Row, last int) ([]byte, error) {
	p := &pendingBlock{block: codec.NewBlock(foldsOf(rows))}
	place := map[string]int{}
	for _, c := range codec.Describe() {
		place[c.Name] = max(c.Place, place[c.With])
	}
	p.block.Columns = slices.DeleteFunc(p.block.Columns, func(c proto.InputColumn) bool {
		return place[c.Name] > last || c.Name == "batch"
	})
	for i := range rows {
		if err := p.block.Append(&rows[i]); err != nil {
			return nil, err
		}
	}
	if err := p.encode(); err != nil {
		return nil, err
	}
	return io.ReadAll(p.data.Reader())
}

// foldsOf has begun the days of rows with nothing counted.
func foldsOf(rows []verdict.Row) *codec.Folds {
	f := codec.NewFolds()
	_ = f.Begin(rows, func(string, uint16, codec.FoldLimits) (codec.Counted, error) { return codec.Counted{}, nil })
	return f
}

// Appender returns a function that appends rows, always the same, to a block and empties it
// again.
func Appender(rows []verdict.Row) func() error {
	b := codec.NewBlock(foldsOf(rows))
	return func() error {
		for i := range rows {
			if err := b.Append(&rows[i]); err != nil {
				return err
			}
		}
		b.Reset()
		return nil
	}
}

// TrimBeyond sets how many bytes of contents policy_objects keeps: of an object, of a cluster's
// large ones, and what is large.
func (s *Store) TrimBeyond(object, cluster, large int64) {
	s.trim = trimLimits{object: object, cluster: cluster, large: large}
	s.trimAt = 0
}
