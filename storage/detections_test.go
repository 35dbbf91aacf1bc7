package storage_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// marked gives the judged rows of a slice of a log marks: a rule on single requests, one
// that counts, grouped by subject or by audit ID, and one that looks for something new.
func marked(t testing.TB, cluster string) []verdict.Row {
	t.Helper()
	in := rows(t, cluster, 0)
	for i := range in {
		r := &in[i]
		if r.Verdict == nil {
			continue
		}
		subject := xxhash.Sum64String(r.Event.EffectiveUser().Username)
		if r.Event.Verb == "create" {
			r.Marks = append(r.Marks, verdict.Mark{Name: "created", Key: subject})
		}
		r.Marks = append(r.Marks, verdict.Mark{Name: fmt.Sprintf("often/%d", 1+2*(i%2)), Key: subject},
			verdict.Mark{Name: "new" + verdict.MarkFirst, Key: subject},
			verdict.Mark{Name: "twice/1", Key: xxhash.Sum64String(r.Event.AuditID)}, verdict.Mark{Name: "zero", Key: 0})
	}
	return in
}

// want are the rows with a mark of a rule.
func want(in []verdict.Row, rule string) map[string]verdict.Mark {
	out := map[string]verdict.Mark{}
	for _, r := range in {
		for _, m := range r.Marks {
			if m.Name == rule || len(m.Name) > len(rule) && m.Name[:len(rule)+1] == rule+"/" {
				out[r.EventKey.String()] = m
			}
		}
	}
	return out
}

// always is a filter of everything.
func always(cluster, rule string) verdict.MarkFilter {
	return verdict.MarkFilter{Cluster: cluster, Rule: rule, From: time.Unix(0, 0).UTC(), To: time.Unix(1<<32, 0).UTC()}
}

