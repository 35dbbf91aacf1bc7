package detect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

const liveRules = `
id: burst
title: Pods enumerated
description: Several pods were read.
severity: low
kind: window
match: {verbs: [get], resources: [pods]}
window: {length: 10m, every: 2m, fold: 20m}
counts: [{distinct: name, atLeast: 4}, {where: 'verdict.outcome == "drift"', atLeast: 1}]
---
id: drift
title: Drift
description: A drift.
severity: high
kind: event
match: {outcomes: [drift]}
---
id: fresh
title: Fresh
description: Something new.
severity: info
kind: first-seen
expr: 'verdict.outcome != "indeterminate"'
groupBy: [subject, name]
baseline: 8h
---
id: repeated
title: An audit ID twice
description: An audit ID was used again.
severity: medium
kind: window
groupBy: [auditID]
window: {length: 1h, every: 10m}
counts: [{distinct: requestKey, atLeast: 2}]
`

// history is what a simulated cluster did, and the rows that stand.
type history struct {
	t      *testing.T
	rng    *rand.Rand
	set    *Set
	tagger *Tagger
	rows   []verdict.Row
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	return newHistoryOf(t, seed, liveRules)
}

func newHistoryOf(t *testing.T, seed uint64, rules string) *history {
	t.Helper()
	var pairs []string
	for i, text := range splitDocuments(rules) {
		pairs = append(pairs, fmt.Sprintf("r%d.yaml", i), text)
	}
	set, err := Load(files(pairs...))
	if err != nil {
		t.Fatal(err)
	}
	return &history{t: t, rng: rand.New(rand.NewPCG(seed, 9)), set: set, tagger: NewTagger(set, func(rule string, err error) {
		t.Error(rule, err)
	})}
}

func splitDocuments(text string) (out []string) {
	doc := ""
	for line := range lines(text) {
		if line == "---" {
			out, doc = append(out, doc), ""
			continue
		}
		doc += line + "\n"
	}
	return append(out, doc)
}

func lines(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for from := 0; from < len(text); {
			to := from
			for to < len(text) && text[to] != '\n' {
				to++
			}
			if !yield(text[from:to]) {
				return
			}
			from = to + 1
		}
	}
}

// judge gives a row a random verdict, and its marks.
func (h *history) judge(r *verdict.Row) {
	storagetest.Verdict(r)
	switch h.rng.IntN(6) {
	case 0:
		r.Verdict.Outcome, r.Verdict.Class = verdict.OutcomeDrift, "recorded-allow/replayed-forbid"
	case 1:
		r.Verdict.Outcome = verdict.OutcomeIndeterminate
	}
	r.Marks = h.tagger.Tag(r.Cluster, r.Event, r.Verdict)
}

// request returns a request at a time, sometimes under an audit ID used before.
func (h *history) request(cluster string, n int) verdict.Row {
	h.t.Helper()
	e := podGet(fmt.Sprint("user", h.rng.IntN(4)), fmt.Sprint("pod", h.rng.IntN(12)), h.rng.IntN(20*3600))
	if h.rng.IntN(3) > 0 { // most events are clustered in time
		e.RequestReceivedTimestamp = t0.Add(time.Duration(h.rng.IntN(3))*9*time.Hour + time.Duration(h.rng.IntN(900_000))*time.Millisecond)
		e.StageTimestamp = e.RequestReceivedTimestamp
	}
	e.AuditID = fmt.Sprint("id", h.rng.IntN(200))
	row, err := storagetest.Row(cluster, event.AppendJSON(nil, e), event.Position{Epoch: 1, Offset: int64(n)}, t0.Add(100*time.Hour))
	if err != nil {
		h.t.Fatal(err)
	}
	h.judge(&row)
	return row
}

// block returns rows to insert: new requests in no order of time, and corrections of old ones. The
// rows that stand afterwards are in rows.
func (h *history) block() (out []verdict.Row) {
	for range 1 + h.rng.IntN(25) {
		row := h.request([]string{"prod", "test"}[h.rng.IntN(2)], len(h.rows))
		h.rows = append(h.rows, row)
		out = append(out, row)
	}
	before, corrected := len(h.rows)-len(out), map[int]bool{}
	for range h.rng.IntN(8) {
		i := h.rng.IntN(before + 1)
		if i == before || corrected[i] {
			continue
		}
		corrected[i] = true
		old := h.rows[i]
		old.Sign = -1
		fresh := h.rows[i]
		fresh.Revision++
		h.judge(&fresh)
		h.rows[i] = fresh
		out = append(out, old, fresh)
	}
	return out
}

