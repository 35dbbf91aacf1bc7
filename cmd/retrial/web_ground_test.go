package main

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestWeb uses the pages as people do, in a real Chromium, and holds them to what the API answers, to hostile names, to axe and to the
// OpenAPI document. They share a server and a browser.
func TestWeb(t *testing.T) {
	w := openWeb(t, 20000)
	for _, part := range []struct {
		name string
		test func(*testing.T)
	}{
		{"contract", w.contract}, {"keyboard", w.keyboard}, {"addresses", w.addresses}, {"settings", w.settings}, {"today", w.today},
		{"explore", w.explore}, {"event", w.event}, {"findings", w.findings}, {"subjects", w.subjects}, {"subject", w.subject},
		{"access", w.access}, {"changes", w.changes}, {"whatif", w.whatif}, {"trust", w.trust}, {"hostile", w.hostile}, {"live", w.live},
	} {
		w.b.as(t, looks[0])
		t.Run(part.name, part.test)
		w.b.forget() // what it did is told already
	}
}

// TestWebEmpty opens the pages on a store without events, and stays while the first arrive, more arrive, and the server goes.
func TestWebEmpty(t *testing.T) {
	needPage(t)
	in := newInstall(t)
	s := in.serve(t, "--replay-hold", "200ms")
	b := openBrowser(t, s.ui)

	t.Run("nothing", func(t *testing.T) {
		for _, hash := range []string{"#/", "#/explore", "#/events/x", "#/findings?finding=x", "#/subjects", "#/subjects/alice",
			"#/access?verb=get&resource=secrets", "#/changes", "#/whatif?delete=Role/a/b", "#/trust"} {
			b.load(t, s.ui+hash)
			b.until(t, hash+" says what to do", readsIn("#main", "retrial connect NAME")+" && "+
				readsIn("#main", "retrial import --cluster NAME"))
		}
		b.looksGood(t, "empty", s.ui)
	})
	t.Run("a registered cluster", func(t *testing.T) {
		s.addCluster(t, "live")
		b.load(t, s.ui+"#/trust?cluster=live")
		b.until(t, "how far it is, and what to do", settled+` && document.querySelectorAll('#main ol > li').length === 7 && `+
			`document.querySelector('#main ol > li[data-state=done]').innerText.includes('registered') && `+
			readsIn("#main ol pre", "kube-apiserver"))
		b.holds(t, "connection")
	})
	b.blameless(t)

	b.load(t, s.ui)
	in.importSample(t, 3000)
	s.drained(t)
	b.until(t, "the page shows what arrived, by itself", settled+` && document.querySelector('#main h1').innerText === 'Today' && `+
		`location.hash.includes('cluster=sample')`)
	b.blameless(t)

	t.Run("arriving requests leave the reader's place alone", func(t *testing.T) {
		const first, news = `document.querySelector('#main [role=table][aria-label=Requests] a[data-row]')`, `header [role=status] button`
		b.load(t, s.ui+"#/explore?cluster=sample")
		b.until(t, "the list", settled+" && "+first)
		b.do(t, first+`.focus()`)
		reading := value[string](t, b, "the first row", first+`.getAttribute('href')`)
		more := sampleLines(t, 3500)[len(sampleLines(t, 3000)):]
		in.run(t, "import", "--cluster", "sample", in.file(t, "more.jsonl", string(more))).ok(t)
		b.until(t, "news waits", fmt.Sprintf(`document.querySelector(%s)?.innerText === 'Show what is new'`, quoteJS(news)))
		b.until(t, "the row and the focus stay",
			`document.activeElement === `+first+` && `+first+`.getAttribute('href') === `+quoteJS(reading))
		b.click(t, news, "Show what is new")
		b.until(t, "it is shown", settled+" && "+first+`.getAttribute('href') !== `+quoteJS(reading))
		b.blameless(t)
	})
	shown := value[int](t, b, "rows", `document.querySelectorAll('#main [role=row]').length`)
	s.stop(t)
	b.until(t, "a lost server is told", readsIn("header [role=status]", "Server not reached"))
	b.until(t, "what was shown stays", fmt.Sprintf(`document.querySelectorAll('#main [role=row]').length === %d`, shown))
}

