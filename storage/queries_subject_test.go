package storage_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestSubjectUsage compares what the rollups say of each subject with sums made in Go, after
// some rows were taken back for other verdicts.
func TestSubjectUsage(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	insert(t, s, "other", rows(t, "another", 1)[:50])
	fix := revised(in, 7)
	insert(t, s, "fix", fix)

	type sums struct{ requests, forbidden, drift, grants, checks, checkGrants int64 }
	want := map[string]sums{}
	sets := map[string]map[string]bool{}
	checks := 0
	for _, r := range in {
		if r.Verdict == nil {
			continue
		}
		who := r.Event.EffectiveUser()
		w := want[who.Username]
		w.requests++
		if r.Verdict.Recorded == verdict.DecisionForbid {
			w.forbidden++
		}
		if r.Verdict.Outcome == verdict.OutcomeDrift {
			w.drift++
		}
		w.grants += int64(len(r.Verdict.Grants))
		if r.Verdict.Recorded != verdict.DecisionForbid {
			for _, c := range r.Verdict.Implied {
				checks++
				if asked := r.Event.User.Username; c.ByRequestor() && asked != who.Username {
					o := want[asked]
					o.checks, o.checkGrants = o.checks+1, o.checkGrants+int64(len(c.Grants))
					want[asked] = o
					continue
				}
				w.checks++
				w.checkGrants += int64(len(c.Grants))
			}
		}
		want[who.Username] = w
		groups := slices.Compact(slices.Sorted(slices.Values(who.Groups)))
		if sets[who.Username] == nil {
			sets[who.Username] = map[string]bool{}
		}
		sets[who.Username][strings.Join(groups, "\n")] = true
	}
	if len(want) < 10 {
		t.Fatalf("%d subjects, want the recording's", len(want))
	}
	if checks < 5 {
		t.Fatalf("%d checks behind requests, want some", checks)
	}
	for name, w := range want {
		got, err := s.SubjectUsage(ctx, "c", name, time.Time{}, time.Time{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		var sum sums
		for _, u := range got.Uses {
			if u.Implied != "" {
				sum.checks += u.Requests
				if (u.Verb != "bind" || !u.Covered || u.Implied != "check") &&
					(u.Verb != "impersonate" || u.Covered || u.Implied != "impersonation") || u.Resource == "" {
					t.Errorf("%s: a check %+v", name, u)
				}
				continue
			}
			sum.requests, sum.forbidden = sum.requests+u.Requests, sum.forbidden+u.Forbidden
			if u.Verb == "" && u.Path == "" && u.Resource == "" || u.First.After(u.Last) || u.Allowed+u.Forbidden > u.Requests {
				t.Errorf("%s: a use %+v", name, u)
			}
		}
		for _, g := range got.Grants {
			sum.grants, sum.checkGrants = sum.grants+g.Requests, sum.checkGrants+g.Implied
		}
		sum.drift = got.Drift
		if sum != w || got.Requests != w.requests || got.Forbidden != w.forbidden || got.More {
			t.Errorf("%s: %+v by use, %d and %d in all; want %+v", name, sum, got.Requests, got.Forbidden, w)
		}
		for _, g := range got.Groups {
			if !sets[name][strings.Join(g, "\n")] {
				t.Errorf("%s: group set %q, want one of %v", name, g, sets[name])
			}
		}
		if len(got.Groups) != len(sets[name]) {
			t.Errorf("%s: %d group sets, want %d", name, len(got.Groups), len(sets[name]))
		}
	}
	t.Run("no more than asked for", func(t *testing.T) {
		for name := range want {
			all, err := s.SubjectUsage(ctx, "c", name, time.Time{}, time.Time{}, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if len(all.Uses) < 2 {
				continue
			}
			few, err := s.SubjectUsage(ctx, "c", name, time.Time{}, time.Time{}, 1)
			if err != nil || len(few.Uses) != 1 || !few.More || few.Uses[0] != all.Uses[0] || few.Requests != all.Requests {
				t.Errorf("%s: %+v, %v; want the first use alone, and all counted", name, few, err)
			}
			return
		}
		t.Error("no subject does two things")
	})
	t.Run("days outside", func(t *testing.T) {
		for name := range want {
			got, err := s.SubjectUsage(ctx, "c", name, time.Time{}, time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC), 10)
			if err != nil || got.Requests != 0 || len(got.Uses)+len(got.Grants)+len(got.Groups) != 0 {
				t.Fatalf("%+v, %v before everything", got, err)
			}
			break
		}
	})
	t.Run("near names", func(t *testing.T) {
		for name, first := range map[string]string{"kube-scheduler": "system:kube-scheduler", "system:node:node-7": "system:node:node-1",
			"system:kube-schedulre": "system:kube-scheduler", "SYSTEM:KUBE-SCHEDULER": "system:kube-scheduler",
			"prometheus": "system:serviceaccount:monitoring:prometheus"} {
			got, err := s.NearSubjects(ctx, "c", name, 3)
			if err != nil || len(got) == 0 || len(got) > 3 || got[0] != first {
				t.Errorf("like %q: %q, %v; want %q first", name, got, err, first)
			}
		}
		for _, name := range []string{strings.Repeat("x", 100_000), "nobody-like-it"} {
			if got, err := s.NearSubjects(ctx, "c", name, 3); err != nil || len(got) != 0 {
				t.Errorf("%.20q: %q, %v", name, got, err)
			}
		}
		if got, err := s.NearSubjects(ctx, "nobody's", "prometheus", 3); err != nil || len(got) != 0 {
			t.Errorf("%q, %v in a cluster that is not there", got, err)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		got, err := s.SubjectUsage(ctx, "c", "x' OR 1 --\t\\", time.Time{}, time.Time{}, 10)
		if err != nil || got.Requests != 0 || !got.First.IsZero() {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}

// revised takes every nth judged row back for one with another verdict, in place, and
// returns the rows that do so.
func revised(in []verdict.Row, n int) []verdict.Row {
	var fix []verdict.Row
	for i, r := range in {
		if r.Verdict == nil || i%n != 0 {
			continue
		}
		old := r
		old.Sign = -1
		v := *r.Verdict
		v.Outcome, v.Class, v.Grants, v.Revision = verdict.OutcomeDrift, verdict.ClassAllowForbid, nil, 2
		r.Verdict, r.Revision = &v, 2
		fix = append(fix, old, r)
		in[i] = r
	}
	return fix
}
