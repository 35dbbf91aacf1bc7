package storage_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
)

func TestQueryLog(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	at := time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC)
	asked := func(after time.Duration, caller, detail string) queries.Asked {
		return queries.Asked{Time: at.Add(after), Door: "page", Caller: caller, Address: "10.0.0.1", Question: "events", Detail: detail,
			Status: "ok", Count: 1, Bytes: 10, Took: 3 * time.Millisecond}
	}
	for _, list := range [][]queries.Asked{
		nil,
		{asked(0, "alice", "cluster=a"), asked(time.Second, "alice", "cluster=a")},
		{asked(2*time.Second, "alice", "cluster=a"), asked(time.Minute, "alice", "cluster=a"), asked(0, "bob", strings.Repeat("é", 3000))},
	} {
		if err := s.SaveAsked(ctx, list); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.QueryLog(ctx, time.Time{}, 10)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d rows, %v: want repeats within a minute to be one\n%+v", len(got), err, got)
	}
	minute := at.Truncate(time.Minute)
	if !got[0].Time.Equal(minute.Add(time.Minute)) || got[0].Count != 1 {
		t.Errorf("newest first: %+v", got[0])
	}
	want := asked(0, "alice", "cluster=a")
	want.Time, want.Count, want.Bytes, want.Took = minute, 3, 30, 9*time.Millisecond
	if got[1].Time = got[1].Time.UTC(); got[1] != want {
		t.Errorf("is   %+v\nwant %+v", got[1], want)
	}
	if d := got[2].Detail; len(d) != 4096 || !strings.HasSuffix(d, "é") {
		t.Errorf("detail cut to %d bytes", len(d))
	}
	if older, err := s.QueryLog(ctx, minute.Add(time.Minute), 1); err != nil || len(older) != 1 || older[0].Caller != "alice" {
		t.Errorf("before: %+v %v", older, err)
	}
}
