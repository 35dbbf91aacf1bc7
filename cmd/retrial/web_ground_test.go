package main

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestWebGround uses what all new pages stand on: the frame, the keyboard, addresses, and how they look.
func TestWebGround(t *testing.T) {
	needPage(t)
	in := newInstall(t)
	s := in.serve(t, "--replay-hold", "200ms")
	b := openBrowser(t, s.ui)
	next := s.ui + "next/"

	t.Run("empty store", func(t *testing.T) {
		b.load(t, next)
		b.until(t, "it says what to do", readsIn("#main", "retrial connect NAME"))
		b.looksGood(t, "empty", next)
	})

	b.load(t, next)
	in.importSample(t, 3000)
	s.drained(t)
	b.until(t, "the page shows what arrived, by itself", settled+` && document.querySelector('#main h1').innerText === 'Today' && `+
		`location.hash.includes('cluster=sample')`)
	b.blameless(t)

	t.Run("keyboard", func(t *testing.T) { webKeyboard(t, b, next) })
	t.Run("addresses", func(t *testing.T) { webAddresses(t, b, next) })
	t.Run("looks", func(t *testing.T) {
		b.looksGood(t, "today", next+"#/?cluster=sample")
		b.looksGood(t, "explore", next+"#/explore?cluster=sample")
		b.looksGood(t, "unknown", next+"#/exlpore?cluster=sample")
	})
	t.Run("settings", func(t *testing.T) {
		b.load(t, next+"#/explore?cluster=sample")
		b.until(t, "it is there", settled)
		b.click(t, "header button[aria-label=Settings]", "")
		b.until(t, "the menu is open", `document.querySelector('[popover]:popover-open')`)
		b.click(t, "[popover] button", "Dark")
		b.until(t, "it is dark", `document.documentElement.dataset.theme === 'dark'`)
		b.accessible(t, "settings, dark")
		b.click(t, "[popover] button", "As the system")
		b.press(t, escapeKey)
		b.until(t, "the menu is closed", `!document.querySelector('[popover]:popover-open')`)
	})
	b.blameless(t)
}

func webKeyboard(t *testing.T, b *browser, next string) {
	b.load(t, next+"#/?cluster=sample")
	b.until(t, "it is there", settled)
	b.stroke(t, "/")
	b.until(t, "search is open", `document.activeElement?.getAttribute('role') === 'combobox'`)
	b.accessible(t, "search")
	b.press(t, "expl")
	b.press(t, enterKey)
	b.at(t, "#/explore", "cluster=sample")
	b.until(t, "the list is there", settled+` && document.querySelectorAll('[role=row]').length > 20`)
	b.press(t, "j")
	b.press(t, "j")
	b.until(t, "the second row has the focus", `[...document.querySelectorAll('[data-row]')].indexOf(document.activeElement) === 1`)
	b.press(t, "k")
	b.press(t, enterKey)
	b.at(t, "why=")
	b.until(t, "the drawer is open", `document.querySelector('dialog[open] dl, dialog[open] h3')`)
	b.accessible(t, "drawer")
	was := value[string](t, b, "address", "location.hash")
	b.press(t, "j")
	b.until(t, "the drawer shows the next", `location.hash !== `+quoteJS(was)+` && location.hash.includes('why=')`)
	b.press(t, escapeKey)
	b.until(t, "the drawer is closed", `!document.querySelector('dialog[open]') && !location.hash.includes('why=')`)
	b.stroke(t, "?")
	b.until(t, "help is open", `document.querySelector('dialog[open]')?.innerText.includes('Next row')`)
	b.accessible(t, "help")
	b.press(t, escapeKey)
	b.until(t, "help is closed", `!document.querySelector('dialog[open]')`)
	b.press(t, "g")
	b.press(t, "t")
	b.until(t, "the first page", `location.hash.startsWith('#/?')`)
	b.chord(t, "k")
	b.until(t, "search is open again", `document.activeElement?.getAttribute('role') === 'combobox'`)
	b.press(t, "0123456789ab")
	b.press(t, downKey)
	b.until(t, "an option is chosen", `document.querySelectorAll('[role=option]')[1].ariaSelected === 'true'`)
	b.press(t, escapeKey)
	b.blameless(t)
}

func webAddresses(t *testing.T, b *browser, next string) {
	for hash, says := range map[string]string{
		"#/exlpore?cluster=sample": "Unknown address", "#/a/b/c?cluster=sample": "Unknown address",
		"#/?cluster=%3Cb%3Enobody": "No such cluster", "#/explore?cluster=sample&outcome=nonsense": "want one of match, drift",
		"#/explore?cluster=sample&verb=nothing": "No request",
	} {
		b.load(t, next+hash)
		b.until(t, hash+" says "+says, readsIn("#main", says))
	}
	b.mu.Lock()
	b.faults = nil // a question that is refused is an error on the console
	b.mu.Unlock()
	for old, now := range map[string]string{
		"#/?cluster=sample&outcome=match&verb=get": "#/explore?cluster=sample&outcome=match&verb=get",
		"#/?cluster=sample&user=alice":             "#/explore?cluster=sample&subject=alice",
	} {
		b.load(t, next+old)
		b.until(t, old+" leads to "+now, `location.hash === `+quoteJS(now))
	}
	// What was chosen is in the address, and the way back leads back.
	b.load(t, next+"#/explore?cluster=sample")
	b.until(t, "it is there", settled)
	b.do(t, `document.querySelector('[aria-label=Filters] input').focus()`)
	b.press(t, "subject=alice")
	b.press(t, enterKey)
	b.at(t, "subject=alice")
	b.until(t, "the list is filtered", settled+` && `+
		`[...document.querySelectorAll('[role=row] [href*="/subjects/"]')].every(a => a.innerText === 'alice')`)
	b.run(t, "back", chromedp.NavigateBack())
	b.until(t, "it is as before", `!location.hash.includes('subject=') && `+
		`!document.querySelector('[aria-label="Filters in force"]')`)
	b.blameless(t)
}
