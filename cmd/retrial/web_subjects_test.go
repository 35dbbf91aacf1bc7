package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/query"
)

// subjects holds the list of subjects to what the store answers.
func (w *web) subjects(t *testing.T) {
	s, b := w.s, w.b
	var uses struct{ Rows [][]any }
	s.get(t, "ask?cluster=sample&question=subjects", &uses)

	t.Run("who made requests", func(t *testing.T) {
		b.load(t, s.ui+"#/subjects?cluster=sample&system=yes&sort=requests")
		b.until(t, "the rights are weighed", settled+` && !document.querySelector('#main section header').innerText.includes('weighing')`)
		first := value[string](t, b, "the first row", `document.querySelector('#main [role=table] [data-index="0"]').innerText`)
		top := uses.Rows[0]
		if !strings.HasPrefix(first, top[0].(string)) || !strings.Contains(first, grouped(int64(top[1].(float64)))) {
			t.Errorf("the first row is %q, the store says %v", first, top)
		}
	})
	t.Run("dangerous and unused", func(t *testing.T) {
		var all query.DangersAnswer
		s.get(t, "dangers?cluster=sample&unused=true&includeSystem=true&limit=2000", &all)
		idle := map[string]bool{}
		for i := range all.Holders {
			name := strings.Split(all.Holders[i].Name, ":")
			idle[name[len(name)-1]] = true
		}
		b.load(t, s.ui+"#/subjects?cluster=sample")
		b.until(t, "the rights are weighed", settled+` && !document.querySelector('#main section header').innerText.includes('weighing')`)
		b.click(t, "#main li a", "Dangerous and unused")
		b.at(t, "show=idle")
		b.until(t, "the list is filtered", `document.querySelector('#main section header').innerText.includes(' of ')`)
		for _, name := range value[[]string](t, b, "names", `[...document.querySelectorAll('#main [role=row] a[data-row]')].map(a => `+
			`a.innerText.split(':').pop())`) {
			if !idle[name] {
				t.Errorf("%s is listed; by the store it holds nothing dangerous that it does not use", name)
			}
		}
	})
	t.Run("what suggestions come to", func(t *testing.T) {
		var all query.SuggestAnswer
		s.get(t, "suggest?"+with(w.span(t), "all", "true", "includeSystem", "true"), &all)
		before, after := 0, 0
		for i := range all.Suggestions {
			before += all.Suggestions[i].Excess.Before
			after += all.Suggestions[i].Excess.After
		}
		b.load(t, s.ui+"#/subjects?cluster=sample&system=yes&cols=subject,excess,after,kept,judged,change,proof,bindings&sort=excess")
		b.until(t, "they are summed up", settled+" && "+readsIn("#main section header",
			fmt.Sprintf("excess %s, %s if every suggestion were applied", grouped(int64(before)), grouped(int64(after)))))
		first := all.Suggestions[0]
		name := strings.TrimPrefix(first.Subject, "system:serviceaccount:")
		row := value[string](t, b, "its row", `[...document.querySelectorAll('#main [role=table] [data-index]')].`+
			`find(r => r.querySelector('a').innerText.endsWith(`+quoteJS(name)+`)).innerText`)
		if !strings.Contains(row, grouped(int64(first.Excess.Before))) || !strings.Contains(row, "holds") {
			t.Errorf("the row of %s is %q, want %+v", name, row, first.Excess)
		}
	})
	b.looksGood(t, "subjects", s.ui+"#/subjects?cluster=sample")
}
