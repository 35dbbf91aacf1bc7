package storage_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestEventsByEveryFilter compares lists by every combination of filters, of values that rows have and
// of one that none has, with the rows themselves, after corrections.
func TestEventsByEveryFilter(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	var fix []verdict.Row
	for i := range in {
		if in[i].Verdict == nil || i%3 != 0 {
			continue
		}
		old := in[i]
		old.Sign = -1
		v := *in[i].Verdict
		v.Outcome, v.Class, v.Revision = verdict.OutcomeDrift, "recorded-allow/replayed-forbid", 2
		in[i].Verdict, in[i].Revision = &v, 2
		fix = append(fix, old, in[i])
	}
	insert(t, s, "fix", fix)
	filters := []struct {
		set func(*queries.EventFilter, string)
		of  func(*verdict.Row) string
	}{
		{func(f *queries.EventFilter, v string) { f.Subject = v }, func(r *verdict.Row) string { return r.Event.EffectiveUser().Username }},
		{func(f *queries.EventFilter, v string) { f.Verb = v }, func(r *verdict.Row) string { return r.Event.Verb }},
		{func(f *queries.EventFilter, v string) { f.Resource = v }, resourceOf},
		{func(f *queries.EventFilter, v string) { f.Recorded = v }, func(r *verdict.Row) string { return r.Verdict.Recorded.String() }},
		{func(f *queries.EventFilter, v string) { f.Outcome = v }, func(r *verdict.Row) string { return r.Verdict.Outcome.String() }},
		{func(f *queries.EventFilter, v string) { f.Class = v }, func(r *verdict.Row) string { return r.Verdict.Class }},
	}
	judged := slices.DeleteFunc(slices.Clone(in), func(r verdict.Row) bool { return r.Verdict == nil })
	slices.SortFunc(judged, func(a, b verdict.Row) int {
		x, y := queries.CursorOf(&a), queries.CursorOf(&b)
		return -cmp.Or(cmp.Compare(x.Received, y.Received), cmp.Compare(x.Key, y.Key))
	})
	for set := range 1 << len(filters) {
		model := &judged[set*len(judged)/(1<<len(filters))]
		for _, none := range []bool{false, true} {
			f := queries.EventFilter{Cluster: "c", Judged: true, Limit: 1000}
			want := slices.Clone(judged)
			for i, filter := range filters {
				value := filter.of(model)
				if set&(1<<i) == 0 || value == "" {
					continue
				}
				if none && i == 0 {
					value = "nobody"
				}
				filter.set(&f, value)
				want = slices.DeleteFunc(want, func(r verdict.Row) bool { return filter.of(&r) != value })
			}
			got, err := s.Events(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want) {
				t.Fatalf("%+v: %d events, want %d", f, len(got), len(want))
			}
			f.Limit = 1 + len(want)/3 // in pages, of which rows that were taken back leave room
			for paged := []verdict.Row(nil); len(paged) < len(want); {
				page, err := s.Events(ctx, f)
				if err != nil || len(page) != min(f.Limit, len(want)-len(paged)) {
					t.Fatalf("%+v: a page of %d events behind %d of %d: %v", f, len(page), len(paged), len(want), err)
				}
				for i := range page {
					if listed(&page[i]) != listed(&want[len(paged)+i]) {
						t.Fatalf("%+v: event %d of a page behind %d is %+v, want %+v", f, i, len(paged), listed(&page[i]),
							listed(&want[len(paged)+i]))
					}
				}
				paged = append(paged, page...)
				f.Before = queries.CursorOf(&page[len(page)-1])
			}
			for i := range got {
				if listed(&got[i]) != listed(&want[i]) {
					t.Fatalf("%+v: event %d is %+v, want %+v", f, i, listed(&got[i]), listed(&want[i]))
				}
			}
		}
	}
}

func resourceOf(r *verdict.Row) string {
	if r.Event.ObjectRef == nil {
		return ""
	}
	return r.Event.ObjectRef.Resource
}

// listedRow is what a list shows of an event.
type listedRow struct {
	auditID, request, subject, verb, uri, stage, received, cause, class, outcome, recorded, replayed, authorizer string
	code, grants                                                                                                 int
}

func listed(r *verdict.Row) listedRow {
	e, v := r.Event, r.Verdict
	out := listedRow{
		auditID: e.AuditID, request: r.Request.String(), subject: e.EffectiveUser().Username, verb: e.Verb, uri: e.RequestURI,
		stage: string(e.Stage), received: e.RequestReceivedTimestamp.String(), cause: v.Cause, class: v.Class,
		outcome: v.Outcome.String(), recorded: v.Recorded.String(), replayed: v.Replayed.String(), authorizer: v.Authorizer,
		code: int(e.Code()), grants: len(v.Grants),
	}
	return out
}
