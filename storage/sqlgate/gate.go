// Package sqlgate serves the store to untrusted SQL clients, over ClickHouse's HTTP interface
// and for reading only: what a dashboard needs, and nothing that reaches beyond the tables.
//
// The embedded engine has no users and no grants, so nothing in it keeps a SELECT from
// reading files, calling other hosts or writing its result to disk. The gate does:
//
//	request ──▶ authenticate ──▶ slot ──▶ session (readonly, limits) ──▶ format ──▶ tree ──▶ check ──▶ run ──▶ record
//	                                       one engine connection, closed after
//
// The engine itself parses. Its canonical text of the query (formatQuerySingleLine, given the text as a value) is one statement without
// comments, escapes or alternative spellings; EXPLAIN AST shows what that text means with the parameters inserted. Both are checked against
// allow lists: kinds of nodes, functions, table functions, tables. What is not known is refused, so new features of an engine are not
// offered here. The text that was checked is the text that runs, on a connection that is also read-only.
package sqlgate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Session is one connection to the engine, used by one query and closed.
type Session interface {
	// Query runs one statement and returns its result in the named format; params are the values of {name:Type}. An error of the engine has
	// the method Code() int. When ctx ends, the statement must end, too.
	Query(ctx context.Context, sql string, params [][2]string, format string) (io.ReadCloser, error)
	Close() error
}

// Config is what a gate needs. Zero values select the defaults.
type Config struct {
	// Open opens a session in the database with settings in place, applied in this order. Required.
	Open func(database string, settings [][2]string) (Session, error)
	// Hello answers clickhouse-go's first query for a driver of this protocol revision, in Native format; nil: the engine answers.
	Hello func(revision int) ([]byte, error)
	// Database that queries may read. Required.
	Database string
	// User and Password every caller must present. Required.
	User, Password string
	// Time a query may take. Default 30 s.
	Time time.Duration
	// Memory a query may take, in bytes. Default 256 MiB.
	Memory int64
	// Rows and Bytes a result may have. Default 1,000,000 and 256 MiB.
	Rows, Bytes int64
	// Concurrent is how many queries run at once, Waiting how many more may wait for their turn; others are refused. Default 4 and 64.
	Concurrent, Waiting int
	// QueryBytes bounds a query's text. Default 256 KiB.
	QueryBytes int64
	// Record is called with every query once it has ended, refused ones included; may be nil.
	Record func(AccessRecord)
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log receives lifecycle messages; nil: none.
	Log *zap.Logger
	// Registerer receives the metrics; nil: none are registered.
	Registerer prometheus.Registerer
}

