package schema_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/storage/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a golden file; unless whole, text may continue after it.
func golden(t *testing.T, name, text string, whole bool) {
	t.Helper()
	path := "testdata/" + name + ".golden.sql"
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) && (whole || !strings.HasPrefix(text, string(want))) {
		t.Fatalf("%s is not what the files render to; review and run with -update", path)
	}
}

// TestGolden shows both forms of the DDL for review, single server and cluster. What the golden
// files have is never edited: stores have been made by it. New migrations come behind, and stand
// there from the next release on.
func TestGolden(t *testing.T) {
	for name, form := range map[string]schema.Form{
		"single":  {Database: "`retrial`"},
		"cluster": {Database: "`retrial_local`", ClusterName: "main"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := schema.Migrations(form)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, sql := range form.Prepare() {
				b.WriteString(sql + ";\n\n")
			}
			for i, m := range list {
				if m.Version != i+1 {
					t.Errorf("%s has version %d, want %d", m.Name, m.Version, i+1)
				}
				b.WriteString(m.SQL + ";\n\n")
			}
			golden(t, name, b.String(), false)
		})
	}
}

// TestGoldenDistributed shows the tables over all shards.
func TestGoldenDistributed(t *testing.T) {
	form := schema.Form{Database: "`retrial_local`", ClusterName: "main"}
	text := form.Over("`retrial`") + ";\n\n"
	for _, d := range form.Distributed("`retrial`", 1) {
		text += d.SQL + ";\n\n"
	}
	golden(t, "distributed", text, true)
}

// TestEveryTableIsDistributed: what is not over all shards cannot be read in the cluster form.
func TestEveryTableIsDistributed(t *testing.T) {
	form := schema.Form{Database: "d", ClusterName: "c"}
	list, err := schema.Migrations(form)
	if err != nil {
		t.Fatal(err)
	}
	made := form.Prepare()
	for _, m := range list {
		made = append(made, m.SQL)
	}
	var want, got []string
	for _, sql := range made {
		if _, after, ok := strings.Cut(sql, "CREATE TABLE IF NOT EXISTS d."); ok {
			name, _, _ := strings.Cut(after, " ")
			want = append(want, name)
		}
	}
	for _, d := range form.Distributed("all", len(list)) {
		got = append(got, d.Table)
	}
	slices.Sort(want)
	want = slices.Compact(want) // one took another's place
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("over all shards are\n%v, tables are\n%v", got, want)
	}
}

// TestOneObjectAFile: each file makes or changes one object, idempotently, everywhere.
func TestOneObjectAFile(t *testing.T) {
	list, err := schema.Migrations(schema.Form{Database: "d", ClusterName: "c"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		n := 0
		for _, does := range []string{"CREATE ", "ALTER ", "RENAME TABLE ", "DROP VIEW "} {
			n += strings.Count(m.SQL, does)
		}
		if n != 1 || !strings.Contains(m.SQL, "IF NOT EXISTS") &&
			!strings.Contains(m.SQL, "IF EXISTS") && !strings.Contains(m.SQL, " MODIFY QUERY\n") &&
			!strings.Contains(m.SQL, " MATERIALIZE INDEX ") {
			t.Errorf("%04d_%s: %d objects, or not idempotent", m.Version, m.Name, n)
		}
		if strings.Contains(m.SQL, ";\n") {
			t.Errorf("%04d_%s: a line ends a statement: one a file", m.Version, m.Name)
		}
		if !strings.Contains(m.SQL, " ON CLUSTER `c`") {
			t.Errorf("%04d_%s is not made on every node", m.Version, m.Name)
		}
	}
}
