package grafana_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/goleak"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/sqlgate"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/test/grafana"
	"github.com/retrial-io/retrial/test/testfile"
	"github.com/retrial-io/retrial/verdict"
)

// TestMain fails the run when a goroutine outlives its test.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostile are names that would end the text they are put into, or read as something else.
var hostile = []string{
	`o'clock`, `'; DROP TABLE events; --`, `\`, `\'`, `\' OR 1 = 1 --`, "line\nbreak", "tab\there", `"double"`, "`back`", `%27`, `%`,
	`$__timeFilter(minute)`,
	`${cluster:percentencode}`, `{x:String}`, `<img src=x onerror=alert(1)>`, "\x00", "ü€😀", "\u202egnp", strings.Repeat("x", 300),
	"*", "%2A",
}

// openStore opens a store behind a gate, and the driver in front of it.
func openStore(t *testing.T) (*storage.Store, *sql.DB) {
	t.Helper()
	storagetest.Need(t)
	engine, err := embedded.Open(embedded.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	store, err := storage.Open(t.Context(), storage.Config{Transport: engine})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	gate, err := sqlgate.New(t.Context(), sqlgate.Config{
		Open: func(db string, settings [][2]string) (sqlgate.Session, error) {
			s, err := engine.Session(db, settings)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		Hello: engine.Hello, Database: "retrial", User: "grafana", Password: "p",
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gate)
	t.Cleanup(server.Close)
	db := clickhouse.OpenDB(&clickhouse.Options{
		Addr: []string{server.Listener.Addr().String()}, Protocol: clickhouse.HTTP,
		Auth:        clickhouse.Auth{Database: "retrial", Username: "grafana", Password: "p"},
		Compression: &clickhouse.Compression{Method: clickhouse.CompressionGZIP}, // as the data source sets it
	})
	t.Cleanup(func() { db.Close() })
	return store, db
}

// fill puts the slice of a recorded log into a cluster, with a verdict of every outcome, and
// a finding, a dead letter and a question beside it.
func fill(t *testing.T, store *storage.Store, cluster string, partition int32, received time.Time) {
	t.Helper()
	var rows []verdict.Row
	outcomes := []func(*verdict.Verdict){
		func(*verdict.Verdict) {},
		func(v *verdict.Verdict) {
			v.Outcome, v.Class, v.Replayed = verdict.OutcomeDrift, "allow-forbid", verdict.DecisionForbid
		},
		func(v *verdict.Verdict) {
			v.Outcome, v.Class, v.Missing = verdict.OutcomeIndeterminate, verdict.ClassNoState, []string{"the cluster's roles"}
		},
	}
	for i, line := range bytes.Split(bytes.TrimSpace(testfile.Read(t, "../../storage/testdata/events.jsonl.zst")), []byte("\n")) {
		r, err := storagetest.Row(cluster, line, event.Position{Epoch: 1, Partition: partition, Offset: int64(i)}, received)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			r.Source = "webhook"
		}
		if r.Event.Stage != event.StageRequestReceived {
			storagetest.Verdict(&r)
			if r.Verdict.Outcome == verdict.OutcomeMatch {
				outcomes[i%len(outcomes)](r.Verdict)
			}
		}
		rows = append(rows, r)
	}
	if err := errors.Join(store.Insert(t.Context(), fmt.Sprintf("fill-%d", partition), rows), store.RollUp(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := store.SaveAsked(t.Context(), []queries.Asked{{Time: rows[0].Event.RequestReceivedTimestamp, Door: "page", Caller: "c",
		Question: "overview", Status: "ok", Count: 1}}); err != nil {
		t.Fatal(err)
	}
}

// span returns the time the rows of fill are from.
func span(t *testing.T, store *storage.Store) (from, to time.Time) {
	t.Helper()
	clusters, err := store.Clusters(t.Context())
	if err != nil || len(clusters) == 0 {
		t.Fatal(clusters, err)
	}
	return clusters[0].First.Add(-time.Hour), clusters[0].Last.Add(2 * time.Hour)
}

// result is what a query gave.
type result struct {
	columns []string
	rows    int
	first   []any
}

func ask(ctx context.Context, db *sql.DB, query string) (result, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return result{}, err
	}
	defer rows.Close()
	var out result
	if out.columns, err = rows.Columns(); err != nil {
		return result{}, err
	}
	for rows.Next() {
		row := make([]any, len(out.columns))
		to := make([]any, len(row))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return result{}, err
		}
		if out.rows++; out.rows == 1 {
			out.first = row
		}
	}
	return out, rows.Err()
}

// each runs f with every SQL query of every dashboard, expanded.
func each(t *testing.T, v grafana.Values, f func(t *testing.T, p grafana.Panel, query string)) {
	t.Helper()
	for file, d := range dashboards(t) {
		run := func(p grafana.Panel, raw string) {
			t.Run(file+"/"+p.Title, func(t *testing.T) {
				query, err := grafana.Expand(raw, v)
				if err != nil {
					t.Fatal(err)
				}
				f(t, p, query)
			})
		}
		for _, variable := range d.Templating.List {
			if variable.Type == "query" {
				run(grafana.Panel{Title: "variable " + variable.Name, Type: "variable"}, variable.Query)
			}
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if q.RawSQL != "" {
					run(p, q.RawSQL)
				}
			}
		}
	}
}

// nothingThere are panels about what the recorded slice has none of.
var nothingThere = map[string]bool{
	"Findings by severity": true, "Findings by rule": true, "Newest findings": true, "Requests that rules select": true,
	"Stored dead letters": true,
}

// TestPanels runs every panel's query through the gate, as the data source does: over a
// recorded slice, for all clusters and for one; for every hostile name, of a cluster that is
// there and of one that is not.
func TestPanels(t *testing.T) {
	store, db := openStore(t)
	received := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	fill(t, store, "plain", 0, received)
	from, to := span(t, store)
	all := grafana.Values{From: from, To: to, Interval: time.Minute, Vars: map[string]string{"cluster": "*"}}
	counts := map[string]int{}
	t.Run("all clusters", func(t *testing.T) {
		each(t, all, func(t *testing.T, p grafana.Panel, query string) {
			r, err := ask(t.Context(), db, query)
			if err != nil {
				t.Fatalf("%v\n%s", err, query)
			}
			counts[t.Name()] = r.rows
			if r.rows == 0 && !nothingThere[p.Title] {
				t.Errorf("no rows: %s", query)
			}
			if p.Type == "timeseries" && r.rows > 0 {
				if _, ok := r.first[0].(time.Time); !ok || r.columns[0] != "time" {
					t.Errorf("the first column is %s %T, not the time", r.columns[0], r.first[0])
				}
			}
			if p.Type == "stat" && (r.rows != 1 || len(r.columns) != 1) {
				t.Errorf("%d rows of %v for one number", r.rows, r.columns)
			}
		})
	})
	t.Run("one cluster", func(t *testing.T) {
		v := all
		v.Vars = map[string]string{"cluster": "plain"}
		each(t, v, func(t *testing.T, p grafana.Panel, query string) {
			r, err := ask(t.Context(), db, query)
			if err != nil {
				t.Fatalf("%v\n%s", err, query)
			}
			if want := counts[strings.Replace(t.Name(), "one_cluster", "all_clusters", 1)]; r.rows != want {
				t.Errorf("%d rows, for all clusters %d", r.rows, want)
			}
		})
	})
	t.Run("a month in steps of hours", func(t *testing.T) {
		v := all
		v.From, v.Interval = to.Add(-30*24*time.Hour), time.Hour
		each(t, v, func(t *testing.T, _ grafana.Panel, query string) {
			if _, err := ask(t.Context(), db, query); err != nil {
				t.Fatalf("%v\n%s", err, query)
			}
		})
	})
	var before uint64
	if err := db.QueryRow("SELECT count() FROM events").Scan(&before); err != nil {
		t.Fatal(err)
	}
	t.Run("names of clusters that are not there", func(t *testing.T) {
		for i, name := range hostile {
			if name == "*" || name == "%2A" {
				continue // all of them, by intent
			}
			if testing.Short() && i%5 != 2 {
				continue
			}
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				v := all
				v.Vars = map[string]string{"cluster": name}
				each(t, v, func(t *testing.T, p grafana.Panel, query string) {
					r, err := ask(t.Context(), db, query)
					if err != nil {
						t.Fatalf("%v\n%s", err, query)
					}
					if empty := r.rows == 0 || p.Type == "stat" && zero(r.first); !empty && p.Type != "variable" &&
						p.Title != "Who asked Retrial" {
						t.Errorf("%d rows of a cluster that is not there: %v", r.rows, r.first)
					}
				})
			})
		}
	})
	t.Run("names of clusters that are there", func(t *testing.T) {
		for i, name := range hostile {
			fill(t, store, name, int32(i+1), received)
		}
		query := "SELECT sum(count) FROM volume WHERE ('${cluster:percentencode}' IN ('*', '%2A') OR cluster = " +
			"decodeURLComponent('${cluster:percentencode}'))"
		var one int64
		for _, name := range append([]string{"plain"}, hostile...) {
			if name == "*" || name == "%2A" {
				continue
			}
			v := all
			v.Vars = map[string]string{"cluster": name}
			text, err := grafana.Expand(query, v)
			if err != nil {
				t.Fatal(err)
			}
			var n int64
			if err := db.QueryRow(text).Scan(&n); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			if one == 0 {
				one = n
			}
			if n != one || n == 0 {
				t.Errorf("cluster %q has %d events, another %d", name, n, one)
			}
		}
		each(t, all, func(t *testing.T, p grafana.Panel, query string) {
			r, err := ask(t.Context(), db, query)
			if err != nil {
				t.Fatalf("%v\n%s", err, query)
			}
			if r.rows == 0 && !nothingThere[p.Title] {
				t.Errorf("no rows: %s", query)
			}
		})
	})
}

// zero reports whether a row has nothing but zeros and nothing at all.
func zero(row []any) bool {
	for _, v := range row {
		switch v := v.(type) {
		case nil:
		case int64:
			if v != 0 {
				return false
			}
		case *float64:
			if v != nil {
				return false
			}
		default:
			return fmt.Sprint(v) == "0" || fmt.Sprint(v) == "<nil>"
		}
	}
	return true
}

// TestPanelsOnAnEmptyStore: a store that has seen nothing gives empty panels, not errors.
func TestPanelsOnAnEmptyStore(t *testing.T) {
	_, db := openStore(t)
	to := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	each(t, grafana.Values{From: to.Add(-time.Hour), To: to, Interval: time.Minute, Vars: map[string]string{"cluster": "*"}},
		func(t *testing.T, p grafana.Panel, query string) {
			r, err := ask(t.Context(), db, query)
			if err != nil {
				t.Fatalf("%v\n%s", err, query)
			}
			if r.rows != 0 && (p.Type != "stat" || !zero(r.first)) {
				t.Errorf("%d rows of nothing: %v", r.rows, r.first)
			}
		})
}