// want returns what a detector finds in the rows that stand, by id.
func (h *history) want() map[string]Finding {
	out := map[string]Finding{}
	d := New(h.set, Config{})
	for _, r := range h.rows {
		d.Observe(r.Cluster, r.Event, r.Verdict)
	}
	for _, f := range d.Flush() {
		out[f.ID] = f
	}
	return out
}

// found returns what the store holds.
func found(t *testing.T, s *storage.Store) map[string]Finding {
	t.Helper()
	out := map[string]Finding{}
	f := queries.FindingFilter{Limit: 50}
	for {
		page, err := s.Findings(context.Background(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page {
			var x Finding
			if err := json.Unmarshal(row.Body, &x); err != nil {
				t.Fatal(err)
			}
			if _, twice := out[x.ID]; twice || x.ID != row.ID || !x.First.Equal(row.First) || x.Count != row.Count {
				t.Errorf("finding %+v is stored as %+v, or twice", x, row)
			}
			out[x.ID] = x
		}
		if len(page) < f.Limit {
			return out
		}
		f.Before = queries.CursorOfFinding(&page[len(page)-1])
	}
}

func same(t *testing.T, what string, got, want map[string]Finding) {
	t.Helper()
	rules := map[string]int{}
	for id, f := range want {
		rules[f.Rule]++
		g, ok := got[id]
		// What is not kept with the finding is not compared.
		for i := range f.Evidence {
			f.Evidence[i].subject, f.Evidence[i].user = "", ""
		}
		if !ok || !reflect.DeepEqual(g, f) {
			t.Errorf("%s: finding (there: %v)\n is  %+v\nwant %+v", what, ok, g, f)
		}
	}
	for id, f := range got {
		if _, ok := want[id]; !ok {
			t.Errorf("%s: should not be found: %+v", what, f)
		}
	}
	if len(rules) < 4 {
		t.Errorf("%s: findings by rule %v: some rule finds nothing, so nothing is shown of it", what, rules)
	}
}

// unreliable is a store that fails now and then, before or after it did the work.
type unreliable struct {
	*storage.Store
	rng *rand.Rand
}

var errUnreliable = errors.New("the store failed")

func (u unreliable) fails() bool { return u.rng != nil && u.rng.IntN(100) == 0 }

func (u unreliable) Marked(ctx context.Context, filters []verdict.MarkFilter, visit func(verdict.Row, []int) error) error {
	return u.Store.Marked(ctx, filters, func(r verdict.Row, selected []int) error {
		if u.fails() {
			return errUnreliable
		}
		return visit(r, selected)
	})
}

func (u unreliable) SaveFindings(ctx context.Context, list []verdict.StoredFinding) error {
	if u.fails() {
		return errUnreliable
	}
	if err := u.Store.SaveFindings(ctx, list); err != nil || u.fails() {
		return errors.Join(err, errUnreliable)
	}
	return nil
}

func (u unreliable) SaveSpansDone(ctx context.Context, list []verdict.SpanDone) error {
	if u.fails() {
		return errUnreliable
	}
	return u.Store.SaveSpansDone(ctx, list)
}

// TestLiveConverges lets requests arrive in any order, late, with corrections, while passes run,
// fail, end and restart under changing holders: the final findings equal those of a detector on the
// rows that stand, and those of a store filled at once.
func TestLiveConverges(t *testing.T) {
	withdrawn := 0
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := newHistory(t, seed)
			dir := t.TempDir()
			s, closeStore := storagetest.Start(t, dir)
			ctx := t.Context()
			clock := t0.Add(100 * time.Hour)
			blocks, rests, arrives := 0, 0, true
			insert := func() error {
				rows := h.block()
				blocks++
				for range 1 + h.rng.IntN(2) { // sent again under the same token
					if err := s.Insert(ctx, fmt.Sprint("block ", blocks), rows); err != nil {
						return err
					}
				}
				return nil
			}
			rest := func(context.Context) error {
				rests++
				if arrives && h.rng.IntN(2) == 0 { // in the middle of a pass
					clock = clock.Add(3 * time.Second)
					return insert()
				}
				return nil
			}
			holder := func(lateness time.Duration, faults bool) *Live {
				st := unreliable{Store: s}
				if faults {
					st.rng = h.rng
				}
				l, err := NewLive(h.set, st, LiveConfig{Lateness: lateness, Now: func() time.Time { return clock }, Rest: rest,
					Changes: func() uint64 { return s.Inserted() }})
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			first, second := holder(time.Minute, true), holder(time.Minute, true)
			pass := func(l *Live) (left int) {
				clock = clock.Add(time.Duration(h.rng.IntN(90)) * time.Second)
				p, err := l.Pass(ctx)
				if err != nil && !errors.Is(err, errUnreliable) {
					t.Fatal(err)
				}
				withdrawn += p.Withdrawn
				return p.Left
			}
			for range 16 {
				if err := insert(); err != nil {
					t.Fatal(err)
				}
				switch h.rng.IntN(8) {
				case 0: // a new process
					first = holder(time.Minute, true)
				case 1: // another holder
					first, second = second, first
				case 2: // the store is also another process's
					closeStore()
					s, closeStore = storagetest.Start(t, dir)
					first, second = holder(time.Minute, true), holder(time.Minute, true)
				case 3:
				default:
					pass(first)
				}
			}
			arrives = false
			last := holder(time.Minute, false)
			pass(last)
			clock = clock.Add(time.Hour) // it has been quiet
			if left := pass(last); left != 0 {
				t.Errorf("%d spans are left", left)
			}
			want := h.want()
			same(t, "as it went", found(t, s), want)
			clock = clock.Add(time.Hour)
			again := holder(0, false)
			if p, err := again.Pass(ctx); err != nil || p.Spans != 0 || p.Left != 0 {
				t.Errorf("a new process works out %+v, %v: all of it was done", p, err)
			}
			closeStore()

			s, closeStore = storagetest.Start(t, t.TempDir())
			defer func() { closeStore() }()
			if err := s.Insert(ctx, "all", h.rows); err != nil {
				t.Fatal(err)
			}
			pass(holder(0, false))
			same(t, "at once", found(t, s), want)
			if rests == 0 {
				t.Error("no pass rested between two pieces of work")
			}
		})
	}
	if withdrawn == 0 {
		t.Error("nothing was ever withdrawn")
	}
}

