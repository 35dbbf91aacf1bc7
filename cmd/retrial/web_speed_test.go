package main

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"

	"github.com/retrial-io/retrial/query"
)

// What the pages may take. These are budgets that users feel, and of one machine: what is over one is measured again, and only what is over
// it three times fails, so that a machine that does something else for a moment does not.
const (
	paintBudget    = 500 // milliseconds to the first contentful paint, on loopback and with nothing cached
	reactionBudget = 100 // milliseconds from a key or a click to the frame that shows it, and of work at a stroke while scrolling
)

// within fails the test where a figure is over its budget three times.
func within(t *testing.T, what string, budget float64, measure func() float64) {
	t.Helper()
	var all []float64
	for range 3 {
		all = append(all, measure())
		if all[len(all)-1] <= budget {
			t.Logf("%s: %.0f ms", what, all)
			return
		}
	}
	t.Errorf("%s takes %.0f ms, and may take %.0f", what, all, budget)
}

// TestWebFirstPaint loads the first page, with nothing cached, and has the browser tell when something was seen: the median of five loads.
func TestWebFirstPaint(t *testing.T) {
	needPage(t)
	in := newInstall(t)
	server := in.serve(t, "--replay-hold", "200ms")
	in.importSample(t, 1000)
	server.drained(t)
	b, next := openBrowser(t, server.ui), server.ui
	b.run(t, "cache nothing", command(network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true}))
	for _, at := range []string{"", "#/explore?cluster=sample", "#/subjects?cluster=sample"} {
		within(t, "the first paint of "+next+at, paintBudget, func() float64 {
			var all []float64
			for range 5 {
				b.load(t, next+at)
				b.until(t, "something is painted", `performance.getEntriesByName('first-contentful-paint').length > 0`)
				all = append(all,
					value[float64](t, b, "first paint", `performance.getEntriesByName('first-contentful-paint')[0].startTime`))
			}
			slices.Sort(all)
			return all[len(all)/2]
		})
	}
	b.blameless(t)
}

// watched notes what keys, clicks and tasks of the page take, by the browser's own measure.
const watched = `window.slow = {events: [], tasks: []};
new PerformanceObserver(l => slow.events.push(...l.getEntries().map(e => e.duration))).observe({type: 'event', durationThreshold: 16});
new PerformanceObserver(l => slow.tasks.push(...l.getEntries().map(e => e.duration))).observe({type: 'longtask'});`

// slowest does something, waits until the page has shown it, and returns what took the page longest.
func (b *browser) slowest(t *testing.T, do func()) float64 {
	t.Helper()
	b.do(t, `slow.events.length = slow.tasks.length = 0`)
	do()
	// Entries come when the page is idle.
	return value[float64](t, b, "what took longest", `new Promise(done => requestIdleCallback(() => `+
		`setTimeout(() => done(Math.max(0, ...slow.events, ...slow.tasks))), {timeout: 2000}))`)
}

// TestWebMillionRows shows a million subjects, and holds what somebody does there to the budget.
func TestWebMillionRows(t *testing.T) {
	needPage(t)
	const many = 1_000_000
	rows := make([][]any, many)
	for i := range rows {
		rows[i] = []any{fmt.Sprintf("user-%07d", (i*7919)%many), i, i % 7, 1, "2026-11-20T11:36:00Z", "2026-11-20T11:44:00Z"}
	}
	s := openStub(t)
	s.all(map[string]any{
		"clusters": clustersAnswer(45),
		"status":   object{"version": "test", "lag": 0, "policyLag": 0, "corrections": 0},
		"ask":      object{"cluster": "sample", "question": "subjects", "columns": []string{}, "rows": rows},
		"suggest":  object{"cluster": "sample", "suggestions": []any{}, "unseen": []any{}},
		"dangers":  object{"cluster": "sample", "known": true, "missing": []any{}, "dangers": []any{}, "holders": []any{}},
	})
	b := openBrowser(t, s.url)
	b.run(t, "wheel over the table", command(input.DispatchMouseEvent,
		input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: 700, Y: 700}))
	b.load(t, s.url+"#/subjects?cluster=sample&sort=requests")
	row := func(n int) string {
		return fmt.Sprintf(`document.querySelector('[aria-label=Subjects] [aria-rowindex="%d"]')`, n+1)
	}
	sees := func(n int) string {
		return fmt.Sprintf(`(r => r && r.getBoundingClientRect().bottom > 0 && r.getBoundingClientRect().top < innerHeight)(%s)`, row(n))
	}
	b.until(t, "the subject with most requests is first", settled+` && `+row(1)+`.innerText.includes('999,999')`)
	b.do(t, watched)
	wheel := func(by float64, times int) {
		for range times {
			b.run(t, "wheel", command(input.DispatchMouseEvent, input.DispatchMouseEventParams{
				Type: input.DispatchMouseEventTypeMouseWheel, X: 700, Y: 700, DeltaX: 1e-9, DeltaY: by}))
		}
	}
	holds := func(what string, do func()) {
		within(t, what, reactionBudget, func() float64 { return b.slowest(t, do) })
	}
	holds("scrolling", func() { wheel(700, 30) })
	holds("going to the middle", func() {
		b.do(t, `scrollTo(0, document.documentElement.scrollHeight / 2)`)
		b.until(t, "the middle is there",
			`Math.abs(document.querySelectorAll('[aria-label=Subjects] [role=row]')[20].ariaRowIndex - 500000) < 2000`)
		wheel(-700, 10)
	})
	holds("going to the end", func() {
		b.do(t, `scrollTo(0, document.documentElement.scrollHeight)`)
		b.until(t, "the last row is there", sees(many))
	})
	holds("going to the beginning", func() {
		b.do(t, `scrollTo(0, 0)`)
		b.until(t, "the first row is there", row(1))
	})
	holds("j and k", func() {
		for _, key := range strings.Split("jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjkkkkkkkkkk", "") {
			b.stroke(t, key)
		}
	})
	b.until(t, "a row has the focus and is seen", `document.activeElement.closest('[role=row]').ariaRowIndex > 20 && `+
		`(r => r.top >= 0 && r.bottom <= innerHeight)(document.activeElement.getBoundingClientRect())`)
	holds("sorting", func() {
		b.click(t, "[role=columnheader] a", "Requests") // the other way round
		b.until(t, "the subject with fewest is first", `scrollTo(0, 0) || `+row(1)+`.innerText.includes('user-0000000')`)
		b.click(t, "[role=columnheader] a", "Requests")
		b.until(t, "the subject with most is first", `scrollTo(0, 0) || `+row(1)+`.innerText.includes('999,999')`)
	})
	holds("sorting texts", func() {
		b.click(t, "[role=columnheader] a", "Subject")
		b.until(t, "the names are in order",
			`scrollTo(0, 0) || (`+row(1)+`.innerText.includes('user-0000000') && `+row(2)+`.innerText.includes('user-0000001'))`)
		b.click(t, "[role=columnheader] a", "Requests")
		b.until(t, "the subject with most is first", `scrollTo(0, 0) || `+row(1)+`.innerText.includes('999,999')`)
	})
	b.blameless(t)
}

