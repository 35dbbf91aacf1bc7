package storage_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/schema"
	"github.com/retrial-io/retrial/storage/storagetest"
)

// before is the last migration of the release the test upgrades from.
const before = 21

// TestUpgrade opens a store that an earlier release made and filled: rows and rollups stand as
// they were, old rows can be taken back, checks behind requests are counted from then on, and
// an interrupted migration is repeated.
func TestUpgrade(t *testing.T) {
	storagetest.Need(t)
	ctx := context.Background()
	engine, err := embedded.Open(embedded.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	open := func(database string) *storage.Store {
		t.Helper()
		s, err := storage.Open(ctx, storage.Config{Transport: engine, Database: database})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	in := rows(t, "c", 0)
	for i := range in {
		if v := in[i].Verdict; v != nil { // what the release knew
			v.Evidence, v.Explained, v.Credential, v.Chain, v.Implied, v.Review = nil, nil, "", nil, nil, nil
		}
	}
	fresh := open("fresh")
	insert(t, fresh, "a", in)
	want := consistent(t, fresh)

	fresh.Exec(t, "CREATE DATABASE old")
	fresh.Exec(t, "CREATE TABLE old.schema_version (version UInt32, name String, digest String, applied DateTime('UTC') DEFAULT now()) ENGINE = ReplacingMergeTree ORDER BY version")
	list, err := schema.Migrations(schema.Form{Database: "`old`"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list[:before] {
		fresh.Exec(t, m.SQL)
		digest := sha256.Sum256([]byte(m.SQL))
		fresh.Exec(t, fmt.Sprintf("INSERT INTO old.schema_version (version, name, digest) SELECT %d, '%s', '%s'", m.Version, m.Name, hex.EncodeToString(digest[:])))
	}
	columns := strings.Join(fresh.Strings(t, "SELECT name FROM system.columns WHERE database = 'old' AND table = 'events' AND default_kind = '' ORDER BY position"), ", ")
	fresh.Exec(t, "INSERT INTO old.events ("+columns+") SELECT "+columns+" FROM fresh.events")

	s := open("old")
	if got := consistent(t, s); got != want {
		t.Fatalf("changed by the upgrade\n was %+v\n is  %+v", want, got)
	}
	if err := s.Recover(ctx, 0, 1, nil); err != nil {
		t.Fatal(err)
	}
	if got := consistent(t, s); got != want {
		t.Fatalf("changed by recovery after the upgrade\n was %+v\n is  %+v", want, got)
	}
	var pairs []replay.Row
	for _, r := range everything(t, s, in) {
		if r.Verdict == nil || r.Verdict.Replayed != replay.DecisionAllow || len(pairs) >= 40 {
			continue
		}
		old, v := r, *r.Verdict
		old.Sign = -1
		v.Implied = []replay.Implied{{Check: "exec", Attributes: v.Attributes, Replayed: replay.DecisionAllow, Grants: v.Grants}}
		r.Verdict = &v
		pairs = append(pairs, old, r)
	}
	insert(t, s, "fix", pairs)
	s.Exec(t, "OPTIMIZE TABLE old.events FINAL")
	got := consistent(t, s)
	if got.Events != want.Events || got.Usage != want.Usage || got.Implied != int64(len(pairs)/2) || got.GrantRows != want.GrantRows+int64(len(pairs)) {
		t.Fatalf("after correcting %d old rows\n was %+v\n is  %+v", len(pairs)/2, want, got)
	}
	s.Exec(t, fmt.Sprintf("DELETE FROM old.schema_version WHERE version > %d SETTINGS lightweight_deletes_sync = 2", before))
	if again := consistent(t, open("old")); again != got {
		t.Fatalf("changed by migrating again\n was %+v\n is  %+v", got, again)
	}
}
