package storage_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// rollupRows returns how many rows each rollup has when everything is merged.
func rollupRows(t *testing.T, s *storage.Store, database string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, table := range []string{"accesses", "group_sets", "access_usage", "grant_usage", "activity", "unmatched", "objects",
		"arrivals", "halves", "refused", "volume",
		"detections"} {
		out[table] = s.Strings(t, fmt.Sprintf("SELECT toString(count()) FROM %s.%s FINAL WHERE 1", database, table))[0]
	}
	return out
}

// TestRollupsOfPartitions: in a store of one process, rollups of events that came by twelve partitions have as many rows as of those that
// came by one, and whichever partition is recovered, they are made equal to the events of all.
func TestRollupsOfPartitions(t *testing.T) {
	const partitions = 12
	open := opener(t)
	in := rows(t, "c", 0)
	one, many := open("one"), open("many")
	insert(t, one, "a", in)
	want := consistent(t, one)
	var by [partitions][]verdict.Row
	for i := range in {
		n := in[i].Request.Lo % partitions // all stages of a request in one
		in[i].Position.Partition = int32(n)
		by[n] = append(by[n], in[i])
	}
	for n := range by {
		insert(t, many, fmt.Sprint("a", n), by[n])
	}
	same := func(when string) {
		t.Helper()
		got := consistent(t, many)
		got.Checksum = want.Checksum
		if got != want {
			t.Errorf("%s\n want %+v\n is   %+v", when, want, got)
		}
		if has, want := rollupRows(t, many, "many"), rollupRows(t, one, "one"); fmt.Sprint(has) != fmt.Sprint(want) {
			t.Errorf("%s there are %v rows, of one partition %v", when, has, want)
		}
	}
	same("inserted")
	for n, damage := range []string{"TRUNCATE TABLE many.access_usage", "TRUNCATE TABLE many.grant_usage", "TRUNCATE TABLE many.volume",
		"TRUNCATE TABLE many.activity", "TRUNCATE TABLE many.accesses", "TRUNCATE TABLE many.detections"} {
		many.Exec(t, damage)
		if err := many.Recover(context.Background(), int32(n), 1, days(in)); err != nil {
			t.Fatal(err)
		}
		same(damage)
	}
	insert(t, many, "back", takenBack(by[3]))
	insert(t, one, "back", takenBack(by[3]))
	want = consistent(t, one)
	want.Accesses, want.GroupSets = consistent(t, many).Accesses, consistent(t, many).GroupSets
	same("rows of one partition taken back")
}

// TestAccessesGoToTheirClusters: the accesses of an earlier release, of all clusters, are moved to those that made them; also where the
// events are gone. Moving them may be interrupted, and what is stored meanwhile has its accesses.
func TestAccessesGoToTheirClusters(t *testing.T) {
	const before = 51 // the last migration when accesses had no cluster
	open := opener(t)
	fresh := open("fresh")
	insert(t, fresh, "a", rows(t, "a", 0))
	insert(t, fresh, "b", rows(t, "b", 1)[:150])
	accesses := func(s *storage.Store, database string) []string {
		return s.Strings(t, "SELECT toString((cluster, access, subject, group_set, verb, resource, name, path, seen)) FROM (SELECT * FROM "+
			database+".accesses FINAL ORDER BY ALL) WHERE 1")
	}
	want := accesses(fresh, "fresh")
	if of := fresh.Strings(t, "SELECT DISTINCT toString(cluster) FROM fresh.accesses WHERE 1"); len(of) != 2 {
		t.Fatalf("accesses of the clusters %q, want two", of)
	}
	for name, change := range map[string][]string{
		"events_kept": nil,
		"events_gone": {"TRUNCATE TABLE %[1]s.events"},
		"interrupted": {"DROP VIEW %[1]s.accesses_mv", "DROP VIEW %[1]s.accesses_implied_mv",
			"RENAME TABLE %[1]s.accesses TO %[1]s.accesses_before"},
		"stored_after": {"TRUNCATE TABLE %[1]s.accesses"},
	} {
		t.Run(name, func(t *testing.T) {
			olderStore(t, fresh, name, "fresh", before)
			for _, sql := range change {
				fresh.Exec(t, fmt.Sprintf(sql, name))
			}
			s := open(name)
			if got := accesses(s, name); !slices.Equal(got, want) {
				t.Errorf("%d accesses, want %d", len(got), len(want))
			}
			left := "SELECT name FROM system.tables WHERE name = 'accesses_before' AND database = '" + name + "'"
			if n := len(s.Strings(t, left)); n != 0 {
				t.Error("the table of the earlier release is still there")
			}
		})
	}
}
