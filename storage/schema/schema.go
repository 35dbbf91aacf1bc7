// Package schema holds the store's DDL: one object a file, numbered in the order they are
// applied. A file that has been released is never edited; a change is a new file.
//
// The files are text templates so that one source gives both forms: a single server (or
// the embedded engine) and a replicated cluster.
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

// Prepare are the statements before all migrations: the database, and the list of migrations
// that were applied.
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
