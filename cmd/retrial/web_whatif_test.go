package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/retrial-io/retrial/query"
)

// drafted asks the server what a draft would do, on the command line.
func (w *web) drafted(t *testing.T, args ...string) (a query.WhatIfAnswer) {
	t.Helper()
	out := w.in.run(t, append([]string{"whatif", "--cluster", "sample", "-o", "json"}, args...)...).ok(t).out
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// write writes a draft into the page's field, as pasting does.
func (b *browser) draft(t *testing.T, text string) {
	t.Helper()
	b.do(t, `const at = document.querySelector('#main textarea'); at.focus(); at.select(); `+
		`document.execCommand('insertText', false, `+quoteJS(text)+`)`)
	b.until(t, "the draft is there", `document.querySelector('#main textarea').value === `+quoteJS(text))
}

// whatif holds the page that says what a change would break to what the command says of the same, by the keyboard, by pasting and by
// dropping a file.
func (w *web) whatif(t *testing.T) {
	s, b := w.s, w.b
	const bound, page = "ClusterRoleBinding/a-bot1", "#/whatif?cluster=sample"
	const field = `[...document.querySelectorAll('#main label')].find(l => l.innerText === 'Objects to delete').control`
	tells := func(t *testing.T, a *query.WhatIfAnswer) {
		t.Helper()
		for label, n := range map[string]int64{"Would be refused": a.Summary.Revoked, "Would be allowed": a.Summary.Gained,
			"Unchanged": a.Summary.Unchanged} {
			b.until(t, label, settled+" && "+readsIn("#main li", label+grouped(n)))
		}
		if len(a.Accesses) > 0 {
			b.until(t, "they are listed", fmt.Sprintf(`document.querySelector('[role=table][aria-label="Accesses that change"]')`+
				`.ariaRowCount === '%d'`, min(len(a.Accesses), 12)+1))
		}
	}
	t.Run("the answer is what the document says", func(t *testing.T) {
		c := needContract(t)
		out := w.in.run(t, "whatif", "--cluster", "sample", "-o", "json", "-f", w.in.file(t, "admins.yaml", makesAdmin)).ok(t).out
		var answer object
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatal(err)
		}
		delete(answer, "kind") // of the command's own
		delete(answer, "apiVersion")
		differs := c.differs("whatif", c.answerOf(apiRoot+"whatif"), answer)
		for _, d := range differs[:min(len(differs), 5)] {
			t.Error(d)
		}
	})
	t.Run("by the keyboard", func(t *testing.T) {
		b.load(t, s.ui+page)
		b.until(t, "it is there", settled)
		b.do(t, field+`.focus()`)
		b.press(t, bound)
		b.press(t, enterKey)
		b.at(t, "delete=ClusterRoleBinding%2Fa-bot1")
		a := w.drafted(t, "--delete", bound)
		if a.Summary.Revoked == 0 || len(a.Accesses) == 0 {
			t.Fatalf("%+v", a.Summary)
		}
		tells(t, &a)
		b.until(t, "it is said in words", readsIn("#main li", fmt.Sprintf("%s accesses that were used would be refused: "+
			"%s requests of 1 subject", grouped(a.Summary.Revoked), grouped(a.Requests.Revoked))))
		b.until(t, "the most asked for is first", fmt.Sprintf(`document.querySelector('[role=table][aria-label="Accesses that change"] `+
			`[data-index="0"]').innerText.includes(%s)`, quoteJS(a.Accesses[0].Resource)))
		b.click(t, "#main [role=cell] a[aria-label]", "1")
		b.at(t, "why="+a.Accesses[0].Sample[0])
		b.until(t, "the request", `document.querySelector('dialog[open] dl')`)
		b.press(t, escapeKey)
		b.until(t, "it is closed", `!document.querySelector('dialog[open]')`)
		b.blameless(t)
	})
	t.Run("a draft that is pasted", func(t *testing.T) {
		a := w.drafted(t, "-f", w.in.file(t, "draft.yaml", makesAdmin))
		b.load(t, s.ui+page)
		b.until(t, "it is there", settled)
		b.draft(t, makesAdmin)
		b.click(t, "#main button", "Ask what it would break")
		b.at(t, "draft=")
		tells(t, &a)
		for what, text := range map[string]string{"notes": `did you mean "alice"?`, "ways": "+ opened", "possible": "+ gained"} {
			b.until(t, what, readsIn("#main section", text))
		}
		if a.Summary.Gained == 0 || strings.Contains(value[string](t, b, "address", "location.href"), "more-admins") {
			t.Errorf("%+v, or the draft is in the address", a.Summary)
		}
		b.load(t, value[string](t, b, "address", "location.href"))
		tells(t, &a)
		b.click(t, "#main li a", "Would be allowed")
		b.at(t, "class=GAINED")
		b.do(t, `sessionStorage.clear()`)
		b.load(t, value[string](t, b, "address", "location.href"))
		b.until(t, "the draft is missed", settled+" && "+readsIn("#main p", "in another tab"))
		b.blameless(t)
	})
	t.Run("a draft that is wrong", func(t *testing.T) {
		b.load(t, s.ui+page)
		b.until(t, "it is there", settled)
		b.draft(t, "# a role\n\nkind: ClusterRoel\n")
		b.click(t, "#main button", "Ask what it would break")
		b.until(t, "it is told at the field", readsIn("#main [role=alert]", "Line 3: kind \"ClusterRoel\" is none of")+
			` && document.querySelector('#main textarea').ariaInvalid === 'true'`)
		b.accessible(t, "a draft that is wrong")
		b.click(t, "#main button", "Go to line 3")
		b.until(t, "the line is chosen", `(at => document.activeElement === at && at.value.slice(at.selectionStart, at.selectionEnd) === `+
			`'kind: ClusterRoel')(document.querySelector('#main textarea'))`)
		b.click(t, "#main button", "Clear")
		b.do(t, field+`.focus()`)
		b.press(t, "ClusterRoleBinding/a-bot12")
		b.press(t, enterKey)
		b.until(t, "what is there is named", readsIn("#main [role=alert]", "did you mean"))
		b.excuse()
		b.blameless(t)
	})
	t.Run("a file that is dropped", func(t *testing.T) {
		b.do(t, `sessionStorage.clear()`)
		b.load(t, s.ui+page)
		b.until(t, "it is there", settled)
		b.do(t, `const files = new DataTransfer(); files.items.add(new File([`+quoteJS(makesAdmin)+`], 'admins.yaml')); `+
			`document.querySelector('#main form').dispatchEvent(`+
			`new DragEvent('drop', {dataTransfer: files, bubbles: true, cancelable: true}))`)
		b.until(t, "it is in the draft", readsIn("#main form button", "admins.yaml")+
			` && document.querySelector('#main textarea').value === `+quoteJS(makesAdmin))
		b.do(t, `document.querySelector('#main form button.primary').focus()`)
		b.press(t, enterKey)
		b.until(t, "it is told where", settled+" && "+readsIn("#main li", "admins.yaml:4"))
		b.do(t, `sessionStorage.clear()`)
		b.blameless(t)
	})
	t.Run("a suggestion", func(t *testing.T) {
		b.load(t, s.ui+"#/subjects/ci-bot?cluster=sample&range=15m")
		b.until(t, "it is there", settled)
		b.click(t, "#main a.button", "Try it in What if")
		b.at(t, "#/whatif", "draft=")
		b.until(t, "nothing of it is refused", settled+" && "+readsIn("#main li", "Nothing that was used would be refused"))
		b.run(t, "back", chromedp.NavigateBack())
		b.until(t, "the subject", settled+" && "+readsIn("h1", "ci-bot"))
		b.click(t, "#main [role=table][aria-label=Bindings] a", "deleted")
		b.at(t, "#/whatif", "delete=")
		b.until(t, "what its binding gave", settled+" && "+readsIn("#main h2", "What it would break"))
		b.blameless(t)
	})
	b.looksGood(t, "whatif", s.ui+page+"&delete="+bound)
}