// TestMarks: what is marked is found by its mark, counted in the sums, and no longer when a
// correction takes the mark away.
func TestMarks(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := marked(t, "c")
	insert(t, s, "a", in)
	insert(t, s, "other", marked(t, "d"))
	check := func(what string, in []verdict.Row) {
		t.Helper()
		for _, rule := range []string{"created", "often", "new", "twice", "zero"} {
			found := map[string]verdict.Mark{}
			if err := s.Marked(ctx, []verdict.MarkFilter{always("c", rule)}, func(r verdict.Row, _ []int) error {
				for _, m := range r.Marks {
					if _, ok := want([]verdict.Row{{EventKey: r.EventKey, Marks: []verdict.Mark{m}}}, rule)[r.EventKey.String()]; ok {
						found[r.EventKey.String()] = m
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if w := want(in, rule); len(w) == 0 || rule != "zero" && !reflect.DeepEqual(found, w) || len(found) != len(w) {
				t.Errorf("%s: %s: %d requests found, want %d", what, rule, len(found), len(w))
			}
			n, err := s.MarkedCount(ctx, always("c", rule))
			if err != nil || n != int64(len(want(in, rule))) {
				t.Errorf("%s: %s: counted %d, %v; want %d", what, rule, n, err, len(want(in, rule)))
			}
		}
		sums, _, err := s.MarkSums(ctx, nil, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int64{}
		for _, m := range sums {
			if m.Cluster == "c" {
				count[m.Rule] += m.Count
			}
		}
		for rule, n := range count {
			if n != int64(len(want(in, rule))) {
				t.Errorf("%s: the sums have %d of %s, want %d", what, n, rule, len(want(in, rule)))
			}
		}
	}
	check("as inserted", in)
	digests := func() map[string]int64 {
		sums, _, err := s.MarkSums(ctx, nil, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]int64{}
		for _, m := range sums {
			out[m.Cluster+m.Rule] += m.Digest
		}
		return out
	}
	before := digests()

	// Every other marked row loses its marks, or gets another key.
	var fix []verdict.Row
	back := slices.Clone(in)
	for i := range in {
		if in[i].Verdict == nil || i%2 == 0 {
			continue
		}
		old, fresh := in[i], in[i]
		old.Sign, fresh.Revision = -1, 2
		fresh.Marks = nil
		if i%3 == 0 {
			fresh.Marks = []verdict.Mark{{Name: "created", Key: 99}}
		}
		fix = append(fix, old, fresh)
		in[i] = fresh
	}
	insert(t, s, "fix", fix)
	check("corrected", in)
	changed := digests()
	for key, d := range changed {
		if (key[0] == 'c') == (d == before[key]) {
			t.Errorf("%s: digest %d, was %d", key, d, before[key])
		}
	}
	// And back: with the revision of a third version, so the digest is another one.
	fix = fix[:0]
	for i := range in {
		if in[i].Revision == 2 {
			old, fresh := in[i], back[i]
			old.Sign, fresh.Revision = -1, 3
			fix = append(fix, old, fresh)
			in[i] = fresh
		}
	}
	insert(t, s, "back", fix)
	check("and back", in)
}

// TestMarksRecover: sums that a crash left wrong are mended, digests included.
func TestMarksRecover(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	insert(t, s, "a", marked(t, "c"))
	sums := func() []verdict.MarkSum {
		list, _, err := s.MarkSums(ctx, nil, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(list, func(a, b verdict.MarkSum) int {
			return slices.Compare([]string{a.Rule, a.Slot.String()}, []string{b.Rule, b.Slot.String()})
		})
		return list
	}
	before := sums()
	for _, harm := range []string{
		"TRUNCATE TABLE retrial.detections",
		"INSERT INTO retrial.detections (cluster, rule, slot, key, kpart, ingest_day, count, digest) " +
			"SELECT 'c', 'created', 600, 0, 0, toDate('2026-11-21'), 1, 7",
		"INSERT INTO retrial.detections (cluster, rule, slot, key, kpart, ingest_day, count, digest) " +
			"SELECT cluster, rule, slot, key, kpart, ingest_day, 0, 5 FROM retrial.detections LIMIT 1",
	} {
		s.Exec(t, harm)
		if err := s.Recover(ctx, 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		after := slices.DeleteFunc(sums(), func(m verdict.MarkSum) bool { return m.Count == 0 && m.Digest == 0 })
		if !reflect.DeepEqual(after, before) {
			t.Errorf("%s: recovered to\n%+v, was\n%+v", harm, after, before)
		}
	}
}

// TestMarkSumsSince: of what changed since a moment the sums come whole, and parts without it are not read.
func TestMarkSumsSince(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	s.Exec(t, "SYSTEM STOP MERGES retrial.detections")
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	mark := func(slot, changed time.Time, count int) {
		s.Exec(t, fmt.Sprintf("INSERT INTO retrial.detections (cluster, rule, slot, key, kpart, ingest_day, count, digest, changed) "+
			"VALUES ('c', 'often', %d, 0, 0, '2026-11-20', %d, %d, %d)", slot.Unix(), count, 10*count, changed.Unix()))
	}
	hour := func(n int) time.Time { return at.Add(time.Duration(n) * time.Hour) }
	mark(hour(0), hour(0), 1)
	mark(hour(1), hour(1), 2)
	mark(hour(1), hour(5), 3)
	for _, clusters := range [][]string{nil, {"b", "c"}} {
		for _, c := range []struct {
			since, next time.Time
			want        map[time.Time]int64
		}{
			{time.Time{}, hour(5).Add(-5 * time.Minute), map[time.Time]int64{hour(0): 1, hour(1): 5}},
			{hour(2), hour(5).Add(-5 * time.Minute), map[time.Time]int64{hour(1): 5}},
			{hour(6), hour(6), map[time.Time]int64{}},
		} {
			sums, next, err := s.MarkSums(ctx, clusters, c.since)
			if err != nil {
				t.Fatal(err)
			}
			got := map[time.Time]int64{}
			for _, m := range sums {
				got[m.Slot] = m.Count
			}
			if !reflect.DeepEqual(got, c.want) || !next.Equal(c.next) {
				t.Errorf("of %v since %v: %v, next %v; want %v, next %v", clusters, c.since, got, next, c.want, c.next)
			}
		}
	}
	const changed = "SELECT cluster, rule, slot FROM retrial.detections WHERE changed >= {since:UInt32}"
	for index, sql := range map[string]string{
		"by_changed": changed, "by_slot": "SELECT sum(count) FROM retrial.detections WHERE (cluster, rule, slot) IN (" + changed + ")",
	} {
		plan := s.Explain(t, sql, map[string]string{"since": fmt.Sprint(hour(2).Unix())})
		if !slices.Contains(plan, "Name: "+index) {
			t.Errorf("%s is not used:\n%s", index, strings.Join(plan, "\n"))
		}
	}
}

// TestPanes: counts by group and pane, and the requests of some panes.
func TestPanes(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := marked(t, "c")
	insert(t, s, "a", in)
	const every = 7 * time.Second
	type pane struct {
		key    uint64
		number int64
	}
	counts, totals := map[pane][2]int64{}, map[uint64][2]int64{}
	for _, r := range in {
		for _, m := range r.Marks {
			if m.Name == "often/1" || m.Name == "often/3" {
				p := pane{m.Key, r.Event.RequestReceivedTimestamp.UnixMicro() / every.Microseconds()}
				c, all := counts[p], totals[m.Key]
				c[0]++
				all[0]++
				if m.Name == "often/3" {
					c[1]++
					all[1]++
				}
				counts[p], totals[m.Key] = c, all
			}
		}
	}
	f := always("c", "often")
	f.Every = every
	byFilter, err := s.PaneCounts(ctx, []verdict.MarkFilter{f}, [][]verdict.Threshold{{{AtLeast: 5}, {AtLeast: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	got := byFilter[0]
	groups := 0
	for _, n := range totals {
		if n[0] >= 5 && n[1] >= 3 {
			groups++
		}
	}
	if len(got) != groups || groups == 0 {
		t.Fatalf("%d groups, want %d", len(got), groups)
	}
	some := map[pane]bool{}
	for _, g := range got {
		for i, n := range g.Panes {
			p := pane{g.Key, n}
			if w := counts[p]; !slices.Equal(g.Counts[i], w[:]) {
				t.Errorf("pane %+v has %v, want %v", p, g.Counts[i], w)
			}
			if i%2 == 0 {
				f.Panes = append(f.Panes, verdict.Pane{Key: g.Key, Number: n})
				some[p] = true
			}
		}
	}
	found, expected := 0, int64(0)
	for p := range some {
		expected += counts[p][0]
	}
	f.Reads = []string{"sourceIP", "verdict.grants"}
	if err := s.Marked(ctx, []verdict.MarkFilter{f}, func(r verdict.Row, _ []int) error {
		if found++; len(r.Event.RequestObject)+len(r.Event.ResponseObject) > 0 || r.Event.AuditID == "" || r.Verdict == nil {
			t.Errorf("row without its bodies is %+v", r)
		}
		return nil
	}); err != nil || int64(found) != expected {
		t.Errorf("%d requests of %d panes, %v; want %d", found, len(some), err, expected)
	}
}

// TestPaneValues: of values, each counts once, in a pane as in all, and every property can be
// counted.
func TestPaneValues(t *testing.T) {
	s := storagetest.Open(t)
	in := marked(t, "c")
	insert(t, s, "a", in)
	names, agents := map[uint64]map[string]bool{}, map[uint64]map[string]bool{}
	for _, r := range in {
		for _, m := range r.Marks {
			if m.Name != "often/1" && m.Name != "often/3" {
				continue
			}
			if names[m.Key] == nil {
				names[m.Key], agents[m.Key] = map[string]bool{}, map[string]bool{}
			}
			names[m.Key][r.Verdict.Attributes.Namespace+" "+r.Verdict.Attributes.Name] = true
			if m.Name == "often/3" {
				agents[m.Key][r.Event.UserAgent] = true
			}
		}
	}
	f := always("c", "often")
	f.Every = 7 * time.Second
	most := 0
	for _, n := range names {
		most = max(most, len(n))
	}
	for atLeast := 1; atLeast <= most+1; atLeast++ {
		want := map[uint64]bool{}
		for key := range names {
			if len(names[key]) >= atLeast && len(agents[key]) >= 1 {
				want[key] = true
			}
		}
		thresholds := []verdict.Threshold{{AtLeast: atLeast, Distinct: []string{"ns", "name"}},
			{AtLeast: 1, Distinct: []string{"userAgent"}}}
		got, err := s.PaneCounts(t.Context(), []verdict.MarkFilter{f}, [][]verdict.Threshold{thresholds})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range got[0] {
			if !want[g.Key] {
				t.Errorf("at least %d: group %d of %d values", atLeast, g.Key, len(names[g.Key]))
			}
			delete(want, g.Key)
		}
		if len(want) > 0 {
			t.Errorf("at least %d: %d groups are missing", atLeast, len(want))
		}
	}
	for _, v := range detect.Variables() {
		if !codec.Askable(v.Name) {
			t.Errorf("rows cannot be read for rules that ask about %s", v.Name)
		}
		if !codec.Countable(v.Name) {
			continue
		}
		if _, err := s.PaneCounts(t.Context(), []verdict.MarkFilter{f},
			[][]verdict.Threshold{{{AtLeast: 1, Distinct: []string{v.Name}}}}); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
	if _, err := s.PaneCounts(t.Context(), []verdict.MarkFilter{f},
		[][]verdict.Threshold{{{AtLeast: 1, Distinct: []string{"groups"}}}}); err == nil || !strings.Contains(err.Error(), `"groups"`) {
		t.Errorf("a list was counted: %v", err)
	}
}

// TestMarkedTogether: filters asked together select what each selects by itself, and every row
// comes once.
func TestMarkedTogether(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := marked(t, "c")
	insert(t, s, "a", in)
	insert(t, s, "other", marked(t, "d"))
	first, last := in[0].Event.RequestReceivedTimestamp, in[0].Event.RequestReceivedTimestamp
	for _, r := range in {
		at := r.Event.RequestReceivedTimestamp
		if at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	middle := first.Add(last.Sub(first) / 2)
	part := func(cluster, rule string, from, to time.Time) verdict.MarkFilter {
		return verdict.MarkFilter{Cluster: cluster, Rule: rule, From: from, To: to, Every: time.Minute}
	}
	filters := []verdict.MarkFilter{
		always("c", "created"), part("c", "often", first, middle), part("c", "often", middle, last), part("c", "often", first, last),
		part("c", "new", first, middle), part("d", "often", first, middle), part("d", "new", middle, last),
		always("c", "no such rule"),
	}
	pairs := []verdict.Threshold{{AtLeast: 1}, {AtLeast: 1, Distinct: []string{"name", "sourceIP"}}}
	thresholds := [][]verdict.Threshold{{{AtLeast: 2}}, pairs, pairs, pairs, {{AtLeast: 1}}, pairs, {{AtLeast: 1}}, {{AtLeast: 1}}}
	together, err := s.PaneCounts(ctx, filters, thresholds)
	if err != nil {
		t.Fatal(err)
	}
	for i := range filters {
		alone, err := s.PaneCounts(ctx, filters[i:i+1], thresholds[i:i+1])
		if err != nil {
			t.Fatal(err)
		}
		some := filters[i].Rule == "often"
		if got, want := paneTotals(together[i]), paneTotals(alone[0]); !reflect.DeepEqual(got, want) || len(want) == 0 && some {
			t.Errorf("filter %d: %d panes together, %d alone", i, len(got), len(want))
		}
	}
	for _, g := range together[2] {
		for _, n := range g.Panes {
			filters[2].Panes = append(filters[2].Panes, verdict.Pane{Key: g.Key, Number: n})
		}
	}
	key := func(r *verdict.Row) string { return r.Cluster + " " + r.EventKey.String() }
	got, rows := make([]map[string]bool, len(filters)), map[string]int{}
	if err := s.Marked(ctx, filters, func(r verdict.Row, selected []int) error {
		rows[key(&r)]++
		for _, i := range selected {
			if got[i] == nil {
				got[i] = map[string]bool{}
			}
			got[i][key(&r)] = true
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for row, n := range rows {
		if n != 1 {
			t.Errorf("row %s came %d times", row, n)
		}
	}
	for i := range filters {
		var alone map[string]bool
		if err := s.Marked(ctx, filters[i:i+1], func(r verdict.Row, _ []int) error {
			if alone == nil {
				alone = map[string]bool{}
			}
			alone[key(&r)] = true
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got[i], alone) || len(alone) == 0 && i < len(filters)-1 {
			t.Errorf("filter %d selects %d rows together, %d alone", i, len(got[i]), len(alone))
		}
	}
}

// paneTotals are counts by group and pane.
func paneTotals(groups []verdict.PaneCounts) map[verdict.Pane][]int64 {
	out := map[verdict.Pane][]int64{}
	for _, g := range groups {
		for i, n := range g.Panes {
			out[verdict.Pane{Key: g.Key, Number: n}] = g.Counts[i]
		}
	}
	return out
}

// TestFindingsAreKept: the newest version of each stands, withdrawn ones do not show.
func TestFindingsAreKept(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	at := func(n int) time.Time { return received.Add(time.Duration(n) * time.Microsecond) }
	f := verdict.StoredFinding{Cluster: "c '\\", Rule: "r", ID: "1", Severity: "high", Subject: "bob\t\n\x1b", AuditID: "x", First: at(1),
		Last: at(9), Count: 3,
		Span: received.Truncate(time.Hour), Body: []byte(`{"id":"1"}`), Updated: at(1)}
	more, other := f, f
	more.Count, more.Body, more.Updated = 4, []byte(`{"id":"1","count":4}`), at(2)
	other.ID, other.First, other.Updated = "2", at(2), at(2)
	for _, list := range [][]verdict.StoredFinding{{more, other}, {f}, {more}, nil} {
		if err := s.SaveFindings(ctx, list); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Findings(ctx, queries.FindingFilter{})
	if err != nil || !reflect.DeepEqual(got, []verdict.StoredFinding{other, more}) {
		t.Errorf("findings %+v, %v", got, err)
	}
	gone := more
	gone.Withdrawn, gone.Updated = true, at(3)
	if err := s.SaveFindings(ctx, []verdict.StoredFinding{gone}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Findings(ctx, queries.FindingFilter{Cluster: f.Cluster}); err != nil || len(got) != 1 || got[0].ID != "2" {
		t.Errorf("findings %+v, %v", got, err)
	}
	if got, err := s.FindingsOf(ctx, []string{f.Cluster}, []string{"r"}, []time.Time{f.Span}); err != nil || len(got) != 2 {
		t.Errorf("findings of the span %+v, %v", got, err)
	}
	if got, err := s.FindingCounts(ctx, queries.FindingFilter{}); err != nil ||
		!reflect.DeepEqual(got, []queries.RuleCount{{Rule: "r", Findings: 1}}) {
		t.Errorf("counts %+v, %v", got, err)
	}
	for name, filter := range map[string]queries.FindingFilter{
		"cluster": {Cluster: "d"}, "rule": {Rule: "x"}, "subject": {Subject: "eve"}, "severity": {Severities: []string{"low"}},
		"from": {From: at(10)}, "to": {To: at(2)}, "at": {At: at(1)}, "before": {Before: queries.CursorOfFinding(&other)},
	} {
		if got, err := s.Findings(ctx, filter); err != nil || len(got) != 0 {
			t.Errorf("%s: findings %+v, %v", name, got, err)
		}
	}
	done := verdict.SpanDone{Cluster: "c", Rule: "r", Span: f.Span, Digest: -7, Updated: at(1)}
	newer := done
	newer.Digest, newer.Updated = 8, at(2)
	if err := s.SaveSpansDone(ctx, []verdict.SpanDone{newer, done}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.SpansDone(ctx, nil); err != nil || !reflect.DeepEqual(got, []verdict.SpanDone{newer}) {
		t.Errorf("done %+v, %v", got, err)
	}
}
