package completeness

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
)

// world is what apiservers did and what arrived of it: the truth that a report is checked against.
type world struct {
	samples  []queries.AuditSample
	events   []made
	unpaired []queries.Unpaired
	volume   []queries.Bucket
	letters  []queries.LetterCount
	usual    map[string]int64 // events of an apiserver in half an hour, of earlier days
}

// made is an event: when it was made and when it arrived, zero for never.
type made struct {
	server      string
	at, arrived time.Time
	source      string
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func (w *world) AuditSamples(_ context.Context, _ string, from, to time.Time) ([]queries.AuditSample, error) {
	var out []queries.AuditSample
	for _, s := range w.samples {
		if !s.Taken.Before(from) && s.Taken.Before(to) {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b queries.AuditSample) int { return strings.Compare(a.APIServer, b.APIServer) })
	return out, nil
}

func (w *world) Received(_ context.Context, _ string, cuts []time.Time) ([]queries.Received, error) {
	by := map[queries.Received]int64{}
	for _, e := range w.events {
		i, found := slices.BinarySearchFunc(cuts, e.at, time.Time.Compare)
		if !found {
			i--
		}
		if !e.arrived.IsZero() && i >= 0 && i < len(cuts)-1 {
			by[queries.Received{APIServer: e.server, Cut: cuts[i]}]++
		}
	}
	var out []queries.Received
	for k, n := range by {
		k.Events = n
		out = append(out, k)
	}
	return out, nil
}

func (w *world) FromLog(_ context.Context, _ string, cuts []time.Time) ([]queries.FromLog, error) {
	var out []queries.FromLog
	for i := range max(0, len(cuts)-1) {
		by := map[string]queries.FromLog{}
		for _, e := range w.events {
			if e.source == "log" && !e.arrived.IsZero() && !e.at.Before(cuts[i]) && e.at.Before(cuts[i+1]) {
				known := by[e.server]
				by[e.server] = queries.FromLog{APIServer: e.server, Cut: cuts[i], Events: known.Events + 1, Last: later(known.Last,
					e.arrived)}
			}
		}
		out = slices.AppendSeq(out, maps.Values(by))
	}
	return out, nil
}

func (w *world) Senders(_ context.Context, _ string, from, to time.Time) ([]queries.Sender, error) {
	by := map[string]*queries.Sender{}
	posts := map[string]bool{}
	for _, e := range w.events {
		if e.arrived.IsZero() || e.arrived.Before(from) || !e.arrived.Before(to) {
			continue
		}
		s := by[e.server]
		if s == nil {
			s = &queries.Sender{APIServer: e.server}
			by[e.server] = s
		}
		s.Events++
		if e.source == "log" {
			s.Log++
			continue
		}
		s.Webhook++
		if key := e.server + e.arrived.String(); !posts[key] {
			posts[key] = true
			s.Posts++
		}
		if s.First.IsZero() || e.arrived.Before(s.First) {
			s.First = e.arrived
		}
		if e.arrived.After(s.Last) {
			s.Last = e.arrived
		}
	}
	var out []queries.Sender
	for _, s := range by {
		out = append(out, *s)
	}
	return out, nil
}

func (w *world) Pauses(_ context.Context, _ string, from, to time.Time, arrivals bool, _ int) ([]queries.Pause, error) {
	times := map[string][]time.Time{}
	for _, e := range w.events {
		t := e.at
		if arrivals {
			t = e.arrived
		}
		if !e.arrived.IsZero() && !t.Before(from) && t.Before(to) && !(arrivals && e.source == "log") {
			times[e.server] = append(times[e.server], t)
		}
	}
	var out []queries.Pause
	for server, list := range times {
		slices.SortFunc(list, time.Time.Compare)
		for i := 1; i < len(list); i++ {
			out = append(out, queries.Pause{APIServer: server, Before: list[i-1], After: list[i]})
		}
	}
	slices.SortStableFunc(out, func(a, b queries.Pause) int {
		return int(b.After.Sub(b.Before) - a.After.Sub(a.Before))
	})
	return out, nil
}

func (w *world) Unpaired(context.Context, string, time.Time, time.Time, int) ([]queries.Unpaired, error) {
	return w.unpaired, nil
}

func (w *world) Volume(_ context.Context, _ string, from, to time.Time, step time.Duration) ([]queries.Bucket, error) {
	var out []queries.Bucket
	for _, b := range w.volume {
		if !b.Start.Before(from) && b.Start.Before(to) && (step == time.Hour) == (b.Outcome == "hour") {
			out = append(out, b)
		}
	}
	return out, nil
}

func (w *world) LetterCounts(_ context.Context, _ string, from, to time.Time) ([]queries.LetterCount, error) {
	var out []queries.LetterCount
	for _, l := range w.letters {
		if !l.Minute.Before(from) && l.Minute.Before(to) {
			out = append(out, l)
		}
	}
	return out, nil
}

func (w *world) ServerVolumes(_ context.Context, _ string, from, to time.Time) ([]queries.ServerVolume, error) {
	by := map[string]int64{}
	for _, e := range w.events {
		if !e.arrived.IsZero() && !e.at.Before(from) && e.at.Before(to) {
			by[e.server]++
		}
	}
	if to.Before(noon) {
		maps.Copy(by, w.usual)
	}
	var out []queries.ServerVolume
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, queries.ServerVolume{APIServer: name, Events: by[name]})
	}
	return out, nil
}

