package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/retrial-io/retrial/query"
)

// with returns parameters with some more.
func with(q url.Values, more ...string) string {
	out := url.Values{}
	for k, v := range q {
		out[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		out.Set(more[i], more[i+1])
	}
	return out.Encode()
}

// subject holds the page of a subject to what the store answers: what it could and did, and the least it needs.
func (w *web) subject(t *testing.T) {
	s, b := w.s, w.b
	t.Run("what one could and did", func(t *testing.T) {
		var did query.Doings
		s.get(t, "subject?"+with(w.span(t), "subject", "carol"), &did)
		b.load(t, s.ui+"#/subjects/carol?cluster=sample&rows=all")
		b.until(t, "it is there", settled+` && document.querySelector('#main table tbody tr')`)
		b.until(t, "its requests are counted", readsIn("#main li", grouped(did.Requests)))
		for i := range did.Usage {
			u := &did.Usage[i]
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
	t.Run("its requests", func(t *testing.T) {
		b.load(t, s.ui+"#/subjects/carol?cluster=sample&show=used")
		b.until(t, "it is there", settled+` && document.querySelector('#main td a')`)
		b.click(t, "#main td a", "")
		b.at(t, "#/explore", "subject=carol", "verb=")
		b.until(t, "they are listed", settled+` && document.querySelectorAll('#main [role=row] [href*="why="]').length > 0`)
		b.blameless(t)
	})
	t.Run("the change", func(t *testing.T) {
		var all, best query.SuggestAnswer
		s.get(t, "suggest?"+with(w.span(t), "all", "true"), &all)
		user := ""
		for _, s := range all.Suggestions {
			if user == "" && s.Excess.Before > 0 && s.Size.Apply > 0 && s.Size.Remove > 0 && !strings.Contains(s.Subject, ":") {
				user = s.Subject
			}
		}
		if user == "" {
			t.Fatal("no user has a suggestion")
		}
		s.get(t, "suggest?"+with(w.span(t), "subject", user), &best)
		own := best.Suggestions[0]
		const text = `document.querySelector('#main section pre').textContent`
		b.load(t, s.ui+"#/subjects/"+user+"?cluster=sample")
		b.until(t, "what to apply", settled+" && "+text+`.includes('Role') && `+text+`.includes('# proof: holds')`)
		for _, want := range []string{"It rests on", "holds", own.Unused[0].Binding, "allowed requests asked again"} {
			if !value[bool](t, b, want, readsIn("#main section", want)) {
				t.Errorf("the suggestion does not tell %q", want)
			}
		}
		b.click(t, "#main a.button", "Remove")
		b.until(t, "the commands", `location.hash.includes('text=remove') && `+text+`.startsWith('kubectl ')`)
		if n := len(strings.Split(strings.TrimSpace(value[string](t, b, "commands", text)), "\n")); n != len(own.Remove) {
			t.Errorf("%d commands for %d removals", n, len(own.Remove))
		}
		b.click(t, "#main a.button", "Roll back")
		b.until(t, "the way back", `location.hash.includes('text=rollback') && `+text+`.includes('kind: ')`)
		b.run(t, "back", chromedp.NavigateBack())
		b.until(t, "the commands again", `location.hash.includes('text=remove') && `+text+`.startsWith('kubectl ')`)
		b.click(t, "#main section button", "Copy")
		b.until(t, "it is copied, or it is said that it may not be", readsIn("#main section button [role=status]", ""))
		saved := b.download(t, func() { b.click(t, "#main section button", "Save retrial-"+user+"-remove.sh") })
		if want := value[string](t, b, "text", text); saved["retrial-"+user+"-remove.sh"] != want {
			t.Errorf("saved %.300q, want %.300q", saved, want)
		}
		b.blameless(t)
	})
	t.Run("its credentials", func(t *testing.T) {
		granted := s.newest(t, url.Values{"decision": {"allow"}, "where": {`["credential^=JTI=","subject^=system:serviceaccount:"]`}})
		var why query.WhyAnswer
		s.get(t, "why?cluster=sample&auditID="+url.QueryEscape(granted.AuditID), &why)
		credential := why.Requests[0].Verdict.Credential
		b.load(t, s.ui+"#/subjects/"+url.PathEscape(granted.Subject)+"?cluster=sample")
		b.until(t, "they are listed", settled+" && "+readsIn("#main section li a", "JTI="))
		b.load(t, s.ui+"#/lineage?"+url.Values{"cluster": {"sample"}, "credential": {credential}}.Encode())
		b.at(t, "#/subjects?", "credential=")
		b.until(t, "the credential's life", settled+" && "+readsIn("dialog[open] li", "Issued")+" && "+
			readsIn("dialog[open] h2", credential)+" && "+
			readsIn("dialog[open] p a", strings.TrimPrefix(granted.Subject, "system:serviceaccount:")))
		b.accessible(t, "a credential")
		b.blameless(t)
	})
	t.Run("nobody", func(t *testing.T) {
		b.load(t, s.ui+"#/subjects/nobody-at-all?cluster=sample")
		b.until(t, "nobody is told as such", settled+" && "+readsIn("h1", "nobody-at-all")+" && "+
			`/no (stored )?request|Nothing is known/.test(document.querySelector('#main').innerText)`)
		b.excuse()
		b.blameless(t)
	})
	b.looksGood(t, "subject", s.ui+"#/subjects/carol?cluster=sample")
}
