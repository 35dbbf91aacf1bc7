package main

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/retrial-io/retrial/query"
)

// changes holds the page of policy writes, and of what came of them, to what the store answers.
func (w *web) changes(t *testing.T) {
	s, b := w.s, w.b
	// In this half of a minute somebody deletes all bindings of a namespace.
	const from, to = "2026-11-20T11:38:00Z", "2026-11-20T11:38:30Z"
	page := s.ui + "#/changes?cluster=sample&from=" + from + "&to=" + to
	var writes query.PolicyChangesAnswer
	s.get(t, "policy-changes?limit=500&cluster=sample&from="+from+"&to="+to, &writes)
	if len(writes.Changes) == 0 || writes.More {
		t.Fatalf("%d writes, more: %t", len(writes.Changes), writes.More)
	}

	t.Run("who wrote what", func(t *testing.T) {
		b.load(t, page)
		n := len(writes.Changes)
		b.until(t, "the writes are counted", settled+" && "+readsIn("#main p", fmt.Sprintf("%d writes, the newest first", n)))
		changed := 0
		for i := range writes.Changes {
			if writes.Changes[i].Effect == query.EffectYes && writes.Changes[i].User == "kubernetes-admin" {
				changed++
			}
		}
		b.load(t, page+"&effect=yes&author=kubernetes-admin")
		b.until(t, "the filtered are counted", settled+" && "+readsIn("#main p", fmt.Sprintf("%d of %d writes", changed, n)))
	})
	var refusals query.RefusalsAnswer
	s.get(t, "refusals?limit=200&cluster=sample&from="+from+"&to="+to, &refusals)
	if len(refusals.Changes) == 0 {
		t.Fatal("no change made refusals")
	}
	worst := &refusals.Changes[0]
	var one query.PolicyChangesAnswer
	s.get(t, "policy-changes?cluster=sample&id="+url.QueryEscape(worst.Write.AuditID), &one)
	t.Run("what came of one", func(t *testing.T) {
		b.load(t, page)
		b.until(t, "the changes that made refusals are there", settled+" && "+
			fmt.Sprintf(`document.querySelectorAll('[aria-label="Refusals by change"] [data-index]').length === %d`, len(refusals.Changes)))
		b.click(t, `[aria-label="Refusals by change"] a`, worst.Write.Object)
		b.at(t, "id="+worst.Write.AuditID)
		b.until(t, "what it changed is there", settled+" && "+readsIn("#main section h3", "Access gained and lost"))
		counted := func(what string, want int) {
			t.Helper()
			js := fmt.Sprintf(`[...document.querySelectorAll('#main section')]`+
				`.find(s => s.querySelector(':scope > header h3')?.textContent === %s)`+
				`.querySelectorAll('a[data-row]').length`, quoteJS(what))
			if got := value[int](t, b, what, js); got != want {
				t.Errorf("%s: the page lists %d, the store %d", what, got, want)
			}
		}
		counted("Refused in the hour after", len(one.Detail.Refusals))
		counted("Asked for the first time in the hour after", len(one.Detail.FirstUses))
		// What is opened has the focus: its rows come next.
		b.press(t, "j")
		b.until(t, "the first refused row has the focus", `document.activeElement.matches('#main section a[data-row]') && `+
			`document.activeElement.textContent.includes(`+quoteJS(one.Detail.Refusals[0].Verb)+`)`)
		b.press(t, enterKey)
		b.at(t, "why=")
		b.until(t, "the refused request is there", settled+" && "+readsIn("dialog", "Request"))
	})
	t.Run("what if it were deleted", func(t *testing.T) {
		i := slices.IndexFunc(writes.Changes, func(c query.PolicyChange) bool { return c.Verb == "create" && c.AuditID != "" })
		if i < 0 {
			t.Fatal("nothing is created in this time")
		}
		b.load(t, page+"&id="+writes.Changes[i].AuditID)
		b.click(t, "#main li a", "What if it were deleted?")
		b.at(t, "#/whatif", "delete=")
		b.until(t, "it is answered, or said that it is gone", settled+" && ("+readsIn("#main h2", "What it would break")+" || "+
			readsIn("#main [role=alert]", "there is no")+")")
		b.excuse()
	})
	b.looksGood(t, "changes", page)
	b.looksGood(t, "change", page+"&id="+worst.Write.AuditID)
}
