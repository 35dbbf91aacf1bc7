package storage_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/schema"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// releases are the last migrations of the releases there have been.
var releases = []int{21, 29, 30}

// olderStore makes a database of an earlier release and fills it with the rows of another, as far as
// it has columns for them. What came later than the release stays behind.
func olderStore(t *testing.T, s *storage.Store, database, from string, last int) {
	t.Helper()
	s.Exec(t, "CREATE DATABASE "+database)
	s.Exec(t, "CREATE TABLE "+database+".schema_version (version UInt32, name String, digest String, applied DateTime('UTC') DEFAULT now()) ENGINE = ReplacingMergeTree ORDER BY version")
	list, err := schema.Migrations(schema.Form{Database: "`" + database + "`"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list[:last] {
		s.Exec(t, m.SQL)
		digest := sha256.Sum256([]byte(m.SQL))
		s.Exec(t, fmt.Sprintf("INSERT INTO %s.schema_version (version, name, digest) SELECT %d, '%s', '%s'", database, m.Version, m.Name, hex.EncodeToString(digest[:])))
	}
	columns := strings.Join(s.Strings(t, "SELECT name FROM system.columns WHERE database = '"+database+"' AND table = 'events' AND default_kind = '' ORDER BY position"), ", ")
	s.Exec(t, "INSERT INTO "+database+".events ("+columns+") SELECT "+columns+" FROM "+from+".events")
}

// knownBefore takes out of rows what releases before migration 22 did not know.
func knownBefore(in []verdict.Row) {
	for i := range in {
		if v := in[i].Verdict; v != nil {
			v.Evidence, v.Explained, v.Credential, v.Chain, v.Implied, v.Review = nil, nil, "", nil, nil, nil
		}
	}
}

// opener opens databases of one engine.
func opener(t *testing.T) func(database string) *storage.Store {
	t.Helper()
	storagetest.Need(t)
	engine, err := embedded.Open(embedded.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return func(database string) *storage.Store {
		t.Helper()
		s, err := storage.Open(context.Background(), storage.Config{Transport: engine, Database: database})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// TestUpgradeFromEveryVersion opens a store that stopped at each migration there is, an
// interrupted upgrade included: the last file is applied and not recorded. Every row comes
// back as it went in, and recovery makes what rollups there were not yet.
func TestUpgradeFromEveryVersion(t *testing.T) {
	open := opener(t)
	in := rows(t, "c", 0)[:120]
	knownBefore(in)
	fresh := open("fresh")
	insert(t, fresh, "a", in)
	want := consistent(t, fresh)
	list, err := schema.Migrations(schema.Form{Database: "`fresh`"})
	if err != nil {
		t.Fatal(err)
	}
	for last := 1; last < len(list); last++ {
		t.Run(fmt.Sprintf("%04d_%s", last, list[last-1].Name), func(t *testing.T) {
			name := fmt.Sprintf("v%d", last)
			olderStore(t, fresh, name, "fresh", last)
			fresh.Exec(t, fmt.Sprintf("DELETE FROM %s.schema_version WHERE version = %d SETTINGS lightweight_deletes_sync = 2", name, last))
			s := open(name)
			if err := s.Recover(context.Background(), 0, 1, nil); err != nil {
				t.Fatal(err)
			}
			if got := consistent(t, s); got != want {
				t.Fatalf("changed by the upgrade\n was %+v\n is  %+v", want, got)
			}
			back := everything(t, s, in)
			if len(back) != len(in) {
				t.Fatalf("%d rows came back of %d", len(back), len(in))
			}
			r := back[in[last].EventKey]
			if !ids(t, s, r.Event.AuditID)[r.EventKey] {
				t.Fatalf("audit ID %s is not found", r.Event.AuditID)
			}
			fresh.Exec(t, "DROP DATABASE "+name+" SYNC")
		})
	}
}

// ids returns the keys of the rows that have an audit ID.
func ids(t *testing.T, s *storage.Store, id string) map[event.Hash128]bool {
	t.Helper()
	out := map[event.Hash128]bool{}
	if err := s.VisitWhy(context.Background(), "", id, func(r verdict.Row) error { out[r.EventKey] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestUpgradeFromReleases goes on with the stores of earlier releases: old rows can be taken
// back, and checks behind requests are counted from then on.
func TestUpgradeFromReleases(t *testing.T) {
	open := opener(t)
	in := rows(t, "c", 0)
	knownBefore(in)
	fresh := open("fresh")
	insert(t, fresh, "a", in)
	want := consistent(t, fresh)
	for _, last := range releases {
		t.Run(fmt.Sprint(last), func(t *testing.T) {
			name := fmt.Sprintf("release%d", last)
			olderStore(t, fresh, name, "fresh", last)
			s := open(name)
			if got := consistent(t, s); got != want {
				t.Fatalf("changed by the upgrade\n was %+v\n is  %+v", want, got)
			}
			var pairs []verdict.Row
			for _, r := range everything(t, s, in) {
				if r.Verdict == nil || r.Verdict.Replayed != verdict.DecisionAllow || len(pairs) >= 40 {
					continue
				}
				old, v := r, *r.Verdict
				old.Sign = -1
				v.Implied = []verdict.Implied{{Check: "exec", Attributes: v.Attributes, Replayed: verdict.DecisionAllow, Grants: v.Grants}}
				r.Verdict = &v
				pairs = append(pairs, old, r)
			}
			insert(t, s, "fix", pairs)
			s.Exec(t, "OPTIMIZE TABLE "+name+".events FINAL")
			got := consistent(t, s)
			if got.Events != want.Events || got.Usage != want.Usage || got.Implied != int64(len(pairs)/2) || got.GrantRows != want.GrantRows+int64(len(pairs)) {
				t.Fatalf("after correcting %d old rows\n was %+v\n is  %+v", len(pairs)/2, want, got)
			}
			if again := consistent(t, open(name)); again != got {
				t.Fatalf("changed by opening again\n was %+v\n is  %+v", got, again)
			}
		})
	}
}
