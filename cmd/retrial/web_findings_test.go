package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/query"
)

// findings holds the list of findings, its filters, and a finding with the requests behind it to what the store answers.
func (w *web) findings(t *testing.T) {
	s, b := w.s, w.b
	list := s.ui + "#/findings?cluster=sample"
	var all query.FindingsAnswer
	s.get(t, "findings?"+with(w.span(t), "limit", "500"), &all)
	var worst detect.Finding
	for _, raw := range all.Findings {
		var f detect.Finding
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatal(err)
		}
		if f.Severity == "critical" {
			worst = f
		}
	}
	if worst.ID == "" || len(all.Findings) == 500 {
		t.Fatalf("%d findings, the worst %q", len(all.Findings), worst.ID)
	}
	const rows = `[...document.querySelectorAll('[role=table][aria-label=Findings] [data-index]')]`

	t.Run("filters", func(t *testing.T) {
		b.load(t, list)
		b.until(t, "all are counted", settled+` && `+readsIn("#main", fmt.Sprintf("%d finding", len(all.Findings))))
		b.load(t, list+"&severity=high")
		b.until(t, "the worse ones", settled+` && `+rows+`.length > 0 && `+rows+`.every(r => /^(critical|high)/.test(r.innerText))`)
		b.load(t, list)
		b.until(t, "all again", settled)
		b.click(t, `[aria-label=Rules] a[href$="rule=pod-exec"]`, "")
		b.at(t, "rule=pod-exec")
		b.until(t, "one rule", settled+` && `+rows+`.length > 0 && `+
			`new Set(`+rows+`.map(r => r.querySelector('a span').innerText)).size === 1`)
		b.load(t, list+"&subject=nobody")
		b.until(t, "nobody", readsIn("#main", "No finding in this range matches these filters"))
		b.excuse() // an unknown subject is answered with those that are like it, or with 404
		b.load(t, list+"&from=2026-11-20T11:36:00.000Z&to=2026-11-20T11:36:00.001Z")
		b.until(t, "where nothing is found, it says what is looked for", readsIn("#main", "Nothing was found in this range")+
			` && document.querySelectorAll('[aria-label=Rules] [data-index]').length > 15 && `+readsIn("[aria-label=Rules]", "audit ID"))
	})
	t.Run("one", func(t *testing.T) {
		b.load(t, list+"&severity=critical")
		b.click(t, "[aria-label=Findings] a[href*='finding=']", worst.Title)
		b.at(t, "finding=")
		b.load(t, list+"&severity=critical&finding="+worst.ID+"&since="+worst.First.UTC().Format("2006-01-02T15:04:05.999999999Z"))
		b.until(t, "its link opens it", `document.querySelector('dialog[open] ol a') && document.activeElement.closest('dialog') && `+
			readsIn("dialog[open]", worst.ID))
		shown := b.look(`document.querySelector('dialog[open]').innerText`)
		for _, want := range []string{worst.Attack[0], worst.Rule, strings.TrimPrefix(worst.Subject, "system:serviceaccount:")} {
			if !strings.Contains(shown, want) {
				t.Errorf("the finding lacks %s: %s", want, shown)
			}
		}
		b.accessible(t, "a finding")
		b.shot(t, "finding")
		b.click(t, "dialog[open] ol a", "")
		b.at(t, "why=")
		b.until(t, "its request", settled+" && "+readsIn("dialog[open] h3", "The replay decides"))
		b.click(t, "dialog[open] header a", "Finding")
		b.until(t, "the finding again", `!location.hash.includes('why=') && document.querySelector('dialog[open] ol a')`)
		b.press(t, escapeKey)
		b.until(t, "it closes", `!document.querySelector('dialog[open]') && !location.hash.includes('finding=')`)
		b.run(t, "back", chromedp.NavigateBack())
		b.until(t, "it is open again", `document.querySelector('dialog[open] ol a')`)
		b.click(t, "dialog[open] dd a", "")
		b.until(t, "its subject", `!document.querySelector('dialog[open]') && location.hash.startsWith('#/subjects/') && `+settled)
		b.load(t, list+"&finding=00000000000000000000000000000000")
		b.until(t, "an unknown one", readsIn("dialog[open]", "has the ID 00000000000000000000000000000000"))
		b.press(t, escapeKey)
		b.blameless(t)
	})
	b.looksGood(t, "findings", list)
}
