package storage_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/schema"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestClusterFormParses gives every statement of the cluster form to the engine's parser.
func TestClusterFormParses(t *testing.T) {
	s := storagetest.Open(t)
	form := schema.Form{Database: "`retrial_local`", ClusterName: "main"}
	list, err := schema.Migrations(form)
	if err != nil {
		t.Fatal(err)
	}
	statements := append(form.Prepare(), form.Over("`retrial`"))
	for _, m := range list {
		statements = append(statements, m.SQL)
	}
	for _, d := range form.Distributed("`retrial`", len(list)) {
		statements = append(statements, d.SQL)
	}
	for _, sql := range statements {
		if s.Parse(t, sql) == 0 {
			t.Errorf("the parser says nothing to %s", sql)
		}
		if !strings.Contains(sql, "ON CLUSTER `main`") {
			t.Errorf("not for every node: %s", sql)
		}
		if strings.Contains(sql, "CREATE TABLE") && !strings.Contains(sql, "ENGINE = Replicated") {
			t.Errorf("a table that is not replicated: %s", sql)
		}
	}
}

// TestOneNodeCluster runs the cluster form on a cluster whose only node is the engine: rows
// go through Distributed tables and come back through them, corrections and recovery
// included, as from a single server.
func TestOneNodeCluster(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s, stop := storagetest.StartCluster(t, dir)
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	insert(t, s, "a", in) // the token holds through the table over all shards
	var block []verdict.Row
	for i, r := range in {
		if corrected(i, r) {
			old := r
			old.Sign = -1
			block = append(block, old, correct(r))
		}
	}
	insert(t, s, "fix", block)
	s.Exec(t, "ALTER TABLE retrial.access_usage DELETE WHERE day = '2026-11-20' SETTINGS mutations_sync = 1")
	if err := s.Recover(ctx, 0, 1, days(in)); err != nil {
		t.Fatal(err)
	}
	got := consistent(t, s)
	if got.Events != int64(len(in)) {
		t.Errorf("%d events of %d", got.Events, len(in))
	}
	if n := len(everything(t, s, in)); n != len(in) {
		t.Errorf("%d rows are read of %d", n, len(in))
	}
	for _, q := range queries.Questions() {
		values := map[string]string{}
		for _, p := range q.Params {
			if p.Default == "" {
				values[p.Name] = "x"
			}
		}
		if _, _, err := s.Ask(ctx, q.Name, "c", values); err != nil {
			t.Errorf("%s: %v", q.Name, err)
		}
	}
	used, judged := int64(0), int64(0)
	for i := range in {
		if in[i].Verdict != nil {
			judged++
		}
	}
	err := s.Uses(ctx, "c", nil, func(u verdict.Use) error {
		if u.Check == "" {
			used += u.Requests
		}
		return nil
	})
	counted, _, err2 := s.Counted(ctx, "c")
	err3 := s.Untold(ctx, "c", nil, true, func(codec.Alike) error { return nil })
	if used != judged || counted.Requests != judged || err != nil || err2 != nil || err3 != nil {
		t.Errorf("%d uses, %d counted of %d: %v, %v, %v", used, counted.Requests, judged, err, err2, err3)
	}
	if n, err := s.DiskBytes(ctx); err != nil || n == 0 {
		t.Errorf("%d bytes on disk: %v", n, err)
	}
	before := s.Strings(t, "SELECT toString(uuid) FROM system.tables WHERE database = 'retrial' AND name = 'events'")
	stop()

	// Opened again it has what it had; a table made of earlier columns is made again.
	s, stop = storagetest.StartCluster(t, dir)
	if again := consistent(t, s); again != got {
		t.Errorf("opened again\n has %+v\n had %+v", again, got)
	}
	after := s.Strings(t, "SELECT toString(uuid) FROM system.tables WHERE database = 'retrial' AND name = 'events'")
	if before[0] != after[0] {
		t.Error("the table over all shards was made again without need")
	}
	s.Exec(t, "ALTER TABLE `retrial`.events DROP COLUMN admission")
	s.Exec(t, "ALTER TABLE `retrial`.events MODIFY COMMENT 'over all shards, columns of schema version 1'")
	stop()
	s, stop = storagetest.StartCluster(t, dir)
	defer stop()
	if n := len(everything(t, s, in)); n != len(in) {
		t.Errorf("after an upgrade %d rows are read of %d", n, len(in))
	}
}

// TestUnknownCluster: a cluster the server does not know is told with those that it knows.
func TestUnknownCluster(t *testing.T) {
	storagetest.Need(t)
	for name, c := range map[string]struct{ cluster, config, says string }{
		"none at all": {"prod", "", `knows no cluster "prod"`},
		"another":     {"prod", storagetest.ClusterConfig, "it knows main"},
		"copied twice": {"main", strings.Replace(storagetest.ClusterConfig, "<internal_replication>true", "<internal_replication>false", 1),
			"internal_replication"},
		"no name": {"a`b", "", "use letters, digits"},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(storagetest.Served) != "" {
				t.Skip("NOT RUN: of the engine in process")
			}
			err := storagetest.TryCluster(t, t.TempDir(), c.cluster, c.config)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("says %v, want %q", err, c.says)
			}
		})
	}
}
