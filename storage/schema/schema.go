// Package schema holds the store's DDL: one object a file, numbered in the order they are
// applied. A file that has been released is never edited; a change is a new file.
//
// The files are text templates so that one source gives both forms: a single server (or the embedded engine) and a replicated cluster.
package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"text/template"
)

//go:embed *.sql
var files embed.FS

// Form says what the DDL is rendered for.
type Form struct {
	// Database the objects are made in.
	Database string
	// ClusterName of a replicated deployment; empty: a single server.
	ClusterName string
}

// OnCluster is the clause that makes DDL run on every node; empty on a single server.
func (f Form) OnCluster() string {
	if f.ClusterName == "" {
		return ""
	}
	return " ON CLUSTER `" + f.ClusterName + "`"
}

// Replicated is the prefix of an engine name.
func (f Form) Replicated() string {
	if f.ClusterName == "" {
		return ""
	}
	return "Replicated"
}

// Prepare are the statements before all migrations: the database, and the list of migrations that were applied.
func (f Form) Prepare() []string {
	return []string{
		"CREATE DATABASE IF NOT EXISTS " + f.Database + f.OnCluster(),
		"CREATE TABLE IF NOT EXISTS " + f.Database + ".schema_version" + f.OnCluster() + ` (
    version UInt32, name String, digest String, applied DateTime('UTC') DEFAULT now()
) ENGINE = ` + f.Replicated() + "ReplacingMergeTree ORDER BY version",
	}
}

// Migration is one numbered file.
type Migration struct {
	Version int
	Name    string // file name without number and suffix
	SQL     string // rendered
}

// Migrations renders every file, in order.
func Migrations(form Form) ([]Migration, error) {
	names, err := fs.Glob(files, "*.sql") // sorted
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	var out []Migration
	for _, name := range names {
		number, rest, ok := strings.Cut(strings.TrimSuffix(name, ".sql"), "_")
		version, err := strconv.Atoi(number)
		if !ok || err != nil || version != len(out)+1 {
			return nil, fmt.Errorf("migration %s: want number %04d", name, len(out)+1)
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		t, err := template.New(name).Option("missingkey=error").Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		var b strings.Builder
		if err := t.Execute(&b, form); err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		out = append(out, Migration{Version: version, Name: rest, SQL: b.String()})
	}
	return out, nil
}

// sharding lists, in the order the tables were made and without views, the key that spreads a table's rows over shards. A Kafka partition's
// rows, its corrections and rollups are all on shard kpart % shards (docs/adr/0072); a table without partitions is whole on its cluster's
// shard. A table missing here cannot be read in the cluster form: a test compares.
var sharding = []struct{ table, key string }{ //nolint:gochecknoglobals // constant table
	{"schema_version", "version"},
	{"events", "kpart"},
	{"accesses", "access"},
	{"group_sets", "group_set"},
	{"access_usage", "kpart"},
	{"grant_usage", "kpart"},
	{"volume", "kpart"},
	{"policy_objects", "cityHash64(cluster)"},
	{"dead_letters", "kpart"},
	{"findings", "cityHash64(cluster)"},
	{"meta", "cityHash64(key)"},
	{"query_log", "cityHash64(question)"},
	{"detections", "kpart"},
	{"detections_done", "cityHash64(cluster)"},
	{"rejudges", "cityHash64(cluster)"},
	{"audit_samples", "cityHash64(cluster)"},
	{"activity", "kpart"},
	{"unmatched", "kpart"},
	{"objects", "kpart"},
	{"arrivals", "kpart"},
	{"halves", "kpart"},
	{"refused", "kpart"},
}

// Distributed is a table over those of all shards: what is read and written in the cluster form.
type Distributed struct {
	Table string
	SQL   string
	// Comment of the table, which tells what it was made of.
	Comment string
}

// Over is the statement that makes the database of the tables over all shards.
func (f Form) Over(database string) string {
	return "CREATE DATABASE IF NOT EXISTS " + database + f.OnCluster()
}

// Distributed returns the tables of the cluster form in a database (quoted), over those of the form's database. They hold no rows and keep
// the columns their tables had when they were made, so they are remade after migrations; newest is the version of the last one. The first
// is the list of migrations itself.
func (f Form) Distributed(database string, newest int) []Distributed {
	out := make([]Distributed, len(sharding))
	for i, s := range sharding {
		comment := fmt.Sprintf("over all shards, columns of schema version %d", newest)
		out[i] = Distributed{Table: s.table, Comment: comment,
			SQL: fmt.Sprintf("CREATE OR REPLACE TABLE %[1]s.%[2]s%[3]s AS %[4]s.%[2]s\nENGINE = Distributed(`%[5]s`, %[4]s, %[2]s, "+
				"%[6]s)\nCOMMENT '%[7]s'",
				database, s.table, f.OnCluster(), f.Database, f.ClusterName, s.key, comment)}
	}
	return out
}
