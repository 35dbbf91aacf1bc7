package main

import "testing"

// today holds what the first page is beside its answers, which TestWebMorning holds to the store.
func (w *web) today(t *testing.T) {
	s, b := w.s, w.b
	today := s.ui + "#/?cluster=sample"
	b.load(t, today)
	b.until(t, "it says what it is compared with", settled+" && "+readsIn("#main", "Compared with what is stored since"))

	t.Run("search completes", func(t *testing.T) {
		b.stroke(t, "/")
		b.until(t, "search is open", `document.activeElement?.getAttribute('role') === 'combobox'`)
		b.press(t, "payments-pr")
		b.until(t, "a namespace is offered", `[...document.querySelectorAll('[role=option]')].some(o => `+
			`o.innerText.includes('payments-prod') && o.innerText.includes('namespace'))`)
		b.accessible(t, "completion of the search")
		b.press(t, escapeKey)
		b.until(t, "search is closed", `!document.querySelector('dialog[open]')`)
		b.stroke(t, "/")
		b.until(t, "search is open again",
			`document.activeElement?.getAttribute('role') === 'combobox' && document.activeElement.value === ''`)
		b.press(t, "caro")
		b.until(t, "carol is offered", `document.querySelector('[role=option]')?.innerText.startsWith('carol')`)
		b.press(t, enterKey)
		b.at(t, "#/subjects/carol")
	})
	b.looksGood(t, "today", today)
}
