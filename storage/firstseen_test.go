package storage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

const freshRule = `
id: fresh
title: Fresh
description: Something new.
severity: info
kind: first-seen
expr: 'verdict.outcome != "indeterminate"'
groupBy: [subject, name]
baseline: 8h
`

// freshSet has a first-seen rule, of subjects and names, and what marks rows by it.
func freshSet(t testing.TB) (*detect.Set, *detect.Tagger) {
	t.Helper()
	set, err := detect.Load(fstest.MapFS{"fresh.yaml": {Data: []byte(freshRule)}})
	if err != nil {
		t.Fatal(err)
	}
	return set, detect.NewTagger(set, func(rule string, err error) { t.Error(rule, err) })
}

// foundBy runs a pass over a store that has been quiet and returns what is found, as JSON by id.
func foundBy(t testing.TB, s *storage.Store, set *detect.Set, first verdict.FirstLimits, now time.Time) map[string]string {
	t.Helper()
	ctx := context.Background()
	l, err := detect.NewLive(set, s, detect.LiveConfig{Now: func() time.Time { return now }, First: first, Longest: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := l.Pass(ctx); err != nil || p.Left != 0 {
		t.Fatalf("pass %+v: %v", p, err)
	}
	out := map[string]string{}
	f := queries.FindingFilter{Limit: 1000}
	for {
		page, err := s.Findings(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page {
			out[row.ID] = string(row.Body)
		}
		if len(page) < f.Limit {
			return out
		}
		f.Before = queries.CursorOfFinding(&page[len(page)-1])
	}
}

// detected is what a detector finds in rows, as JSON by id.
func detected(t testing.TB, rows []verdict.Row, set *detect.Set, first verdict.FirstLimits) map[string]string {
	t.Helper()
	d := detect.New(set, detect.Config{First: first})
	for i := range rows {
		d.Observe(rows[i].Cluster, rows[i].Event, rows[i].Verdict)
	}
	out := map[string]string{}
	for _, f := range d.Flush() {
		body, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		out[f.ID] = string(body)
	}
	return out
}

// TestFirstSeenOfADay has days with more first-seen keys than are kept and told, in any order, with
// corrections, passes and restarts in between: what is found is what a detector finds in the rows that
// stand, and what a store finds that was filled at once. The keys that are kept have a bound.
func TestFirstSeenOfADay(t *testing.T) {
	const kept, keptOfAll = 6, 15
	first := verdict.FirstLimits{User: 4, Cluster: 9}
	set, tagger := freshSet(t)
	begin := time.Date(2026, 11, 20, 1, 0, 0, 0, time.UTC)
	now := begin.Add(1000 * time.Hour)
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			judge := func(r *verdict.Row) {
				storagetest.Verdict(r)
				if rng.IntN(4) == 0 {
					r.Verdict.Outcome = verdict.OutcomeIndeterminate
				}
				r.Marks = tagger.Tag(r.Cluster, r.Event, r.Verdict)
			}
			dir := t.TempDir()
			s, stop := storagetest.Start(t, dir)
			defer func() { stop() }()
			limit := func() { s.FoldFirstBeyond(kept, keptOfAll) }
			limit()
			ctx := context.Background()
			var stand []verdict.Row
			for block := range 8 {
				var in []verdict.Row
				for range 40 {
					n := len(stand)
					at := begin.Add(time.Duration(rng.IntN(75*3600*1000)) * time.Millisecond)
					r := requestRow(t, n, at, fmt.Sprint("user", rng.IntN(7)), "allow", "get",
						fmt.Sprintf("/api/v1/namespaces/n/pods/p%d", rng.IntN(60)))
					if rng.IntN(4) == 0 {
						r.Event.ImpersonatedUser = &event.User{Username: fmt.Sprint("made-up-", rng.IntN(30))}
					}
					judge(&r)
					stand, in = append(stand, r), append(in, r)
				}
				corrected := map[int]bool{}
				back := everything(t, s, stand[:len(stand)-len(in)])
				for range rng.IntN(12) {
					i := rng.IntN(len(stand) - len(in) + 1)
					if i == len(stand)-len(in) || corrected[i] {
						continue
					}
					corrected[i] = true
					stored := back[stand[i].EventKey]
					fresh := stored
					stored.Sign, fresh.Revision = -1, fresh.Revision+1
					judge(&fresh)
					in = append(in, stored, fresh)
					stand[i] = fresh
				}
				insert(t, s, fmt.Sprint("block ", block), in)
				switch rng.IntN(4) {
				case 0:
					foundBy(t, s, set, first, now)
				case 1:
					stop()
					s, stop = storagetest.Start(t, dir)
					limit()
				}
			}
			days := s.Strings(t, "SELECT toString(uniqExact(key)) FROM retrial.detections WHERE key > 1 AND 1 GROUP BY slot HAVING 1")
			if len(days) < 3 {
				t.Fatalf("keys of days: %q", days)
			}
			for _, n := range days {
				if len(n) > 1 && n > fmt.Sprint(keptOfAll) {
					t.Errorf("%s keys of a day are kept, want %d at most", n, keptOfAll)
				}
			}
			if folded, err := s.Folded(ctx, begin); err != nil || len(folded) != 1 || folded[0].Rule != "fresh" || folded[0].Requests == 0 {
				t.Errorf("folded %+v: %v", folded, err)
			}
			want := detected(t, stand, set, first)
			together := 0
			for _, body := range want {
				if strings.Contains(body, `"keys":`) {
					together++
				}
			}
			if together < 4 {
				t.Errorf("%d of %d findings are of several keys", together, len(want))
			}
			if got := foundBy(t, s, set, first, now); !reflect.DeepEqual(got, want) {
				differ(t, "as it went", got, want)
			}
			v := consistent(t, s)
			if err := s.Recover(ctx, 0, 1, nil); err != nil {
				t.Fatal(err)
			}
			if again := consistent(t, s); again != v {
				t.Fatalf("recovery changed the rollups\n was %+v\n is  %+v", v, again)
			}
			stop()
			s, stop = storagetest.Start(t, t.TempDir())
			limit()
			insert(t, s, "all", stand)
			if got := foundBy(t, s, set, first, now); !reflect.DeepEqual(got, want) {
				differ(t, "at once", got, want)
			}
		})
	}
}

