package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestQueries compares the named queries with the same sums made of the rows in Go, after
// corrections, so that rows taken back must not show.
func TestQueries(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	insert(t, s, "other", rows(t, "another", 1)[:10])
	var fix []verdict.Row
	for i, r := range in {
		if r.Verdict == nil || i%5 != 0 {
			continue
		}
		old := r
		old.Sign = -1
		v := *r.Verdict
		v.Outcome, v.Class, v.Missing, v.Revision = verdict.OutcomeIndeterminate, "unknown-object", []string{"clusterroles"}, 2
		if i%2 == 0 {
			v.Outcome, v.Class, v.Missing = verdict.OutcomeDrift, "recorded-allow/replayed-forbid", nil
		}
		r.Verdict, r.Revision = &v, 2
		fix = append(fix, old, r)
		in[i] = r
	}
	insert(t, s, "fix", fix)
	clusters, err := s.Clusters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(clusters) != 2 || clusters[1].Name != "c" || clusters[1].Events != int64(len(in)) {
		t.Fatalf("clusters %+v", clusters)
	}
	from, to := clusters[1].First, clusters[1].Last.Add(time.Minute)
	o, err := s.Overview(ctx, "c", from, to)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, subjects, recorded := map[string]int64{}, map[string]queries.SubjectCount{}, map[string]int64{}
	var lacks int64
	for _, r := range in {
		rec := ""
		if v := r.Verdict; v != nil {
			rec = v.Recorded.String()
			outcomes[v.Outcome.String()+"/"+v.Class]++
			c := subjects[r.Event.EffectiveUser().Username]
			c.Requests++
			if v.Recorded == verdict.DecisionForbid {
				c.Forbidden++
			}
			if v.Outcome == verdict.OutcomeDrift {
				c.Drift++
			}
			subjects[r.Event.EffectiveUser().Username] = c
			lacks += int64(len(v.Missing))
		}
		recorded[rec]++
	}
	got := map[string]int64{}
	for _, b := range o.Volume {
		got[b.Recorded] += b.Events
		if b.Start.Before(from) || !b.Start.Before(to) {
			t.Errorf("bucket %v outside of %v to %v", b.Start, from, to)
		}
	}
	equal(t, "volume by decision", got, recorded)
	got = map[string]int64{}
	for _, v := range o.Outcomes {
		got[v.Outcome+"/"+v.Class] = v.Requests
	}
	equal(t, "outcomes", got, outcomes)
	for _, v := range o.Subjects {
		want := subjects[v.Subject]
		want.Subject = v.Subject
		if v != want {
			t.Errorf("subject %+v, want %+v", v, want)
		}
	}
	if len(o.Lacks) != 1 || o.Lacks[0] != (queries.Lack{Missing: "clusterroles", Requests: lacks}) {
		t.Errorf("lacks %+v, want %d of clusterroles", o.Lacks, lacks)
	}
	t.Run("events by pages", func(t *testing.T) {
		seen := map[string]int{}
		var last time.Time
		f := queries.EventFilter{Cluster: "c", Limit: 37}
		for {
			page, err := s.Events(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				if !last.IsZero() && r.Event.RequestReceivedTimestamp.After(last) {
					t.Fatal("not newest first")
				}
				last = r.Event.RequestReceivedTimestamp
				seen[r.EventKey.String()]++
			}
			if len(page) < f.Limit {
				break
			}
			f.Before = queries.CursorOf(&page[len(page)-1])
		}
		if len(seen) != len(in) {
			t.Fatalf("%d of %d events", len(seen), len(in))
		}
		for _, r := range in {
			if seen[r.EventKey.String()] != 1 {
				t.Fatalf("event %s listed %d times", r.Event.AuditID, seen[r.EventKey.String()])
			}
		}
	})
	t.Run("events of a subject with an outcome", func(t *testing.T) {
		name := o.Subjects[0].Subject
		page, err := s.Events(ctx,
			queries.EventFilter{Cluster: "c", Subject: name, Outcome: "drift", Judged: true, From: from, To: to, Limit: 1000})
		if err != nil || int64(len(page)) != o.Subjects[0].Drift {
			t.Fatalf("%d rows, %v; want %d", len(page), err, o.Subjects[0].Drift)
		}
	})
	t.Run("why", func(t *testing.T) {
		for _, want := range in[:20] {
			list, err := why(ctx, s, "c", want.Event.AuditID)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, r := range list {
				if r.EventKey == want.EventKey {
					found++
				}
			}
			if found != 1 {
				t.Fatalf("event %q found %d times among %d", want.Event.AuditID, found, len(list))
			}
		}
		list, err := why(ctx, s, "", "x' OR 1 --\t\\")
		if err != nil || len(list) != 0 {
			t.Fatalf("%d rows, %v for an ID nobody used", len(list), err)
		}
	})
	t.Run("nothing there", func(t *testing.T) {
		if page, err := s.Events(ctx, queries.EventFilter{Cluster: "nobody's"}); err != nil || len(page) != 0 {
			t.Fatalf("%d rows, %v", len(page), err)
		}
	})
}

// why collects the rows of an audit ID.
func why(ctx context.Context, s *storage.Store, cluster, id string) (list []verdict.Row, err error) {
	err = s.VisitWhy(ctx, cluster, id, func(r verdict.Row) error {
		list = append(list, r)
		return nil
	})
	return list, err
}

func equal(t *testing.T, what string, got, want map[string]int64) {
	t.Helper()
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s %q: %d, want %d", what, k, got[k], v)
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: %q should not be there", what, k)
		}
	}
}