// apiserver makes events at a steady rate and posts them in batches; a test says what it loses, and
// counts as lost.
type apiserver struct {
	w       *world
	name    string
	started time.Time
	events  int64
	webhook int64
	buffer  int64
	log     int64
	edge    time.Duration // how uncertain the time of a reading is
}

// make makes events from one moment to another; lost ones never arrive.
func (a *apiserver) make(from, to, every float64, lost bool) {
	for t := from; t < to; t += every {
		e := made{server: a.name, at: at(t), arrived: at(float64(int(t/10)+1) * 10), source: "webhook"}
		if lost {
			e.arrived = time.Time{}
		}
		a.w.events = append(a.w.events, e)
		a.events++
	}
}

func (a *apiserver) read(t float64) {
	a.w.samples = append(a.w.samples, queries.AuditSample{
		Cluster: "c", APIServer: a.name, Taken: at(t), Earliest: at(t).Add(-a.edge), Latest: at(t).Add(a.edge), Started: a.started,
		Events: a.events, WebhookErrors: a.webhook, BufferErrors: a.buffer, LogErrors: a.log,
	})
}

// minutes makes and reads for some minutes.
func (a *apiserver) minutes(from, n int, lost bool) {
	for m := range n {
		t := float64(60 * (from + m))
		a.make(t+0.05, t+30, 0.1, lost)
		a.read(t + 30)
		a.make(t+30.05, t+60, 0.1, lost)
		a.read(t + 60)
	}
}

