package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/query"
)

// shownRequests reads how many requests the page says that its filters select.
const shownRequests = `Number((document.querySelector('#main').innerText.match(/([\d,]+) requests? ·/) ?? [])[1]?.` +
	`replaceAll(',', '') ?? NaN)`

// explore asks for requests as somebody at the page does, and compares what is shown with what the API answers.
func (w *web) explore(t *testing.T) {
	s, b := w.s, w.b
	list := s.ui + "#/explore?cluster=sample"
	counted := func(where string) int {
		var answer query.FacetsAnswer
		s.get(t, "facets?"+url.Values{"cluster": {"sample"}, "where": {where}, "keys": {"decision"}}.Encode(), &answer)
		return int(answer.Requests)
	}
	shows := func(t *testing.T, where string) {
		t.Helper()
		want := counted(where)
		if want == 0 {
			t.Fatalf("nothing in the sample is as %s", where)
		}
		b.until(t, fmt.Sprintf("it counts %d as of %s", want, where), settled+fmt.Sprintf(` && %s === %d`, shownRequests, want))
	}

	t.Run("field", func(t *testing.T) {
		b.load(t, list)
		b.until(t, "it is there", settled+` && document.querySelectorAll('[role=row]').length > 20`)
		b.do(t, `document.querySelector('[aria-label=Filters] input').focus()`)
		b.press(t, "deci")
		b.until(t, "the column is offered", `document.querySelector('[role=option][aria-selected=true]')?.innerText.includes('Decision')`)
		b.accessible(t, "completion")
		b.press(t, enterKey)
		b.press(t, "forb")
		b.until(t, "its value is chosen",
			`document.querySelector('[role=option][aria-selected=true]')?.innerText.includes('Decision is forbid')`)
		b.press(t, enterKey)
		b.at(t, "decision=forbid")
		shows(t, `["decision=forbid"]`)
		b.press(t, "search-")
		b.until(t, "names are offered", `[...document.querySelectorAll('[role=option]')].some(o => o.innerText.includes('Namespace'))`)
		b.shot(t, "explore-completion")
		b.do(t, `document.querySelector('[aria-label=Filters] input').select()`)
		b.press(t, "namespace^=search")
		b.press(t, enterKey)
		b.at(t, "namespace")
		shows(t, `["decision=forbid","namespace^=search"]`)
		if n := value[int](t, b, "rows of another decision", `[...document.querySelectorAll('[role=row] [data-decision]')].`+
			`filter(d => d.dataset.decision !== 'forbid').length`); n > 0 {
			t.Errorf("%d rows were not refused", n)
		}
	})
	t.Run("counts", func(t *testing.T) {
		b.load(t, list)
		b.until(t, "they are there", settled+` && document.querySelector('aside details a')`)
		b.click(t, "aside details a", "allowed")
		b.at(t, "decision=allow")
		shows(t, `["decision=allow"]`)
		b.click(t, "a[aria-label^='Turn round']", "is")
		b.at(t, "q=decision")
		shows(t, `["decision!=allow"]`)
		b.click(t, "#main a", "Clear all")
		shows(t, `[]`)
	})
	t.Run("columns and views", func(t *testing.T) {
		b.load(t, list+"&cols=time,subject,agent&verb=get")
		b.until(t, "the columns of the address", settled+` && [...document.querySelectorAll('[role=columnheader]')].`+
			`map(h => h.innerText).join() === 'Time,Subject,User agent'`)
		b.click(t, "button", "Views")
		b.until(t, "the menu is open", `document.querySelector('[popover]:popover-open input')`)
		b.do(t, `document.querySelector('[popover]:popover-open input').focus()`)
		b.press(t, "who reads")
		b.press(t, enterKey)
		b.until(t, "it is saved", `document.querySelector('[popover]:popover-open a')?.innerText === 'who reads'`)
		b.accessible(t, "views")
		b.load(t, list)
		b.until(t, "it is there", settled)
		b.click(t, "button", "Views")
		b.click(t, "[popover]:popover-open a", "who reads")
		b.at(t, "verb=get", "cols=")
	})
	t.Run("looks", func(t *testing.T) {
		b.looksGood(t, "explore-filtered", list+"&decision=forbid&q=namespace%5E%3Dsearch+verb%21%3Dwatch&split=subject")
		b.looksGood(t, "explore-empty", list+"&q=subject%3Dnobody")
	})
	b.blameless(t)
}

// live follows the newest requests while one arrives.
func (w *web) live(t *testing.T) {
	in, s, b := w.in, w.s, w.b
	b.load(t, s.ui+"#/explore?cluster=sample&live=on&q=subject%3Dnewcomer")
	b.until(t, "it waits", readsIn("#main", "No request so far"))
	line := strings.Split(strings.TrimSpace(string(sampleLines(t, 1))), "\n")[0]
	event := strings.NewReplacer(`"username":"`+between(line, `"username":"`, `"`)+`"`, `"username":"newcomer"`,
		between(line, `"auditID":"`, `"`), "11111111-2222-4333-8444-555555555555").Replace(line)
	in.run(t, "import", "--cluster", "sample", in.file(t, "more.jsonl", event+"\n")).ok(t)
	b.until(t, "it is shown as it comes", `[...document.querySelectorAll('[role=row]')].some(r => r.innerText.includes('newcomer'))`)
	b.blameless(t)
}

// between returns what stands between two texts.
func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}