func differ(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for id, body := range want {
		if got[id] != body {
			t.Errorf("%s: finding\n is  %s\nwant %s", what, got[id], body)
		}
	}
	for id, body := range got {
		if want[id] == "" {
			t.Errorf("%s: should not be found: %s", what, body)
		}
	}
}

// TestHolderOfEverything: who holds * asks for 100,000 resources, and acts as 100,000 users. Of either few
// rows are kept, few findings are made, and these say how much there is.
func TestHolderOfEverything(t *testing.T) {
	const many = 100_000
	s := storagetest.Open(t)
	set, tagger := freshSet(t)
	begin := time.Date(2026, 11, 20, 1, 0, 0, 0, time.UTC)
	line := requestRow(t, 0, begin, "mallory", "allow", "get", "/api/v1/namespaces/n/pods/x")
	n := 0
	send := func(name, as string) verdict.Row {
		n++
		r, e, v := line, *line.Event, *line.Verdict
		e.AuditID, e.RequestReceivedTimestamp = fmt.Sprint("id-", n), begin.Add(20*time.Hour+time.Duration(n)*time.Millisecond)
		v.Attributes.Name = name
		if as != "" {
			e.ImpersonatedUser = &event.User{Username: as}
		}
		r.Event, r.Verdict, r.Position.Offset = &e, &v, int64(n)
		r.Request = event.RequestKey(r.Cluster, &e)
		r.EventKey = event.EventKey(r.Request, &e)
		r.Marks = tagger.Tag(r.Cluster, r.Event, r.Verdict)
		return r
	}
	insert(t, s, "begin", []verdict.Row{line})
	for block := range 20 {
		var in []verdict.Row
		for i := range many / 10 {
			if block < 10 {
				in = append(in, send(fmt.Sprintf("x%d.example.com", block*many/10+i), ""))
			} else {
				in = append(in, send("x", fmt.Sprint("made-up-", (block-10)*many/10+i)))
			}
		}
		insert(t, s, fmt.Sprint("block ", block), in)
	}
	for table, most := range map[string]int{
		"detections FINAL WHERE rule = 'fresh'":     4096 + 2,
		"accesses FINAL WHERE subject = 'mallory'":  4096 + 512 + 1,
		"accesses FINAL WHERE 1":                    1<<16 + 4096 + 512 + 2,
		"group_sets FINAL WHERE 1":                  4,
		"activity FINAL WHERE subject != 'mallory'": 1<<16 + 1,
	} {
		if got := len(s.Strings(t, "SELECT 'row' FROM retrial."+table)); got > most {
			t.Errorf("%s: %d rows, want %d at most", table, got, most)
		}
	}
	found := foundBy(t, s, set, verdict.FirstLimits{}, begin.Add(1000*time.Hour))
	var rest detect.Finding
	for _, body := range found {
		var f detect.Finding
		if err := json.Unmarshal([]byte(body), &f); err != nil {
			t.Fatal(err)
		}
		if f.Keys > 0 {
			rest = f
		}
	}
	if len(found) != 64+1 || rest.Subject != "mallory" || rest.Keys != 2*many-64 || rest.Count != 2*many-64 || len(rest.Evidence) != 5 {
		t.Errorf("%d findings, the rest is %+v", len(found), rest)
	}
}