func check(t *testing.T, w *world, q Question) Report {
	t.Helper()
	q.Cluster = "c"
	if q.Now.IsZero() {
		q.Now = at(1200 + 150)
	}
	if q.From.IsZero() {
		q.From = at(-1)
	}
	r, err := Check(context.Background(), w, Config{}, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMeasured(t *testing.T) {
	type result struct {
		missing, most int64
		causes        string
		problems      string
	}
	for name, tc := range map[string]struct {
		build func(w *world, a *apiserver)
		want  result
		says  []string
	}{
		"complete": {func(_ *world, a *apiserver) { a.minutes(0, 20, false) }, result{}, nil},
		"a batch that cannot be encoded": {func(_ *world, a *apiserver) {
			a.minutes(0, 10, false)
			a.make(600.05, 620, 0.1, false)
			a.make(620.05, 625, 0.1, true)
			a.make(625.05, 660, 0.1, false)
			a.read(660)
			a.minutes(11, 1, false)
			a.webhook += 50
			a.minutes(12, 8, false)
		}, result{50, 50, CauseUnencodable, "fail missing"}, []string{"50 are missing", "12:10:19.950", "12:10:25.050", "one PATCH",
			"affecting 50 audit events"}},
		"an outage": {func(_ *world, a *apiserver) {
			a.minutes(0, 5, false)
			a.minutes(5, 3, true)
			a.webhook += 1000
			a.minutes(8, 1, false)
			a.webhook += 800
			a.minutes(9, 11, false)
		}, result{1800, 1800, CauseOutage, "fail missing"}, []string{"nothing arrived while it retried"}},
		"a full buffer": {func(_ *world, a *apiserver) {
			a.minutes(0, 5, false)
			a.make(300.05, 310, 0.1, true)
			a.buffer += 100
			a.make(310.05, 330, 0.1, false)
			a.read(330)
			a.minutes(6, 14, false)
		}, result{100, 100, CauseOverflow, "fail missing"}, []string{"--audit-webhook-batch-buffer-size"}},
		"lost behind the apiserver": {func(_ *world, a *apiserver) {
			a.minutes(0, 5, false)
			a.make(300.05, 310, 0.1, true)
			a.make(310.05, 330, 0.1, false)
			a.read(330)
			a.minutes(6, 14, false)
		}, result{100, 100, CauseUnexplained, "fail missing, fail unexplained"}, []string{"it counted no error"}},
		"came, and could not be read": {func(w *world, a *apiserver) {
			a.minutes(0, 5, false)
			a.make(300.05, 310, 0.1, true)
			w.letters = []queries.LetterCount{{Minute: at(300), Items: 60}, {Minute: at(360), Items: 40}, {Minute: at(-86400), Items: 7}}
			a.make(310.05, 330, 0.1, false)
			a.read(330)
			a.minutes(6, 14, false)
		}, result{100, 100, CauseDeadLetter, "fail missing, fail unexplained"}, []string{"dead letters arrived at the time",
			"100 of them arrived and could not be read"}},
		"some came, and could not be read": {func(w *world, a *apiserver) {
			a.minutes(0, 5, false)
			a.make(300.05, 310, 0.1, true)
			w.letters = []queries.LetterCount{{Minute: at(300), Items: 30}}
			a.make(310.05, 330, 0.1, false)
			a.read(330)
			a.minutes(6, 14, false)
		}, result{100, 100, CauseDeadLetter, "fail missing, fail unexplained, fail unexplained"}, []string{"30 of them arrived",
			"70 more are missing that apiserver api-1 did not report as dropped"}},
		"dropped, and something else could not be read": {func(w *world, a *apiserver) {
			a.minutes(0, 5, false)
			a.make(300.05, 310, 0.1, true)
			a.buffer += 100
			w.letters = []queries.LetterCount{{Minute: at(300), Items: 30}}
			a.make(310.05, 330, 0.1, false)
			a.read(330)
			a.minutes(6, 14, false)
		}, result{100, 100, CauseOverflow, "fail missing"}, nil},
		"dropped and recovered but one": {func(w *world, a *apiserver) {
			a.minutes(0, 5, false)
			n := len(w.events)
			a.make(300.05, 305, 0.1, true)
			for i := range w.events[n+1:] {
				w.events[n+1+i].arrived, w.events[n+1+i].source = at(900), "log"
			}
			a.log++
			a.make(305.05, 330, 0.1, false)
			a.read(330)
			a.webhook += 50
			a.minutes(6, 14, false)
		}, result{1, 1, CauseUnencodable, "note missing, note missing"}, []string{"1 is missing", "no backend has them",
			"dropped 50 events; at least 49",
			"one PATCH", "49 of the 50 came from a log, the last at 2026-11-20T12:15:00Z.",
			"The log backend could not write 1 of them either."}},
		"two batches dropped, one recovered": {func(w *world, a *apiserver) {
			a.minutes(0, 5, false)
			n := len(w.events)
			a.make(300.05, 305, 0.1, true)
			for i := range w.events[n:] {
				w.events[n+i].arrived, w.events[n+i].source = at(400), "log"
			}
			a.make(305.05, 330, 0.1, false)
			a.read(330)
			a.webhook += 50
			a.minutes(6, 7, false)
			a.make(780.05, 784, 0.1, true)
			a.make(784.05, 810, 0.1, false)
			a.read(810)
			a.webhook += 40
			a.minutes(14, 6, false)
		}, result{40, 40, CauseUnencodable, "fail missing, note missing"}, []string{"dropped 90 events; at least 50",
			"50 of the 50 came from a log, the last at 2026-11-20T12:06:40Z.", "None of the 40 came from a log."}},
		"a full buffer, recovered": {func(w *world, a *apiserver) {
			a.minutes(0, 5, false)
			n := len(w.events)
			a.make(300.05, 310, 0.1, true)
			for i := range w.events[n:] {
				w.events[n+i].arrived, w.events[n+i].source = at(345), "log"
			}
			a.buffer += 100
			a.make(310.05, 330, 0.1, false)
			a.read(330)
			a.minutes(6, 14, false)
		}, result{0, 0, "", "note missing"}, []string{"at least 100", "--audit-webhook-batch-buffer-size",
			"100 of the 100 came from a log, the last at 2026-11-20T12:05:45Z."}},
		"started anew in between": {func(_ *world, a *apiserver) {
			a.minutes(0, 5, false)
			a.started, a.events = at(330), 0
			a.minutes(6, 14, false)
		}, result{}, nil},
		"killed": {func(_ *world, a *apiserver) {
			a.minutes(0, 5, false)
			a.make(300.05, 310, 0.1, true)
			a.read(310)
			a.started, a.events = at(340), 0
			a.minutes(6, 14, false)
		}, result{100, 100, CauseRestart, "fail missing, fail unexplained"}, []string{"its process ended right after"}},
		"few are lost, between readings at uncertain times": {func(_ *world, a *apiserver) {
			a.edge = 3 * time.Second
			a.minutes(0, 5, false)
			for s := 300.0; s < 330; s += 5 { // fewer are lost between two readings than their times leave open
				lost := s >= 310 && s < 325
				a.make(s+0.05, s+5, 0.3, lost)
				a.make(s+0.15, s+5, 0.3, lost)
				a.make(s+0.25, s+5, 0.3, false)
				a.read(s + 5)
			}
			a.minutes(6, 1, false)
			a.webhook += 102
			a.minutes(7, 13, false)
		}, result{42, 162, CauseUnencodable, "fail missing"}, []string{"one PATCH"}},
		"killed, after a moment without requests": {func(_ *world, a *apiserver) {
			a.minutes(0, 5, false)
			a.make(300.05, 305, 0.1, true)
			a.read(305)
			a.read(306)
			a.make(306.05, 311, 0.1, true)
			a.read(311)
			a.started, a.events = at(340), 0
			a.minutes(6, 14, false)
		}, result{100, 100, CauseRestart, "fail missing, fail unexplained"}, []string{"its process ended right after"}},
		"nothing arrived at all": {func(_ *world, a *apiserver) { a.minutes(0, 20, true) },
			result{11700, 11700, CauseUnexplained, "fail missing, fail unexplained"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			a := &apiserver{w: w, name: "api-1", started: at(-1000), events: 77}
			tc.build(w, a)
			r := check(t, w, Question{})
			if len(r.Servers) != 1 || r.Servers[0].Measured == nil {
				t.Fatalf("%+v", r)
			}
			m := r.Servers[0].Measured
			var causes, problems []string
			for _, g := range m.Gaps {
				if g.Text == "" {
					t.Errorf("a gap without a text: %+v", g)
				}
				causes = append(causes, g.Cause)
			}
			text := ""
			for _, p := range r.Problems {
				problems = append(problems, p.Severity+" "+p.Kind)
				text += p.Text + "\n"
			}
			if got := (result{m.Missing, m.AtMost, strings.Join(causes, " "), strings.Join(problems, ", ")}); got != tc.want {
				t.Errorf("%+v\nwant %+v\n%s", got, tc.want, text)
			}
			for _, s := range tc.says {
				if !strings.Contains(text, s) {
					t.Errorf("%q is not in:\n%s", s, text)
				}
			}
		})
	}
}

// TestMeasuredBounds: whatever is lost, and however uncertain the times of readings are, the number
// missing lies between the bounds, and nothing is missing if nothing was lost.
func TestMeasuredBounds(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		w := &world{}
		var missing, sent int64
		a := &apiserver{w: w, name: "a", started: at(-100), edge: time.Duration(rnd.IntN(1000)) * time.Millisecond}
		a.events = int64(rnd.IntN(1000))
		a.read(0)
		for m := range 20 {
			if rnd.IntN(8) == 0 && m > 0 { // another process
				a.started, a.events = at(float64(60*m)+1), 0
			}
			lost := rnd.IntN(4) == 0
			n := len(w.events)
			from := float64(60*m) + 2
			a.make(from+rnd.Float64(), from+2+50*rnd.Float64(), 0.05+rnd.Float64(), lost)
			sent += int64(len(w.events) - n)
			if lost {
				missing += int64(len(w.events) - n)
			}
			a.read(float64(60*m) + 60)
		}
		r := check(t, w, Question{Now: at(1200 + 151)})
		m := r.Servers[0].Measured
		if m == nil || m.Sent != sent || m.Missing > missing || m.AtMost < missing {
			t.Fatalf("seed %d: %d of %d are missing; %+v", seed, missing, sent, m)
		}
		if a.edge < 500*time.Millisecond && (m.Missing != missing || m.AtMost != missing) {
			t.Errorf("seed %d: nothing happens at the edges, and still %d to %d for %d", seed, m.Missing, m.AtMost, missing)
		}
		inGaps := int64(0)
		for _, g := range m.Gaps {
			inGaps += g.Missing
		}
		if inGaps < m.Missing {
			t.Errorf("seed %d: %d missing, %d of them in gaps", seed, m.Missing, inGaps)
		}
	}
}

// TestServersApart: apiservers of one cluster are distinguished by the names their events arrive
// under; one without a name is compared if it is the only one.
func TestServersApart(t *testing.T) {
	w := &world{}
	one, two := &apiserver{w: w, name: "one", started: at(-9)}, &apiserver{w: w, name: "two", started: at(-9)}
	one.minutes(0, 20, false)
	two.minutes(0, 5, false)
	two.minutes(5, 1, true)
	two.minutes(6, 14, false)
	r := check(t, w, Question{Scraped: []string{"one", "two", "three"}})
	if len(r.Servers) != 3 || r.Servers[0].Measured.Missing != 0 || r.Servers[2].Measured.Missing != 600 {
		t.Errorf("%+v", r.Servers)
	}
	if p := r.Problems[0]; p.Kind != KindUnread || p.APIServer != "three" {
		t.Errorf("%+v", r.Problems)
	}
	unname := func(names ...string) {
		for i := range w.events {
			if slices.Contains(names, w.events[i].server) {
				w.events[i].server = ""
			}
		}
	}
	unname("two")
	r = check(t, w, Question{})
	if i := slices.IndexFunc(r.Servers, func(s Server) bool { return s.Name == "two" }); r.Servers[i].Measured == nil ||
		r.Servers[i].Measured.Missing != 600 {
		t.Errorf("one without a name: %+v", r.Servers)
	}
	unname("one")
	r = check(t, w, Question{})
	if !slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Kind == KindUnnamed && strings.Contains(p.Text, "2 apiservers") }) {
		t.Errorf("two without names: %+v", r.Problems)
	}
}

