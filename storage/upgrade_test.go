package storage_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	s.Exec(t, "CREATE TABLE "+database+".schema_version (version UInt32, name String, digest String, applied DateTime('UTC') DEFAULT "+
		"now()) ENGINE = ReplacingMergeTree ORDER BY version")
	list, err := schema.Migrations(schema.Form{Database: "`" + database + "`"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list[:last] {
		s.Exec(t, m.SQL)
		digest := sha256.Sum256([]byte(m.SQL))
		s.Exec(t, fmt.Sprintf("INSERT INTO %s.schema_version (version, name, digest) SELECT %d, '%s', '%s'", database, m.Version, m.Name,
			hex.EncodeToString(digest[:])))
	}
	columns := strings.Join(s.Strings(t, "SELECT name FROM system.columns WHERE database = '"+database+
		"' AND table = 'events' AND default_kind IN ('', 'DEFAULT') ORDER BY position"), ", ")
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
// back as it went in, and recovery makes what rollups there were not yet. Without RETRIAL_LONG
// (make test-upgrade) it takes every sixth, those of releases, and the last six.
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
		if os.Getenv("RETRIAL_LONG") == "" && last%6 != 0 && last < len(list)-6 && !slices.Contains(releases, last) {
			continue
		}
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
			if got.Events != want.Events || got.Usage != want.Usage || got.Implied != int64(len(pairs)/2) ||
				got.GrantRows != want.GrantRows+int64(len(pairs)) {
				t.Fatalf("after correcting %d old rows\n was %+v\n is  %+v", len(pairs)/2, want, got)
			}
			if again := consistent(t, open(name)); again != got {
				t.Fatalf("changed by opening again\n was %+v\n is  %+v", got, again)
			}
		})
	}
}

// TestUpgradeOfObjects goes on with a store from before the index of objects and what is counted of them: its old parts get both, and an
// object is found in those and in new ones.
func TestUpgradeOfObjects(t *testing.T) {
	const beforeIndex = 49
	open := opener(t)
	in := rows(t, "c", 0)
	fresh := open("fresh")
	insert(t, fresh, "a", in)
	olderStore(t, fresh, "older", "fresh", beforeIndex)
	s := open("older")
	const unfinished = "SELECT toString(count()) FROM system.mutations WHERE database = 'older' AND NOT is_done"
	for deadline := time.Now().Add(time.Minute); s.Strings(t, unfinished)[0] != "0"; {
		if time.Now().After(deadline) {
			t.Fatal("old parts have no index after a minute")
		}
	}
	if n := s.Strings(t, "SELECT toString(data_compressed_bytes > 0) FROM system.data_skipping_indices WHERE database = 'older' AND "+
		"name = 'by_object'"); !slices.Equal(n, []string{"1"}) && !slices.Equal(n, []string{"true"}) {
		t.Errorf("the index of old parts is empty: %v", n)
	}
	more := rows(t, "c", 0)[:40]
	for i := range more {
		more[i].Position.Offset += 1 << 30
		more[i].Request.Lo++
	}
	insert(t, s, "b", more)
	asked := 0
	for i := range more {
		ref := more[i].Event.ObjectRef
		if more[i].Verdict == nil || ref == nil || ref.Name == "" {
			continue
		}
		want := s.Strings(t, fmt.Sprintf("SELECT toString(sum(sign)) FROM older.events WHERE outcome != '' AND object_resource || '/' || "+
			"object_namespace || '/' || object_name = '%s/%s/%s'", ref.Resource, ref.Namespace, ref.Name))
		_, lines, err := s.Ask(context.Background(), "object", "c", map[string]string{"resource": ref.Resource, "namespace": ref.Namespace,
			"name": ref.Name})
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		for _, l := range lines {
			n += l[4].(int64)
		}
		if asked++; fmt.Sprint(n) != want[0] || n < 2 {
			t.Errorf("%s %s/%s was touched %d times, want %s", ref.Resource, ref.Namespace, ref.Name, n, want[0])
		}
	}
	if asked == 0 {
		t.Error("no object was asked about")
	}
}