// AccessRecord is an entry of the query log: who sent which query, and its outcome.
type AccessRecord struct {
	At     time.Time // when the query arrived
	User   string    // authenticated
	Remote string    // the caller's address, as the listener saw it
	Agent  string    // User-Agent, chosen by the caller
	Query  string    // as sent, truncated to 64 KiB
	Code   int       // 0: answered; otherwise ClickHouse's code of the error
	Error  string    // its text
	// Refused is set if the caller is at fault: not authenticated, not offered, not SQL.
	Refused bool
	Bytes   int64 // of the answer before compression
	Took    time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Open == nil || c.Database == "" || c.User == "" || c.Password == "" {
		return c, errors.New("sql gate: engine, database, user and password are required")
	}
	for _, d := range []struct {
		field *int64
		value int64
	}{{&c.Memory, 256 << 20}, {&c.Rows, 1_000_000}, {&c.Bytes, 256 << 20}, {&c.QueryBytes, 256 << 10}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	c.Time = cmp.Or(c.Time, 30*time.Second)
	c.Concurrent = cmp.Or(c.Concurrent, 4)
	c.Waiting = cmp.Or(c.Waiting, 64)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Record == nil {
		c.Record = func(AccessRecord) {}
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c, nil
}

// Gate answers queries. It is an http.Handler, safe for concurrent use.
type Gate struct {
	cfg     Config
	check   check
	limits  map[string]int64 // settings a caller may lower
	slots   chan struct{}    // one element per running query
	waiting chan struct{}    // one element per query that waits for a slot
	secret  [32]byte         // of user and password
	metrics *metrics
}

// New returns a gate. It queries the engine's functions and databases, so that those not offered are known by name.
func New(ctx context.Context, cfg Config) (*Gate, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	g := &Gate{cfg: cfg, slots: make(chan struct{}, cfg.Concurrent), waiting: make(chan struct{}, cfg.Waiting),
		secret: secret(cfg.User, cfg.Password)}
	g.limits = map[string]int64{
		"max_execution_time": int64((cfg.Time + time.Second - 1) / time.Second), "max_memory_usage": cfg.Memory,
		"max_result_rows": cfg.Rows, "max_result_bytes": cfg.Bytes, "max_threads": 2, "max_block_size": blockRows,
	}
	g.check = check{database: cfg.Database, functions: parseFunctions(functionsText), databases: map[string]bool{},
		refused: map[string]bool{}}
	s, err := g.open(nil)
	if err != nil {
		return nil, fmt.Errorf("sql gate: %w", err)
	}
	defer s.Close()
	names, err := lines(ctx, s, "SELECT name FROM system.functions", nil)
	if err != nil {
		return nil, fmt.Errorf("sql gate: list functions: %w", err)
	}
	for _, name := range names {
		if !g.check.functions.allows(name) {
			g.check.refused[strings.ToLower(name)] = true
		}
	}
	databases, err := lines(ctx, s, "SELECT name FROM system.databases", nil)
	if err != nil {
		return nil, fmt.Errorf("sql gate: list databases: %w", err)
	}
	for _, name := range append(databases, "system", "default", "information_schema") {
		if name != cfg.Database {
			g.check.databases[strings.ToLower(name)] = true
		}
	}
	g.metrics = newMetrics(cfg.Registerer)
	return g, nil
}

// blockRows is how many rows the engine works on at a time: between blocks it checks whether the query should end.
const blockRows = 8192

// fixed returns the settings that precede those of a request and that it cannot change.
func (g *Gate) fixed() [][2]string {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	return [][2]string{
		{"max_execution_time", n(g.limits["max_execution_time"])}, {"timeout_before_checking_execution_speed", "0"},
		{"max_memory_usage", n(g.cfg.Memory)}, {"max_bytes_before_external_group_by", "0"}, {"max_bytes_before_external_sort", "0"},
		{"max_result_rows", n(g.cfg.Rows)}, {"max_result_bytes", n(g.cfg.Bytes)}, {"result_overflow_mode", "throw"},
		{"max_threads", "2"}, {"max_block_size", n(blockRows)}, {"max_query_size", n(g.cfg.QueryBytes * 4)},
		{"max_recursive_cte_evaluation_depth", "100"}, {"session_timezone", "UTC"},
		{"allow_introspection_functions", "0"}, {"allow_ddl", "0"}, {"max_temporary_data_on_disk_size_for_query", "1"},
		{"do_not_merge_across_partitions_select_final", "1"}, {"use_skip_indexes_if_final", "1"},
	}
}

// open opens a session with the request's settings, and readonly last: after it nothing can be set any more.
func (g *Gate) open(settings map[string]string) (Session, error) {
	all := g.fixed()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		all = slices.DeleteFunc(all, func(kv [2]string) bool { return kv[0] == name })
		all = append(all, [2]string{name, settings[name]})
	}
	return g.cfg.Open(g.cfg.Database, append(all, [2]string{"readonly", "1"}))
}

// lines runs one of the gate's own statements and returns the first column as text.
func lines(ctx context.Context, s Session, sql string, params [][2]string) ([]string, error) {
	body, err := s.Query(ctx, sql, params, "JSONCompactEachRow")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var out []string
	for d := json.NewDecoder(body); ; {
		var row []string
		if err := d.Decode(&row); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		out = append(out, row[0])
	}
}

// admit checks a query and returns the text to run and the format to answer in.
func (g *Gate) admit(ctx context.Context, s Session, q request) (sql, format string, err error) {
	text, err := lines(ctx, s, "SELECT formatQuerySingleLine({query:String})", [][2]string{{"query", escape(q.sql)}})
	if err != nil {
		return "", "", ofQuery(err)
	}
	if len(text) != 1 {
		return "", "", denied("an empty query")
	}
	canonical := text[0]
	if g.check.show(canonical) {
		return canonical, q.format, nil
	}
	tokens, err := lex(canonical)
	if err != nil {
		return "", "", denied("%s", err)
	}
	written, err := g.check.words(tokens)
	if err != nil {
		return "", "", err
	}
	// States of aggregate functions that the engine did not make can crash it.
	if strings.Contains(strings.ToLower(canonical), "aggregatefunction") {
		return "", "", denied("the type AggregateFunction is not offered")
	}
	tree, err := lines(ctx, s, "EXPLAIN AST "+canonical, q.params)
	if err != nil {
		return "", "", err
	}
	root, err := parseTree(tree)
	if err != nil {
		return "", "", denied("%s", err)
	}
	meant, format, err := g.check.tree(root)
	if err != nil {
		return "", "", err
	}
	if written != meant {
		return "", "", denied("a SELECT that the syntax tree does not show")
	}
	format = cmp.Or(format, q.format)
	return canonical, format, nil
}

// ofQuery removes the gate's own statement from an error about a query's syntax.
func ofQuery(err error) error {
	var c coded
	if !errors.As(err, &c) {
		return err
	}
	text, _, cut := strings.Cut(c.Error(), ": In scope SELECT formatQuerySingleLine(")
	_, text, ours := strings.Cut(text, "DB::Exception: ")
	if !cut || !ours || c.Code() != codeSyntax {
		return err
	}
	return newError(codeSyntax, "SYNTAX_ERROR", "%s", text)
}

// escape escapes a value for {name:String}.
func escape(s string) string {
	return strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(s)
}
