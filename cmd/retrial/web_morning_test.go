package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/query"
)

// counted returns how many requests of the sample conditions select, in a range; empty ends are open.
func (s *running) counted(t *testing.T, from, to string, where ...string) int64 {
	t.Helper()
	q := url.Values{"cluster": {"sample"}, "where": {quoteList(where)}, "keys": {"verb"}}
	for k, v := range map[string]string{"from": from, "to": to} {
		if v != "" {
			q.Set(k, v)
		}
	}
	var a query.FacetsAnswer
	s.get(t, "facets?"+q.Encode(), &a)
	return a.Requests
}

func quoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, v := range list {
		quoted[i] = quoteJS(v)
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

// conditions reads what an address of the requests' page selects, where no value has a space, and its range.
func conditions(t *testing.T, hash string) (from, to string, where []string) {
	t.Helper()
	_, search, _ := strings.Cut(hash, "?")
	params, err := url.ParseQuery(search)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"subject", "verb", "resource", "decision"} {
		if v := params.Get(key); v != "" {
			where = append(where, key+"="+v)
		}
	}
	return params.Get("from"), params.Get("to"), append(where, strings.Fields(params.Get("q"))...)
}

// firstOf selects the first row's link in a table.
func firstOf(table string) string {
	return fmt.Sprintf(`#main [role=table][aria-label=%s] a[data-row]`, quoteJS(table))
}

// reach goes by j to the first row of a table, and opens it.
func (b *browser) reach(t *testing.T, table string) {
	t.Helper()
	link := `document.querySelector(` + quoteJS(firstOf(table)) + `)`
	b.until(t, table+" is there", link)
	steps := value[int](t, b, table, `[...document.querySelectorAll('#main [data-row]')].indexOf(`+link+`) + 1`)
	for range steps {
		b.press(t, "j")
	}
	b.until(t, "the row has the focus", `document.activeElement === `+link)
	b.press(t, enterKey)
}