// TestUpgradeOfAdmission goes on with a store from before the list of what admission plugins answered: the
// old rows say in it what they said, to SQL too, and are taken back by the version they were stored with.
func TestUpgradeOfAdmission(t *testing.T) {
	const beforeList = 41
	open := opener(t)
	lifecycle := func(outcome string, code int32) verdict.AdmissionAnswer {
		return verdict.AdmissionAnswer{Plugin: "NamespaceLifecycle", Outcome: outcome, Code: code}
	}
	quota := verdict.AdmissionAnswer{Plugin: "ResourceQuota", Outcome: verdict.PluginRejected, Code: 403}
	said := []verdict.Admission{
		{},
		{Recorded: verdict.AdmissionNotRun},
		{Recorded: verdict.AdmissionAdmitted, Answers: []verdict.AdmissionAnswer{lifecycle(verdict.PluginPass, 0)}},
		{Recorded: verdict.AdmissionAdmitted, Answers: []verdict.AdmissionAnswer{lifecycle(verdict.PluginDrift, 0)}},
		{Recorded: verdict.AdmissionRejected, Answers: []verdict.AdmissionAnswer{lifecycle(verdict.PluginMatch, 403)}},
		{Recorded: verdict.AdmissionRejected, Answers: []verdict.AdmissionAnswer{lifecycle(verdict.PluginDrift, 403)}},
		{Recorded: verdict.AdmissionRejected, Answers: []verdict.AdmissionAnswer{lifecycle(verdict.PluginRejected, 403)}},
		{Recorded: verdict.AdmissionRejected, Answers: []verdict.AdmissionAnswer{quota}},
		{Recorded: verdict.AdmissionRejected, Answers: []verdict.AdmissionAnswer{lifecycle(verdict.PluginPass, 0), quota}},
		{Recorded: verdict.AdmissionRejected, Answers: []verdict.AdmissionAnswer{lifecycle(verdict.PluginIndeterminate, 0), quota}},
	}
	var in []verdict.Row
	for _, r := range rows(t, "c", 0) {
		if r.Verdict == nil || len(in) == len(said) {
			continue
		}
		v, e := *r.Verdict, *r.Event
		v.Admission = said[len(in)]
		if v.Admission.Recorded == verdict.AdmissionRejected {
			e.ResponseStatus = &event.Status{Code: 403, Raw: []byte(`{"code":403}`)}
		}
		r.Verdict, r.Event = &v, &e
		in = append(in, r)
	}
	fresh := open("fresh")
	insert(t, fresh, "a", in)
	olderStore(t, fresh, "older", "fresh", beforeList)
	s := open("older")
	var pairs []verdict.Row
	back := everything(t, s, in)
	for _, want := range in {
		r, ok := back[want.EventKey]
		if !ok || !reflect.DeepEqual(r.Verdict, want.Verdict) {
			t.Fatalf("changed by the upgrade\n was %+v\n is  %+v", want.Verdict, r.Verdict)
		}
		old, v := r, *r.Verdict
		old.Sign = -1
		v.Admission.Answers = []verdict.AdmissionAnswer{{Plugin: "PodSecurity", Name: "restricted:latest", Outcome: verdict.PluginPass}}
		r.Verdict = &v
		pairs = append(pairs, old, r)
	}
	sql := func(s *storage.Store, database string) []string {
		out := s.Strings(t, "SELECT toString((admission, admission_plugin, admission_namespace_lifecycle, "+
			"admission_plugins, admission_names, admission_outcomes, admission_reasons, admission_codes)) FROM "+database+
			".events FINAL WHERE sign = 1")
		slices.Sort(out)
		return out
	}
	if was, is := sql(fresh, "fresh"), sql(s, "older"); len(was) != len(in) || !slices.Equal(was, is) {
		t.Errorf("SQL says\n%s\nof rows that say\n%s", strings.Join(is, "\n"), strings.Join(was, "\n"))
	}
	insert(t, s, "fix", pairs)
	s.Exec(t, "OPTIMIZE TABLE older.events FINAL")
	back = everything(t, s, in)
	for _, r := range back {
		if x := r.Verdict.Admission.Of("PodSecurity"); x == nil || len(r.Verdict.Admission.Answers) != 1 {
			t.Errorf("an old row was not taken back: %+v", r.Verdict.Admission)
		}
	}
	if n := s.Strings(t, "SELECT toString(count()) FROM older.events WHERE 1"); len(back) != len(in) || n[0] != fmt.Sprint(len(in)) {
		t.Errorf("%d rows stand, %s are stored, of %d", len(back), n[0], len(in))
	}
}
