package storage_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// valuesOf returns what a row has in a column of conditions, in plain Go.
func valuesOf(column string, r *verdict.Row) []string {
	e, v := r.Event, r.Verdict
	ref := func(of func() string) []string {
		if e.ObjectRef == nil {
			return []string{""}
		}
		return []string{of()}
	}
	switch column {
	case "subject":
		return []string{e.EffectiveUser().Username}
	case "user":
		return []string{e.User.Username}
	case "impersonated":
		if e.ImpersonatedUser == nil {
			return []string{""}
		}
		return []string{e.ImpersonatedUser.Username}
	case "group":
		return e.EffectiveUser().Groups
	case "verb":
		return []string{e.Verb}
	case "apiGroup":
		return ref(func() string { return e.ObjectRef.APIGroup })
	case "resource":
		return ref(func() string { return e.ObjectRef.Resource })
	case "subresource":
		return ref(func() string { return e.ObjectRef.Subresource })
	case "namespace":
		return ref(func() string { return e.ObjectRef.Namespace })
	case "name":
		return ref(func() string { return e.ObjectRef.Name })
	case "path":
		path, _, _ := strings.Cut(e.RequestURI, "?")
		return []string{path}
	case "sourceIP":
		return e.SourceIPs
	case "userAgent":
		return []string{e.UserAgent}
	case "code":
		return []string{fmt.Sprint(e.Code())}
	case "decision":
		return []string{v.Recorded.String()}
	case "replayed":
		return []string{v.Replayed.String()}
	case "outcome":
		return []string{v.Outcome.String()}
	case "class":
		return []string{v.Class}
	case "authorizer":
		return []string{v.Authorizer}
	case "apiserver":
		return []string{r.APIServer}
	case "credential":
		return []string{v.Credential}
	case "auditID":
		return []string{e.AuditID}
	case "refused":
		return []string{yesNo(v.Recorded == verdict.DecisionForbid || e.Code() == 401 || e.Code() == 403 ||
			v.Admission.Recorded == "rejected")}
	case "system":
		name := e.EffectiveUser().Username
		return []string{yesNo(kubenames.Own(name) && name != kubenames.Anonymous)}
	case "rule":
		var out []string
		for _, h := range r.Marks {
			rule, _, _ := strings.Cut(h.Name, "/")
			out = append(out, rule)
		}
		return out
	}
	panic(column)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// meets reports whether a row meets conditions, in plain Go.
func meets(list []queries.Condition, r *verdict.Row) bool {
	type side struct {
		column string
		not    bool
	}
	any := map[side]bool{}
	for _, c := range list {
		s := side{c.Column, c.Not}
		any[s] = any[s] || slices.ContainsFunc(valuesOf(c.Column, r), func(v string) bool {
			return v == c.Value || c.Begins && strings.HasPrefix(v, c.Value)
		})
	}
	for s, met := range any {
		if met == s.not {
			return false
		}
	}
	return true
}

// conditionsFor returns sets of conditions on values that rows have, and on some that none has.
func conditionsFor(judged []verdict.Row) (out [][]queries.Condition) {
	columns, _ := queries.Columns()
	for i, column := range columns {
		var values []string
		for j := range judged {
			for _, v := range valuesOf(column, &judged[j]) {
				if v != "" && !slices.Contains(values, v) {
					values = append(values, v)
				}
			}
		}
		if len(values) == 0 {
			values = []string{"999"}
		}
		one, other := values[i%len(values)], values[len(values)/2]
		begin := one[:(len(one)+1)/2]
		for _, not := range []bool{false, true} {
			out = append(out,
				[]queries.Condition{{Column: column, Value: one, Not: not}},
				[]queries.Condition{{Column: column, Value: begin, Begins: true, Not: not}},
				[]queries.Condition{{Column: column, Value: one, Not: not}, {Column: column, Value: other, Not: not},
					{Column: column, Value: begin, Begins: true, Not: not}},
				[]queries.Condition{{Column: column, Value: one, Not: not}, {Column: "decision", Value: "allow"},
					{Column: "code", Value: "403", Not: true}},
			)
		}
		out = append(out, []queries.Condition{{Column: column, Value: "998"}})
	}
	for i := range judged {
		if o := judged[i].Event.ObjectRef; o != nil && o.Name != "" && o.Namespace != "" {
			return append(out, []queries.Condition{{Column: "resource", Value: o.Resource}, {Column: "namespace", Value: o.Namespace},
				{Column: "name", Value: o.Name}})
		}
	}
	return out
}

// TestEventsByConditions compares lists, counts by value and by step with the rows themselves, after corrections, for conditions on every
// column.
func TestEventsByConditions(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	for i := range in {
		if in[i].Verdict != nil && i%7 == 0 {
			in[i].Marks = []verdict.Mark{{Name: "secrets-list/first", Key: 1}, {Name: "pod-exec", Key: 2}}
		}
	}
	insert(t, s, "a", in)
	insert(t, s, "other", rows(t, "another", 1)[:50])
	insert(t, s, "fix", revised(in, 5))
	if err := s.RollUp(ctx); err != nil {
		t.Fatal(err)
	}
	judged := slices.DeleteFunc(slices.Clone(in), func(r verdict.Row) bool { return r.Verdict == nil })
	slices.SortFunc(judged, func(a, b verdict.Row) int {
		x, y := queries.CursorOf(&a), queries.CursorOf(&b)
		return -cmp.Or(cmp.Compare(x.Received, y.Received), cmp.Compare(x.Key, y.Key))
	})
	_, counted := queries.Columns()
	selected := 0
	for n, where := range conditionsFor(judged) {
		f := queries.EventFilter{Cluster: "c", Judged: true, Limit: 1000, Where: where}
		want := slices.DeleteFunc(slices.Clone(judged), func(r verdict.Row) bool { return !meets(where, &r) })
		got, err := s.Events(ctx, f)
		if err != nil {
			t.Fatalf("%+v: %v", where, err)
		}
		if len(got) != len(want) {
			t.Fatalf("%+v: %d events, want %d", where, len(got), len(want))
		}
		for i := range got {
			if listed(&got[i]) != listed(&want[i]) {
				t.Fatalf("%+v: event %d is %+v, want %+v", where, i, listed(&got[i]), listed(&want[i]))
			}
		}
		if len(want) > 0 && len(want) < len(judged) {
			selected++
		}
		if n%3 != 0 {
			continue
		}
		column := counted[n%len(counted)]
		checkFacet(t, s, f, column, want)
		checkHistogram(t, s, f, column, want)
	}
	if selected < 100 {
		t.Errorf("%d conditions select some of the rows, and not all", selected)
	}
	if _, err := s.Events(ctx, queries.EventFilter{Cluster: "c", Where: []queries.Condition{{Column: "nothing", Value: "x"}}}); err == nil {
		t.Error("a column that is none")
	}
}

type counter interface {
	Facets(ctx context.Context, f queries.EventFilter, columns []string, limit int) (queries.Facet, []queries.Facet, error)
	Histogram(ctx context.Context, f queries.EventFilter, split string, top, steps int) (queries.Histogram, error)
}

// checkFacet compares the counts of a column's values with the rows.
func checkFacet(t *testing.T, s counter, f queries.EventFilter, column string, rows []verdict.Row) {
	t.Helper()
	want := map[string]int64{}
	for i := range rows {
		values := slices.Compact(slices.Sorted(slices.Values(valuesOf(column, &rows[i]))))
		if len(values) == 0 {
			values = []string{""}
		}
		for _, v := range values {
			want[v]++
		}
	}
	const most = 3
	total, out, err := s.Facets(context.Background(), f, []string{column}, most)
	if err != nil {
		t.Fatalf("%+v by %s: %v", f.Where, column, err)
	}
	var all int64
	for _, v := range total.Values {
		all += v.Requests
	}
	got := out[0]
	if all != int64(len(rows)) || got.Column != column || got.More != (len(want) > most) || len(got.Values) != min(len(want), most) ||
		!got.Whole {
		t.Errorf("%+v: %d requests by %s: %+v; want %d and %v", f.Where, all, column, got, len(rows), want)
	}
	least := int64(1 << 60)
	for _, v := range got.Values {
		if v.Requests != want[v.Value] || v.Requests > least {
			t.Errorf("%+v: %s %q: %d requests, want %d, most first", f.Where, column, v.Value, v.Requests, want[v.Value])
		}
		least = v.Requests
		delete(want, v.Value)
	}
	for v, n := range want {
		if n > least {
			t.Errorf("%+v: %s %q with %d requests is left out", f.Where, column, v, n)
		}
	}
}

// checkHistogram compares the counts by step with the rows.
func checkHistogram(t *testing.T, s counter, f queries.EventFilter, column string, rows []verdict.Row) {
	t.Helper()
	h, err := s.Histogram(context.Background(), f, column, 2, 50)
	if err != nil {
		t.Fatalf("%+v by %s: %v", f.Where, column, err)
	}
	type cell struct {
		step  int
		value string
	}
	want := map[cell]int64{}
	for i := range rows {
		values := slices.Compact(slices.Sorted(slices.Values(valuesOf(column, &rows[i]))))
		if len(values) == 0 {
			values = []string{""}
		}
		for _, v := range values {
			if !slices.Contains(h.Values, v) {
				v = "\x00others"
			}
			want[cell{int(rows[i].Event.RequestReceivedTimestamp.Sub(h.Begin) / h.Step), v}]++
		}
	}
	if len(h.Counts) > 50 || h.Step <= 0 || len(h.Values) > 2 {
		t.Errorf("%+v: %d steps of %v by %q", f.Where, len(h.Counts), h.Step, h.Values)
	}
	for i, counts := range h.Counts {
		for j, n := range counts {
			v := "\x00others"
			if j < len(h.Values) {
				v = h.Values[j]
			}
			if want[cell{i, v}] != n {
				t.Errorf("%+v: step %d %s %q: %d, want %d", f.Where, i, column, v, n, want[cell{i, v}])
			}
			delete(want, cell{i, v})
		}
	}
	if len(want) > 0 {
		t.Errorf("%+v: outside of the steps by %s: %v", f.Where, column, want)
	}
}

// TestCountsOfARange: bounds within a minute are kept, and a filter of an empty cluster counts nothing.
func TestCountsOfARange(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	judged := slices.DeleteFunc(slices.Clone(in), func(r verdict.Row) bool { return r.Verdict == nil })
	slices.SortFunc(judged, func(a, b verdict.Row) int {
		return a.Event.RequestReceivedTimestamp.Compare(b.Event.RequestReceivedTimestamp)
	})
	from, to := judged[len(judged)/4].Event.RequestReceivedTimestamp, judged[3*len(judged)/4].Event.RequestReceivedTimestamp
	var want int64
	for i := range judged {
		if at := judged[i].Event.RequestReceivedTimestamp; !at.Before(from) && at.Before(to) {
			want++
		}
	}
	f := queries.EventFilter{Cluster: "c", From: from, To: to}
	total, _, err := s.Facets(ctx, f, nil, 1)
	if err != nil || len(total.Values) != 1 || total.Values[0].Requests != want || !total.From.Equal(from) || !total.To.Equal(to) {
		t.Errorf("%+v, %v; want %d", total, err, want)
	}
	h, err := s.Histogram(ctx, f, "", 1, 200)
	var n int64
	for _, c := range h.Counts {
		n += c[0]
	}
	if err != nil || n != want || len(h.Counts) > 200 || len(h.Values) != 0 {
		t.Errorf("%d in %d steps, %v; want %d", n, len(h.Counts), err, want)
	}
	f.Cluster = "nobody's"
	if total, out, err := s.Facets(ctx, f, []string{"verb"}, 1); err != nil || len(total.Values)+len(out[0].Values) != 0 || !total.Whole {
		t.Errorf("%+v %+v %v", total, out, err)
	}
	if h, err := s.Histogram(ctx, f, "verb", 1, 10); err != nil || len(h.Counts) != 0 {
		t.Errorf("%+v %v", h, err)
	}
}
