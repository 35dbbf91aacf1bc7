package main

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/retrial-io/retrial/query"
)

// access holds the page that says who can to what the store answers, at two moments, by the keyboard alone.
func (w *web) access(t *testing.T) {
	s, b := w.s, w.b
	at := func(from string) (out map[string]bool) {
		var a query.WhoCanAnswer
		q := url.Values{"cluster": {"sample"}, "verb": {"list"}, "resource": {"secrets"}, "allNamespaces": {"true"}}
		if from != "" {
			q.Set("at", from)
		}
		s.get(t, "who-can?"+q.Encode(), &a)
		out = map[string]bool{}
		for i := range a.Subjects {
			h := &a.Subjects[i]
			out[h.Kind+"/"+h.Namespace+"/"+h.Name+" in "+h.Scope] = true
		}
		return out
	}
	rows := `document.querySelectorAll('[aria-label="Who can"][role=table] [data-index]').length`

	t.Run("by the keyboard", func(t *testing.T) {
		b.load(t, s.ui+"#/access?cluster=sample")
		b.until(t, "it is there", settled)
		b.do(t, `document.querySelector('form[aria-label="Who can"] input').focus()`)
		b.press(t, "list")
		b.press(t, "\t")
		b.press(t, "secrets")
		b.press(t, enterKey)
		b.at(t, "verb=list", "resource=secrets")
		now := at("")
		b.until(t, "the holders are there", fmt.Sprintf("%s && %s === %d", settled, rows, len(now)))
	})
	t.Run("two moments", func(t *testing.T) {
		const then = "2026-11-20T11:37:30Z"
		now, before := at(""), at(then)
		gained, lost := 0, 0
		for h := range now {
			if !before[h] {
				gained++
			}
		}
		for h := range before {
			if !now[h] {
				lost++
			}
		}
		b.load(t, s.ui+"#/access?cluster=sample&verb=list&resource=secrets&since="+then)
		words := fmt.Sprintf("Since then %d gained it and %d lost it", gained, lost)
		b.until(t, "the difference is there", settled+" && "+readsIn("#main p", words))
		b.until(t, "there are two handles", `document.querySelectorAll('#main input[type=range]').length === 2`)
		b.load(t, s.ui+"#/access?cluster=sample&since="+then)
		b.until(t, "everybody's difference is there", settled+" && "+readsIn("#main [role=table]", "gained"))
		b.accessible(t, "difference")
	})
	t.Run("what somebody can", func(t *testing.T) {
		var a query.CanAnswer
		s.get(t, "can?cluster=sample&subject=carol", &a)
		n := 0
		for i := range a.Scopes {
			n += len(a.Scopes[i].Rules)
		}
		b.load(t, s.ui+"#/access?cluster=sample&subject=carol")
		b.until(t, "its rules are counted", settled+" && "+readsIn("#main p", grouped(int64(n))+" rules"))
		b.accessible(t, "what somebody can")
	})
	t.Run("through one role", func(t *testing.T) {
		b.load(t, s.ui+"#/access?cluster=sample&verb=get&resource=secrets")
		b.until(t, "it is there", settled+" && "+rows+" > 3")
		n := value[int](t, b, "rows", rows)
		b.click(t, "#main [role=cell] li a", "ClusterRole/")
		b.at(t, "via=")
		b.until(t, "fewer can", fmt.Sprintf("%s > 0 && %s < %d", rows, rows, n))
		b.click(t, "#main a", "Only through")
		b.until(t, "all of them", fmt.Sprintf("!location.hash.includes('via=') && %s === %d", rows, n))
		b.click(t, `[aria-label="Who can"] a[data-row]`, "team:catalog")
		b.at(t, "subject=group")
		b.until(t, "what a group can", settled+" && "+readsIn("#main p", "to its groups"))
		b.click(t, "#main [role=cell] li a", "ClusterRole/")
		b.at(t, "verb=", "via=")
		b.until(t, "who else can by it", settled+" && "+rows+" > 0")
		b.blameless(t)
	})
	t.Run("as a member of other groups", func(t *testing.T) {
		var a query.CanAnswer
		s.get(t, "can?"+url.Values{"cluster": {"sample"}, "subject": {"carol"}, "group": {"system:masters"}}.Encode(), &a)
		if !a.Superuser {
			t.Fatal("a member of system:masters may not do everything")
		}
		b.load(t, s.ui+"#/access?cluster=sample&subject=carol&group=system:masters")
		b.until(t, "the groups are those that were asked", settled+" && "+readsIn("#main p", "It may do everything")+" && "+
			readsIn("#main p", "as asked"))
	})
	b.looksGood(t, "access", s.ui+"#/access?cluster=sample&verb=list&resource=secrets&since=2026-11-20T11:37:30Z")
	b.looksGood(t, "access-map", s.ui+"#/access?cluster=sample&verb=list&resource=secrets&view=map")
}
