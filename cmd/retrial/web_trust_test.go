package main

import (
	"fmt"
	"testing"

	"github.com/retrial-io/retrial/query"
)

// TestWebTrust holds the page that says how far the others can be relied on to what the store answers, and the new pages to
// hostile strings.
func TestWebTrust(t *testing.T) {
	s, b, next := webHostile(t, 3000)

	t.Run("figures", func(t *testing.T) {
		var sum query.OverviewAnswer
		s.get(t, "overview?"+sampleRange(t, s).Encode(), &sum)
		b.load(t, next+"#/trust?cluster=sample")
		b.until(t, "it is there", settled)
		for label, want := range map[string]string{"Drift": grouped(int64(sum.Totals.Drift)), "Missing events": "–", "Dead letters": "0"} {
			got := value[string](t, b, label, fmt.Sprintf(`[...document.querySelectorAll('#main li')]`+
				`.find(e => e.querySelector('span')?.innerText === %s).querySelector('b').innerText`, quoteJS(label)))
			if got != want {
				t.Errorf("%s: %s, want %s", label, got, want)
			}
		}
		for outcome, want := range map[string]uint64{"match": uint64(sum.Totals.Match), "not judged": uint64(sum.Totals.NotJudged)} {
			b.until(t, outcome, readsIn(`[role=table][aria-label=Verdicts] [role=row]`, outcome+grouped(int64(want))))
		}
	})
	t.Run("from here to the requests", func(t *testing.T) {
		b.click(t, `[role=table][aria-label=Verdicts] a`, "match")
		b.at(t, "#/explore", "outcome=match", "cluster=sample")
		b.until(t, "the list is there", settled+` && document.querySelectorAll('[role=row]').length > 20`)
	})
	t.Run("an old address", func(t *testing.T) {
		b.load(t, next+"#/verdicts?cluster=sample")
		b.at(t, "#/trust", "show=verdicts")
		b.until(t, "what the verdicts mean is on the screen", settled+` && (r => r.top >= 0 && r.top < innerHeight)(`+
			`[...document.querySelectorAll('h2')].find(e => e.innerText === 'What the verdicts mean').getBoundingClientRect())`)
	})
	b.looksGood(t, "trust", next+"#/trust?cluster=sample")

	t.Run("hostile strings", func(t *testing.T) {
		for _, page := range []string{"#/?", "#/explore?", "#/explore?cols=time,subject,request,class,authorizer,stage,id&", "#/trust?"} {
			b.load(t, next+page+"cluster=hostile")
			b.until(t, page+" is there", settled)
			b.accessible(t, page+" of hostile names")
		}
		b.load(t, next+"#/explore?cluster=hostile")
		b.until(t, "the list is there", settled)
		for _, h := range hostile {
			shown := h.shown
			if shown == "" {
				shown = h.raw
			}
			b.until(t, "a request of "+h.name, readsIn("[role=row] [href*='/subjects/']", shown))
		}
		if value[bool](t, b, "nothing ran", "'pwned' in window") {
			t.Error("a string became code")
		}
	})
	b.blameless(t)
}
