package main

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/query"
)

// innocent fails the test where a hostile string became more than text.
func (b *browser) innocent(t *testing.T, what string) {
	t.Helper()
	if !value[bool](t, b, what, `!('pwned' in window) && document.querySelectorAll('#main :is(img, script, iframe, style)').length === 0`) {
		t.Errorf("%s: a string became markup or code", what)
	}
}

// TestWebSubjects holds the pages of subjects to what the store answers, to hostile names, and to axe.
func TestWebSubjects(t *testing.T) {
	s, b, next := webHostile(t, 20000)
	var uses struct{ Rows [][]any }
	s.get(t, "ask?cluster=sample&question=subjects", &uses)
	requests := map[string]float64{}
	for _, r := range uses.Rows {
		requests[r[0].(string)] = r[1].(float64)
	}

	t.Run("who made requests", func(t *testing.T) {
		b.load(t, next+"#/subjects?cluster=sample&system=yes&sort=requests")
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
		b.load(t, next+"#/subjects?cluster=sample")
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
	t.Run("what one could and did", func(t *testing.T) {
		var did struct {
			Usage []struct{ Verb, Group, Resource, Subresource, Path string }
		}
		s.get(t, "subject?cluster=sample&subject=carol", &did)
		b.load(t, next+"#/subjects/carol?cluster=sample&rows=all")
		b.until(t, "it is there", settled+` && document.querySelector('#main table tbody tr')`)
		b.until(t, "its requests are counted", readsIn("#main li", grouped(int64(requests["carol"]))))
		for _, u := range did.Usage {
			what := u.Resource
			if u.Group != "" {
				what += "." + u.Group
			}
			if u.Subresource != "" {
				what += "/" + u.Subresource
			}
			if u.Path == "" && !value[bool](t, b, what, readsIn("#main table tbody th", what)) {
				t.Errorf("it asked for %s, which is in no row", what)
			}
		}
		b.until(t, "the suggestion is there", `document.querySelector('#main pre')`)
		var one struct{ Texts query.SuggestTexts }
		s.get(t, "suggest?cluster=sample&subject=carol", &one)
		if got := value[string](t, b, "the text", `document.querySelector('#main pre').textContent`); got != one.Texts.Apply {
			t.Errorf("the page shows %.200q, the server wrote %.200q", got, one.Texts.Apply)
		}
	})
	t.Run("hostile", func(t *testing.T) {
		b.load(t, next+"#/subjects?cluster=hostile&system=yes")
		b.until(t, "it is there", settled)
		for _, h := range hostile {
			b.until(t, h.name, readsIn("#main [role=row]", h.read()))
		}
		b.innocent(t, "subjects")
		b.accessible(t, "subjects of hostile names")
		for _, h := range hostile[:min(4, len(hostile))] {
			b.load(t, next+"#/subjects/"+url.PathEscape(h.raw)+"?cluster=hostile")
			b.until(t, h.name+" is there", settled)
			b.innocent(t, h.name)
		}
		b.mu.Lock()
		b.faults = slices.DeleteFunc(b.faults, func(f string) bool { return strings.Contains(f, "404") || strings.Contains(f, "400") })
		b.mu.Unlock()
	})
	b.looksGood(t, "subjects", next+"#/subjects?cluster=sample")
	b.looksGood(t, "subject", next+"#/subjects/carol?cluster=sample")
}