// today asks the first page what people ask in the morning: each answer is one key or click away, and is what other questions of
// the API say too.
func (w *web) today(t *testing.T) {
	s, b := w.s, w.b
	today := s.ui + "#/?cluster=sample"
	open := func(t *testing.T) {
		t.Helper()
		b.load(t, today)
		b.until(t, "it is there", settled+` && document.querySelectorAll('#main [role=table]').length >= 6`)
	}

	t.Run("what is new", func(t *testing.T) {
		open(t)
		b.until(t, "it says what it is compared with", readsIn("#main", "Compared with what is stored since"))
		link := `#main [role=table][aria-label="New accesses"] [role=cell]:nth-child(2) a`
		hash := value[string](t, b, "the first access", `document.querySelector(`+quoteJS(link)+`).getAttribute('href')`)
		since, until, where := conditions(t, hash)
		if n := s.counted(t, "", since, where...); n > 0 {
			t.Errorf("%v is called new; %d requests are from before %s", where, n, since)
		}
		n := s.counted(t, since, until, where...)
		b.click(t, link, "")
		b.at(t, "#/explore", "from=")
		b.until(t, "its requests are shown", settled+fmt.Sprintf(` && %s === %d`, shownRequests, n))
	})
	t.Run("who touched Secrets", func(t *testing.T) {
		open(t)
		n := s.counted(t, "", "", "resource=secrets", "subject!^=system:kube-", "subject!^=system:node:",
			"subject!^=system:serviceaccount:kube-", "subject!=system:apiserver")
		b.until(t, "they are counted", readsIn("#main li", "Requests for Secrets"+grouped(n)))
		b.click(t, "#main li a", "Requests for Secrets")
		b.at(t, "#/explore", "resource=secrets")
		b.until(t, "they are shown", settled+fmt.Sprintf(` && %s === %d`, shownRequests, n))
		open(t)
		b.reach(t, "Who touched Secrets")
		b.at(t, "#/explore", "subject=")
		subject := value[string](t, b, "subject", `new URLSearchParams(location.hash.split('?')[1]).get('subject')`)
		b.until(t, "its requests are shown", settled+fmt.Sprintf(` && %s === %d`, shownRequests,
			s.counted(t, "", "", "resource=secrets", "subject="+subject)))
	})
	t.Run("who holds the most dangerous right unused", func(t *testing.T) {
		var who query.WhoCanAnswer
		s.get(t, "who-can?"+url.Values{"cluster": {"sample"}, "verb": {"*"}, "resource": {"*.*"}}.Encode(), &who)
		var all query.DangersAnswer
		s.get(t, "dangers?cluster=sample&unused=true&limit=2000", &all)
		if len(all.Holders) == 0 {
			t.Fatal("the sample has nothing dangerous that is unused")
		}
		worst := all.Holders[0]
		open(t)
		b.until(t, "the worst is named", readsIn(`[role=table][aria-label="Dangerous and unused"] [data-index="0"]`, worst.Danger)+
			" && "+readsIn(`[role=table][aria-label="Dangerous and unused"] [data-index="0"]`, worst.Name))
		var admins []string
		for i := range who.Subjects {
			admins = append(admins, who.Subjects[i].Name)
		}
		if worst.Danger == "cluster-admin" && !slices.Contains(admins, worst.Name) {
			t.Errorf("%s is said to hold cluster-admin; by who-can only %v may do everything", worst.Name, admins)
		}
		b.reach(t, "Dangerous and unused")
		b.at(t, "#/subjects", "flag="+worst.Danger, "show=idle")
		b.until(t, "the subject is listed", settled+" && "+readsIn("#main [role=row] a[data-row]", worst.Name))
	})
	t.Run("who is refused, and why", func(t *testing.T) {
		var a query.RefusalsAnswer
		s.get(t, "refusals?cluster=sample&limit=1", &a)
		r := a.Refusals[0]
		open(t)
		b.until(t, "the cause is named", readsIn(`[role=table][aria-label=Refusals] [data-index="0"]`,
			strings.ReplaceAll(r.Cause, "-", " ")))
		b.reach(t, "Refusals")
		b.at(t, "#/explore", "subject="+url.QueryEscape(r.Subject), "decision="+r.Recorded)
		b.until(t, "its requests are shown", settled+fmt.Sprintf(` && %s === %d`, shownRequests, r.Requests))
		var why query.ExplainDenyAnswer
		s.get(t, "explain-deny?cluster=sample&auditID="+url.QueryEscape(r.AuditID), &why)
		if len(why.Requests) == 0 || len(why.Requests[0].Chain) == 0 {
			t.Errorf("%s was refused; no authorizer says so", r.AuditID)
		}
	})
	t.Run("which change made refusals", func(t *testing.T) {
		open(t)
		link := value[string](t, b, "the change",
			`document.querySelector(`+quoteJS(firstOf("Changes that made refusals"))+`).getAttribute('href')`)
		_, id, _ := strings.Cut(link, "id=")
		id, _ = url.QueryUnescape(id)
		var a query.PolicyChangesAnswer
		s.get(t, "policy-changes?cluster=sample&id="+url.QueryEscape(id), &a)
		if a.Detail == nil || len(a.Detail.Refusals) == 0 {
			t.Errorf("%s leads to a change that refused nothing in the hour after", link)
		}
	})
	t.Run("search completes", func(t *testing.T) {
		open(t)
		b.stroke(t, "/")
		b.until(t, "search is open", `document.activeElement?.getAttribute('role') === 'combobox'`)
		b.press(t, "payments-pr")
		b.until(t, "a namespace is offered", `[...document.querySelectorAll('[role=option]')].some(o => `+
			`o.innerText.includes('payments-prod') && o.innerText.includes('namespace'))`)
		b.accessible(t, "completion of the search")
		b.press(t, escapeKey)
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