// TestLiveKeepsWhatRetentionTook: events expire, their findings stay, even if something late
// arrives for the same time.
func TestLiveKeepsWhatRetentionTook(t *testing.T) {
	h := newHistory(t, 1)
	engineNow := t0.Add(100 * time.Hour)
	s := storagetest.Open(t)
	ctx := t.Context()
	for range 30 {
		h.block()
	}
	if err := s.Insert(ctx, "all", h.rows); err != nil {
		t.Fatal(err)
	}
	l, err := NewLive(h.set, s, LiveConfig{Now: func() time.Time { return engineNow }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Pass(ctx); err != nil {
		t.Fatal(err)
	}
	want := found(t, s)
	if len(want) < 10 {
		t.Fatalf("%d findings", len(want))
	}
	if err := s.Retain(ctx, storage.Retention{EventDays: 1}); err != nil { // all of it is old by the clock
		t.Fatal(err)
	}
	late := h.request("prod", 10_000)
	late.Received = time.Now()
	for range 50 { // every time at which there was something
		r := h.request("prod", 10_001+h.rng.IntN(1<<20))
		r.Received = late.Received
		if err := s.Insert(ctx, fmt.Sprint("late ", r.Position.Offset), []verdict.Row{r}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := l.Pass(ctx)
	if err != nil || p.Spans == 0 {
		t.Fatalf("pass %+v, %v", p, err)
	}
	got := found(t, s)
	for id, f := range want {
		if got[id].Count < f.Count {
			t.Errorf("finding %+v became %+v", f, got[id])
		}
	}
}