func TestSilence(t *testing.T) {
	w := &world{}
	one, two := &apiserver{w: w, name: "one"}, &apiserver{w: w, name: "two"}
	one.make(0, 1200, 1, false)
	two.make(0, 300, 1, false)
	r := check(t, w, Question{})
	if len(r.Problems) != 1 || r.Problems[0].Kind != KindSilent || r.Problems[0].APIServer != "two" || !r.Failed() {
		t.Errorf("%+v", r.Problems)
	}
	if s := r.Servers[1]; s.Silent != 1050 || r.Servers[0].Silent != 0 {
		t.Errorf("%+v", r.Servers)
	}
}

func TestPairs(t *testing.T) {
	half := func(server, verb, uri string, seconds float64, missing string) queries.Unpaired {
		return queries.Unpaired{APIServer: server, AuditID: uri, Verb: verb, URI: uri, Received: at(seconds), Missing: missing, Code: 200}
	}
	const end, begin = "ResponseComplete", "ResponseStarted"
	w := &world{unpaired: []queries.Unpaired{
		half("a", "watch", "/api/v1/pods?watch=1&timeoutSeconds=300", 0, end),    // overdue
		half("a", "watch", "/api/v1/pods?watch=1&timeoutSeconds=600", 1000, end), // open
		half("a", "watch", "/api/v1/pods?watch=1", 1000, end),                    // open
		half("a", "watch", "/api/v1/pods?watch=1", -3000, end),                   // overdue
		half("b", "watch", "/api/v1/pods?watch=1", 100, end),                     // stopped
		half("a", "create", "/api/v1/namespaces/x/pods/p/exec?command=sh", -9000, end),
		half("a", "get", "/api/v1/namespaces/x/pods/p/log?follow=true", -9000, end),
		half("a", "get", "/api/v1/namespaces/x/pods/p", -9000, end), // no answer
		half("a", "watch", "/api/v1/pods?watch=1", 10, begin),       // no start
	}}
	b := &apiserver{w: w, name: "b", started: at(-100)}
	b.read(0)
	b.started = at(500)
	b.read(530)
	r := check(t, w, Question{})
	if got, want := fmt.Sprint(r.Pairs.Open, r.Pairs.Stopped, r.Pairs.Overdue, r.Pairs.NoStart, r.Pairs.NoAnswer, len(r.Pairs.Examples)),
		"4 1 2 1 1 4"; got != want {
		t.Errorf("%s, want %s: %+v", got, want, r.Pairs)
	}
	// Where no beginning is recorded at all, none is missing.
	w.unpaired = w.unpaired[len(w.unpaired)-1:]
	if r = check(t, w, Question{}); r.Pairs.NoStart != 0 {
		t.Errorf("%+v", r.Pairs)
	}
}

