package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
)

// TestRetain ingests old log lines today and live ones on several days: what goes is what
// was ingested long ago, whatever the events' own time, and rollups outlive their events.
func TestRetain(t *testing.T) {
	storagetest.Need(t)
	ctx := context.Background()
	now := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	engine, err := embedded.Open(embedded.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	s, err := storage.Open(ctx, storage.Config{Transport: engine, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := lines(t)
	n := len(all) / 4
	add := func(part int, source string, age int) {
		t.Helper()
		in := rowsOf(t, all[part*n:(part+1)*n], "c", 0, now.AddDate(0, 0, -age))
		for i := range in {
			in[i].Source = source
			in[i].Position.Offset += int64(part * n)
		}
		insert(t, s, fmt.Sprint("t", part), in)
	}
	add(0, "webhook", 31)
	add(1, "import", 31)
	add(2, "webhook", 2)
	add(3, "webhook", 1)
	expect := func(what string, parts int) {
		t.Helper()
		v := totals(t, s)
		if v.Events != int64(parts*n) || v.Volume != int64(4*n) {
			t.Fatalf("%s: %d events and a volume of %d, want %d and %d", what, v.Events, v.Volume, parts*n, 4*n)
		}
		if err := s.Recover(ctx, 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		if again := totals(t, s); again != v {
			t.Fatalf("%s: recovery changed rollups whose events are gone", what)
		}
	}
	expect("before", 4)
	for range 2 {
		if err := s.Retain(ctx, storage.Retention{EventDays: 30, RollupDays: 400, KeepImports: true}); err != nil {
			t.Fatal(err)
		}
		expect("default retention drops the live events of 31 days ago", 3)
	}
	used, err := s.DiskBytes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Retain(ctx, storage.Retention{DiskCap: used - 1}); err != nil {
		t.Fatal(err)
	}
	expect("over the cap by a byte the oldest day goes", 2)
	if err := s.Retain(ctx, storage.Retention{DiskCap: 1}); err != nil {
		t.Fatal(err)
	}
	expect("the newest day stays whatever the cap", 1)
	if err := s.SaveAuditSamples(ctx, []queries.AuditSample{
		{Cluster: "c", APIServer: "old", Taken: now.AddDate(0, 0, -40), Events: 1},
		{Cluster: "c", APIServer: "new", Taken: now, Events: 2},
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Retain(ctx, storage.Retention{RollupDays: 1}); err != nil {
		t.Fatal(err)
	}
	v := totals(t, s)
	if v.Volume == int64(4*n) {
		t.Fatal("rollups past their retention stayed")
	}
	if left := s.Strings(t, "SELECT toString(apiserver) FROM retrial.audit_samples WHERE cluster = 'c'"); len(left) != 1 ||
		left[0] != "new" {
		t.Fatalf("of the readings of apiservers %q stayed, want those of this month", left)
	}
}

// TestDiskCapSparesTheNewestDay has live and imported events of one day: they are two
// partitions, and the day is still being written to.
func TestDiskCapSparesTheNewestDay(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	all := lines(t)
	for i, source := range []string{"webhook", "import"} {
		in := rowsOf(t, all[i*10:i*10+10], "c", 0, received)
		for j := range in {
			in[j].Source = source
			in[j].Position.Offset += int64(10 * i)
		}
		insert(t, s, source, in)
	}
	if err := s.Retain(ctx, storage.Retention{DiskCap: 1}); err != nil {
		t.Fatal(err)
	}
	if got := totals(t, s); got.Events != 20 {
		t.Fatalf("%d events left of 20", got.Events)
	}
}