// askedOf is a question of a page, by the browser's own record: when it was asked and answered.
type askedOf struct {
	Path  string  `json:"path"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// recordOf returns what the page that is shown has loaded from below a path.
func (b *browser) recordOf(t *testing.T, below string) []askedOf {
	t.Helper()
	return value[[]askedOf](t, b, "what it asked", `performance.getEntriesByType('resource').filter(e => e.name.includes(`+quoteJS(below)+
		`)).map(e => ({path: decodeURIComponent(e.name.split(`+quoteJS(below)+`)[1]), start: e.startTime, end: e.responseEnd}))`)
}

// askedLate returns the questions of a page that were asked after another was answered, none if they need the answer. None is asked twice.
func (b *browser) askedLate(t *testing.T, at string, need bool) map[string]bool {
	t.Helper()
	seen, late, answered := map[string]bool{}, map[string]bool{}, math.Inf(1)
	asked := slices.DeleteFunc(b.recordOf(t, "/api/v1/"), func(q askedOf) bool {
		return q.Path == "status" || q.Path == "clusters"
	})
	for _, q := range asked {
		if seen[q.Path] {
			t.Errorf("%s asks twice for %s", at, q.Path)
		}
		seen[q.Path] = true
		answered = min(answered, q.End)
	}
	for _, q := range asked {
		if !need && q.Start > answered {
			late[q.Path] = true
		}
	}
	return late
}

// TestWebAsksOnce opens every page: what shows it is fetched while the first questions are asked, none of its questions is asked twice, and
// none waits for the answer to another that it does not need.
func TestWebAsksOnce(t *testing.T) {
	needPage(t)
	in := newInstall(t)
	server := in.serve(t, "--replay-hold", "200ms")
	in.importSample(t, 3000)
	server.drained(t)
	b := openBrowser(t, server.ui)
	var events query.EventsAnswer
	server.get(t, "events?cluster=sample&decision=forbid&limit=1", &events)
	subject, id := url.QueryEscape(events.Events[0].Subject), events.Events[0].AuditID
	for _, page := range []struct {
		at    string
		first string // the question that the others need the answer to
	}{
		{at: "/?"}, {at: "/explore?"}, {at: "/explore?decision=forbid&q=verb%21%3Dwatch&"}, {at: "/findings?"}, {at: "/subjects?"},
		{at: "/subjects/" + subject + "?"}, {at: "/access?verb=get&resource=secrets&"}, {at: "/access?subject=" + subject + "&"},
		{at: "/changes?"}, {at: "/trust?"}, {at: "/events/" + id + "?", first: "why"},
	} {
		var late map[string]bool
		for load := 0; load == 0 || len(late) > 0 && load < 3; load++ { // on a busy machine an answer may come before all are asked
			b.load(t, server.ui+"#"+page.at+"cluster=sample")
			b.until(t, page.at+" is there", settled)
			again := b.askedLate(t, page.at, page.first != "")
			if load > 0 {
				maps.DeleteFunc(again, func(path string, _ bool) bool { return !late[path] })
			}
			late = again
		}
		if len(late) > 0 {
			t.Errorf("%s asks after the answer to another question for %v", page.at, slices.Sorted(maps.Keys(late)))
		}
		clusters, script := b.recordOf(t, "/api/v1/clusters"), b.recordOf(t, "/assets/page-")
		if len(clusters) == 0 || len(script) == 0 || script[0].Start > clusters[0].End {
			t.Errorf("%s fetches its page after the clusters: %v, %v", page.at, script, clusters)
		}
	}
	b.blameless(t)
}
