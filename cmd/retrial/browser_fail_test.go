package main

import (
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestBrowserFailures shows every page a server that fails, and one that recovers: what went
// wrong is said where it is missing, the rest stands, and asking again helps.
func TestBrowserFailures(t *testing.T) {
	needPage(t)
	s := openStub(t)
	b := openBrowser(t, s.url)
	good := answersOf([]string{"alpha", "beta", "gamma", "delta"})
	for route, answer := range good {
		s.set(route, answer)
	}
	for _, c := range []struct {
		name, hash, route string
		card              string // where it is said
		stands            string // what is there all the same; "" for nothing
		there             string // what is there after asking again
	}{
		{"what it did", "#/subject?cluster=sample&subject=alpha", "subject", "[aria-label='What it did']", ".rights", ".uses"},
		{"what it could", "#/subject?cluster=sample&subject=alpha", "can", "[aria-label='What it could']", ".uses", ".rights"},
		{"suggestion", "#/subject?cluster=sample&subject=alpha", "suggest", "[aria-label='The least it needs']", ".uses", ".blocks pre"},
		{"ranking", "#/subjects?cluster=sample", "suggest", "[aria-label='By excess']", "h1", ".ranking"},
		{"findings", "#/findings?cluster=sample", "findings", "[aria-label=Findings]", ".rules", ".findings"},
		{"rules", "#/findings?cluster=sample", "rules", "[aria-label='What the detections look for']", ".findings", ".rules"},
		{"findings on the first page", "#/?cluster=sample", "findings", "[aria-label=Findings]", "#requests",
			"[aria-label=Findings] table"},
		{"who can", "#/access?cluster=sample&verb=get&resource=secrets", "who-can", "#answer", "form.ask", ".holders"},
		{"can", "#/access?cluster=sample&subject=alpha", "can", "#answer", "form.ask", ".rights"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.set(c.route, "the store took too long; ask for a shorter range of time")
			b.load(t, s.url+c.hash)
			b.until(t, "it says so", readsIn(c.card+" [role=alert]", "the store took too long"))
			b.until(t, "the rest stands", `document.querySelector(`+quoteJS(c.stands)+`) && !document.querySelector('.loading')`)
			s.set(c.route, good[c.route])
			b.click(t, c.card+" button", "Try again")
			b.until(t, "it is there", `document.querySelector(`+quoteJS(c.there)+`) && !document.querySelector('.failed')`)
		})
	}
	t.Run("a finding", func(t *testing.T) {
		s.set("rules", "no rules today")
		b.load(t, s.url+"#/findings?cluster=sample&finding=00000000000000000000000000000000")
		b.until(t, "it says so", readsIn("#drawer [role=alert]", "no rules today"))
		s.set("rules", good["rules"])
		b.press(t, escapeKey)
		b.until(t, "it closes", `document.querySelector('#drawer').hidden && !location.hash.includes('finding=')`)
	})
	b.mu.Lock()
	b.faults = nil // a refused question is an error on the console, as it should be
	b.mu.Unlock()

	t.Run("a slow answer does not paint over a newer one", func(t *testing.T) {
		release := make(chan struct{})
		s.set("subject", func(q url.Values) any {
			if q.Get("subject") == "slow" {
				<-release
			}
			answer := object{}
			for k, v := range good["subject"].(object) {
				answer[k] = v
			}
			answer["groups"] = [][]string{{"group of " + q.Get("subject")}}
			return answer
		})
		b.load(t, s.url+"#/subject?cluster=sample&subject=slow")
		b.until(t, "the page waits", `document.querySelector('[aria-label="What it did"] .loading') && document.querySelector('.rights')`)
		b.do(t, `location.hash = '#/subject?cluster=sample&subject=quick'`)
		b.until(t, "the newer answer", readsIn("main", "group of quick"))
		close(release)
		b.run(t, "back", chromedp.NavigateBack())
		b.until(t, "the older one, asked for again", readsIn("main", "group of slow")+` && !`+readsIn("main", "group of quick"))
		s.set("subject", good["subject"])
	})
	t.Run("news wait for the reader", func(t *testing.T) {
		b.load(t, s.url+"#/subject?cluster=sample&subject=alpha")
		b.until(t, "the page", `document.querySelector('.uses') && document.querySelector('.blocks')`)
		b.do(t, `window.before = document.querySelector('.uses')`)
		s.set("clusters",
			object{"clusters": []any{object{"name": "sample", "events": 11, "first": "2026-11-20T11:36:00Z",
				"last": "2026-11-20T11:46:00Z"}}})
		b.until(t, "it says that there is news, and nothing moved", `document.querySelector('[aria-label="What it did"] .news') && `+
			`document.contains(window.before) && document.querySelector('#window').innerText.includes('11:46')`)
		b.click(t, "[aria-label='What it did'] .news", "Show")
		b.until(t, "they are shown", `!document.contains(window.before) && document.querySelector('.uses') && `+
			`!document.querySelector('[aria-label="What it did"] .news')`)
		if to := s.last("subject").Get("to"); to != "2026-11-20T11:46:00.000Z" {
			t.Errorf("asked until %s", to)
		}
	})
	b.blameless(t)
}