func (w *web) settings(t *testing.T) {
	s, b := w.s, w.b
	b.load(t, s.ui+"#/explore?cluster=sample")
	b.until(t, "it is there", settled)
	b.click(t, "header button[aria-label=Settings]", "")
	b.until(t, "the menu is open", `document.querySelector('[popover]:popover-open')`)
	b.click(t, "[popover] button", "Dark")
	b.until(t, "it is dark", `document.documentElement.dataset.theme === 'dark'`)
	b.accessible(t, "settings, dark")
	b.click(t, "[popover] button", "As the system")
	b.press(t, escapeKey)
	b.until(t, "the menu is closed", `!document.querySelector('[popover]:popover-open')`)
	b.do(t, `const of = document.querySelector('header select'); of.value = 'hostile'; `+
		`of.dispatchEvent(new Event('change', {bubbles: true}))`)
	b.at(t, "#/explore", "cluster=hostile")
	b.until(t, "the other cluster's requests", settled+fmt.Sprintf(` && %s === %d`, shownRequests, len(hostile)+2))
	b.blameless(t)
}

func (w *web) keyboard(t *testing.T) {
	s, b := w.s, w.b
	b.load(t, s.ui+"#/?cluster=sample")
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
	b.until(t, "the second row has the focus", `[...document.querySelectorAll('#main [data-row]')].indexOf(document.activeElement) === 1`)
	rows := `[...document.querySelectorAll('#main [role=table] a[data-row]')]`
	b.do(t, rows+`[2].focus()`)
	b.press(t, "k")
	b.press(t, enterKey)
	b.at(t, "why=")
	b.until(t, "the drawer is open, and has the focus",
		`document.querySelector('dialog[open] dl') && document.activeElement.closest('dialog')`)
	b.accessible(t, "drawer")
	was := value[string](t, b, "address", "location.hash")
	b.press(t, "j")
	b.until(t, "the drawer shows the next", `location.hash !== `+quoteJS(was)+` && location.hash.includes('why=')`)
	b.press(t, escapeKey)
	b.until(t, "the drawer is closed", `!document.querySelector('dialog[open]') && !location.hash.includes('why=')`)
	b.until(t, "the focus comes back", rows+`.includes(document.activeElement)`)
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

func (w *web) addresses(t *testing.T) {
	s, b := w.s, w.b
	for hash, says := range map[string]string{
		"#/exlpore?cluster=sample": "Unknown address", "#/a/b/c?cluster=sample": "Unknown address",
		"#/?cluster=%3Cb%3Enobody": "No such cluster", "#/explore?cluster=sample&outcome=nonsense": "want one of match, drift",
		"#/explore?cluster=sample&verb=nothing": "No request", "#/events/nothing?cluster=sample": "No stored request",
		"#/explore?cluster=sample&from=x&to=y":                               "Over time",
		"#/subjects/nobody-at-all?cluster=sample":                            "nobody-at-all",
		"#/findings?cluster=sample&finding=00000000000000000000000000000000": "Findings",
		"#/access?cluster=sample&verb=get&resource=secrets&at=yesterday":     "want RFC 3339",
		"#/access?cluster=sample&verb=get":                                   "name either a resource or a path",
		"#/access?cluster=sample&verb=get&path=healthz":                      "must begin with a slash",
		"#/access?cluster=sample&verb=get&resource=a/b/c":                    "is not RESOURCE",
	} {
		b.load(t, s.ui+hash)
		b.until(t, hash+" says "+says, readsIn("#main", says))
	}
	b.forget() // a question that is refused is an error on the console, and none of the document's
	for old, now := range map[string]string{
		"#/?cluster=sample&outcome=match&verb=get":                   "#/explore?cluster=sample&outcome=match&verb=get",
		"#/?cluster=sample&user=alice":                               "#/explore?cluster=sample&subject=alice",
		"#/subject?cluster=sample&user=carol&range=15m":              "#/subjects/carol?cluster=sample&range=15m",
		"#/lineage?cluster=sample&subject=carol":                     "#/subjects/carol?cluster=sample",
		"#/verdicts?cluster=sample":                                  "#/trust?cluster=sample&show=verdicts",
		"#/access?cluster=sample&user=carol&at=2026-11-20T11:40:00Z": "#/access?cluster=sample&at=2026-11-20T11%3A40%3A00Z&subject=carol",
	} {
		b.load(t, s.ui+old)
		b.until(t, old+" leads to "+now, `location.hash === `+quoteJS(now))
	}
	// What was chosen is in the address, and the way back leads back.
	b.load(t, s.ui+"#/explore?cluster=sample")
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
	b.looksGood(t, "unknown", s.ui+"#/exlpore?cluster=sample")
}