// Letters do not say which apiserver they are of.
func TestDeadLettersOfSeveral(t *testing.T) {
	w := &world{letters: []queries.LetterCount{{Minute: at(300), Items: 500}}}
	for _, name := range []string{"api-1", "api-2"} {
		a := &apiserver{w: w, name: name, started: at(-1000)}
		a.minutes(0, 5, false)
		a.make(300.05, 310, 0.1, name == "api-2")
		a.make(310.05, 330, 0.1, false)
		a.read(330)
		a.minutes(6, 14, false)
	}
	r := check(t, w, Question{})
	if r.Servers[0].Measured.DeadLetters != 0 || r.Servers[1].Measured.DeadLetters != 100 {
		t.Errorf("%+v\n%+v", r.Servers[0].Measured, r.Servers[1].Measured)
	}
	if !slices.ContainsFunc(r.Problems, func(p Problem) bool {
		return p.APIServer == "api-2" && strings.Contains(p.Text, "Up to 100 of them may have arrived")
	}) {
		t.Errorf("%+v", r.Problems)
	}
}

// A drop of one apiserver among several is reported for that one, and does not show in the others.
func TestVolumeOfAnApiserver(t *testing.T) {
	const ordinary = 18000 // of ten a second in half an hour
	for name, tc := range map[string]struct {
		usual map[string]int64
		every map[string]float64 // seconds between events now
		drops string
	}{
		"as usual": {map[string]int64{"api-1": ordinary, "api-2": ordinary}, map[string]float64{"api-1": 0.1, "api-2": 0.1}, ""},
		"one drops": {map[string]int64{"api-1": ordinary, "api-2": ordinary}, map[string]float64{"api-1": 0.1, "api-2": 0.5},
			"api-2"},
		"one is new":        {map[string]int64{"api-1": ordinary}, map[string]float64{"api-1": 0.1, "api-2": 0.5}, ""},
		"only one there is": {map[string]int64{"api-1": ordinary}, map[string]float64{"api-1": 0.5}, ""},
		"few events":        {map[string]int64{"api-1": ordinary, "api-2": 200}, map[string]float64{"api-1": 0.1, "api-2": 60}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{usual: tc.usual}
			for server, every := range tc.every {
				(&apiserver{w: w, name: server, started: at(-1000)}).make(0, 1800, every, false)
			}
			r := check(t, w, Question{Now: at(1800 + 150)})
			var drops []string
			for _, p := range r.Problems {
				if p.Kind == KindVolume {
					drops = append(drops, p.APIServer)
				}
			}
			if strings.Join(drops, " ") != tc.drops {
				t.Errorf("drops of %v, want %q: %+v", drops, tc.drops, r.Problems)
			}
		})
	}
}

func TestVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		days  int
		now   int64 // events a minute
		usual func(at time.Time) int64
		want  string
		drop  bool
	}{
		"as usual":  {28, 100, func(time.Time) int64 { return 6000 }, "weekday and hour", false},
		"half gone": {28, 40, func(time.Time) int64 { return 6000 }, "weekday and hour", true},
		"quiet as every night": {28, 40, func(t time.Time) int64 { return map[bool]int64{true: 2400, false: 60000}[t.Hour() == 12] },
			"weekday and hour", false},
		"a week of history": {6, 40, func(time.Time) int64 { return 6000 }, "hour of the day", true},
		"a day of history":  {1, 40, func(time.Time) int64 { return 6000 }, "hour", true},
		"too few to tell":   {28, 1, func(time.Time) int64 { return 300 }, "weekday and hour", false},
		"once lower before": {28, 40, func(t time.Time) int64 { return map[bool]int64{true: 100, false: 6000}[t.YearDay()%28 == 2] },
			"weekday and hour", false},
		"new": {0, 40, nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			end := at(1200)
			for m := range 30 {
				w.volume = append(w.volume, queries.Bucket{Start: end.Add(-time.Duration(m+1) * time.Minute), Events: tc.now})
			}
			for h := range tc.days * 24 {
				start := noon.Add(-time.Duration(h+1) * time.Hour)
				w.volume = append(w.volume, queries.Bucket{Start: start, Outcome: "hour", Events: tc.usual(start)})
			}
			r := check(t, w, Question{})
			if r.Volume.By != tc.want || r.Volume.Hourly != 60*tc.now || (len(r.Problems) > 0) != tc.drop {
				t.Errorf("%+v %+v", r.Volume, r.Problems)
			}
		})
	}
}
