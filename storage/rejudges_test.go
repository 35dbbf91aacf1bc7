package storage_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestRejudges: requests and progress come back, the greatest version of a partition stands,
// whatever comes in which order.
func TestRejudges(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	at := time.Date(2026, 5, 6, 7, 8, 9, 10000, time.UTC)
	one := verdict.Rejudge{ID: "1", Cluster: "c'\t", From: at, To: at.Add(time.Hour), Users: []string{"u\n"}, DryRun: true, Asked: at,
		Engine: "e",
		Only:   verdict.Selection{Classes: []string{"x"}}, Partitions: []int32{0, 3}}
	two := verdict.Rejudge{ID: "2", Cluster: "c'\t", From: at, To: at.Add(time.Hour), Asked: at, Partitions: []int32{0}}
	p := verdict.RejudgeProgress{Partition: 3, Version: 2, Until: at.Add(time.Minute), Done: true, Interrupted: 1,
		Report: verdict.RejudgeReport{Visited: 5, Changed: 1,
			Transitions: []verdict.Transition{{From: verdict.Judgement{Outcome: "drift", Verdict: "drift", Class: "x"},
				To: verdict.Judgement{Outcome: "match", Verdict: "match"}, Count: 1,
				Examples: []verdict.RejudgeExample{{AuditID: "a", At: at, Subject: "u", User: "u", Verb: "get", URI: "/", Before: "b"}}}}}}
	old := p
	old.Version, old.Done = 1, false
	for range 2 {
		for _, r := range []verdict.Rejudge{two, one} {
			if err := s.SaveRejudge(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range []verdict.RejudgeProgress{p, old} {
			if err := s.SaveRejudgeProgress(ctx, one.Cluster, one.ID, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := s.Rejudges(ctx)
	want := []verdict.RejudgeJob{{Rejudge: one, Progress: []verdict.RejudgeProgress{p}}, {Rejudge: two}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("read %+v, %v\nwant %+v", got, err, want)
	}
	if got[0].Done() || got[0].Share() != 0.5 {
		t.Errorf("done %v, share %v; one of two partitions is", got[0].Done(), got[0].Share())
	}
}
