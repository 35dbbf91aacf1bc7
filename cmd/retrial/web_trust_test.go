package main

import (
	"fmt"
	"testing"

	"github.com/retrial-io/retrial/query"
)

// trust holds the page that says how far the others can be relied on to what the store answers.
func (w *web) trust(t *testing.T) {
	s, b := w.s, w.b

	t.Run("figures", func(t *testing.T) {
		var sum query.OverviewAnswer
		s.get(t, "overview?"+w.span(t).Encode(), &sum)
		b.load(t, s.ui+"#/trust?cluster=sample")
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
		b.load(t, s.ui+"#/verdicts?cluster=sample")
		b.at(t, "#/trust", "show=verdicts")
		b.until(t, "what the verdicts mean is on the screen", settled+` && (r => r.top >= 0 && r.top < innerHeight)(`+
			`[...document.querySelectorAll('h2')].find(e => e.innerText === 'What the verdicts mean').getBoundingClientRect())`)
	})
	b.looksGood(t, "trust", s.ui+"#/trust?cluster=sample")

	t.Run("an example of what does not match", func(t *testing.T) {
		b.load(t, s.ui+"#/trust?cluster=sample")
		b.until(t, "it is there, and moves no more", settled)
		b.click(t, "#main ul[aria-label^='Earliest of'] a", "")
		b.at(t, "why=")
		b.until(t, "the request", settled+" && "+readsIn("dialog[open] h3", "The replay decides"))
		b.press(t, escapeKey)
	})
	b.blameless(t)
}
