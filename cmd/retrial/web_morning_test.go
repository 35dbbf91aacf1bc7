package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWebMorning asks the first page what people ask in the morning, of two recordings, with a mouse and with the keyboard alone: every
// answer is at most three steps away, and is what the rows of the store say in plain SQL.
func TestWebMorning(t *testing.T) {
	needPage(t)
	in := newInstall(t)
	s, address := in.serveSQL(t, "--replay-hold", "200ms")
	in.importSample(t, 12000)
	second, err := filepath.Abs(filepath.Join("testdata", "second", "audit.jsonl.zst"))
	if err != nil {
		t.Fatal(err)
	}
	in.run(t, "import", "--cluster", "second", second).ok(t)
	s.drained(t)
	db := driver(t, address, sqlPassword, nil)
	b := openBrowser(t, s.ui)
	b.load(t, s.ui+"#/explore?cluster=sample")
	b.until(t, "the pages are there", settled)
	for _, cluster := range []string{"sample", "second"} {
		for _, by := range []string{"mouse", "keyboard"} {
			for _, q := range mornings {
				t.Run(cluster+"/"+by+"/"+q.name, func(t *testing.T) {
					b.visit(t, "#/?cluster="+cluster)
					b.until(t, "the first page is there", `document.querySelector('#main h1').innerText === 'Today' && `+
						`document.querySelectorAll('#main [role=table]').length >= 6`)
					h := &hand{browser: b, keys: by == "keyboard"}
					q.ask(t, h, rows{db, cluster})
					if h.steps > 3 {
						t.Errorf("it took %d steps", h.steps)
					}
				})
			}
		}
	}
	b.blameless(t)
}

// mornings are the questions.
var mornings = []struct { //nolint:gochecknoglobals // constant table
	name string
	ask  func(*testing.T, *hand, rows)
}{
	{"what is new since yesterday", newSinceYesterday},
	{"who touched Secrets", touchedSecrets},
	{"which service account holds cluster-admin and does not use it", idleAdmins},
	{"what broke after a role change", brokeAfterChange},
	{"who is refused and why", refusedAndWhy},
	{"what a role change would break", wouldBreak},
}

func newSinceYesterday(t *testing.T, h *hand, r rows) {
	const first = `document.querySelector('#main [role=table][aria-label="New accesses"] [role=cell]:nth-child(2) a')`
	h.until(t, "something is new", first)
	in := parameters(t, value[string](t, h.browser, "a new access", first+`.getAttribute('href')`))
	const what = "subject, attr_verb, attr_api_group, attr_resource, attr_subresource, attr_namespace, access_name, access_path"
	want := r.counts(t, "SELECT subject, toInt64(count()) FROM (SELECT "+what+", min(request_received) AS first FROM "+judgedRows+
		" WHERE {foreign} AND access_name != '(other)' AND access_path != '(other)' GROUP BY "+what+") WHERE first >= "+
		momentSQL(in.Get("from"))+" AND first < "+momentSQL(in.Get("to"))+" GROUP BY subject")
	h.figure(t, "New accesses", grouped(sumOf(want)))
	h.follow(t, "all that is new", `[...document.querySelectorAll('#main li a')].find(a => a.innerText.includes('New accesses'))`)
	h.until(t, "all are listed",
		fmt.Sprintf(`document.querySelector('[role=table][aria-label="New accesses"]').ariaRowCount === '%d'`, len(want)+1))
	for _, row := range h.cells(t, "New accesses") {
		if n := shownNumber(t, row[2]); want[userOf(row[0])] != n {
			t.Errorf("%s did %d things for the first time, not %d", row[0], want[userOf(row[0])], n)
		}
	}
	h.follow(t, "the first of them", first)
	if h.explored(t, r) == 0 {
		t.Error("what is new was never asked for")
	}
}

func touchedSecrets(t *testing.T, h *hand, r rows) {
	want := r.counts(t, "SELECT subject, toInt64(count()) FROM "+judgedRows+
		" WHERE object_resource = 'secrets' AND {foreign} GROUP BY subject")
	h.figure(t, "Requests for Secrets", grouped(sumOf(want)))
	shown := h.cells(t, "Who touched Secrets")
	most := slices.SortedFunc(maps.Values(want), func(x, y int64) int { return cmp.Compare(y, x) })
	for i, row := range shown {
		if n := shownNumber(t, row[1]); want[userOf(row[0])] != n || most[i] != n {
			t.Errorf("%s touched Secrets %d times, not %d; the most but %d did %d", row[0], want[userOf(row[0])], n, i, most[i])
		}
	}
	h.follow(t, "who touched them most", inTable("Who touched Secrets", ""))
	if n := h.explored(t, r); n != shownNumber(t, shown[0][1]) {
		t.Errorf("%d requests are listed, %s were counted", n, shown[0][1])
	}
}

func idleAdmins(t *testing.T, h *hand, r rows) {
	want := r.counts(t, question(t, "idle"))
	if len(want) == 0 {
		h.until(t, "nobody is said to", fmt.Sprintf(`!(%s) && document.querySelector('[role=table][aria-label="Dangerous and unused"]')`,
			inTable("Dangerous and unused", "cluster-admin")))
		return
	}
	h.follow(t, "cluster-admin", inTable("Dangerous and unused", "cluster-admin"))
	h.at(t, "#/subjects", "flag=cluster-admin", "show=idle")
	h.until(t, "the subjects are listed", settled+` && document.querySelector('[role=table][aria-label=Subjects] [data-index]')`)
	got := map[string]int64{}
	for _, row := range h.cells(t, "Subjects") {
		if name, _, _ := strings.Cut(row[0], "\n"); strings.HasPrefix(name, "sa/") {
			got[name] = 1
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the page names %v, the rows %v", got, want)
	}
}

// brokeAfterChange follows the change that made most refusals to what came of it.
func brokeAfterChange(t *testing.T, h *hand, r rows) {
	want := r.list(t, question(t, "broke"), "{from}", "'1970-01-01'")
	slices.SortFunc(want, func(x, y counted) int { return cmp.Compare(y.n, x.n) })
	h.figure(t, "Refused requests", grouped(r.number(t, refusedInSQL+" AND {foreign}"))+fmt.Sprintf("some by %d policy changes", len(want)))
	shown := h.cells(t, "Changes that made refusals")
	for i, row := range shown {
		verb, object, _ := strings.Cut(row[0], " ")
		if c := (counted{object, shownNumber(t, row[3])}); want[i].n != c.n || !slices.Contains(want, c) {
			t.Errorf("%s of %s is said to have made %d refusals; in SQL the most but %d are %d", verb, object, c.n, i, want[i].n)
		}
	}
	verb, object, _ := strings.Cut(shown[0][0], " ")
	h.follow(t, "the change that made most", inTable("Changes that made refusals", object))
	h.at(t, "#/changes", "id=")
	id := parameters(t, value[string](t, h.browser, "address", "location.hash")).Get("id")
	by := r.list(t, "SELECT concat(user_name, ' ', verb, ' ', toString(request_received)), toInt64(1) FROM "+judgedRows+
		" WHERE "+ofID+" AND match(object_resource, '^(cluster)?role(binding)?s$') AND code < 300", "{id}", quoteSQL(id))
	if len(by) != 1 || !strings.HasPrefix(by[0].key, userOf(shown[0][1])+" "+verb+" ") {
		t.Fatalf("the page says %v; the request is %v", shown[0], by)
	}
	// What came of it is counted from the write on: the recordings end within an hour.
	at := by[0].key[len(userOf(shown[0][1])+" "+verb+" "):]
	var came int64
	for _, c := range r.list(t, question(t, "broke"), "{from}", quoteSQL(at)) {
		if c.key == object {
			came += c.n
		}
	}
	const part = `[...document.querySelectorAll('#main section')].find(s => ` +
		`s.querySelector(':scope > header h3')?.textContent === 'Refused in the hour after')`
	h.until(t, fmt.Sprintf("%d refusals came of it", came), fmt.Sprintf(settled+" && "+part+
		` && [...`+part+`.textContent.matchAll(/([\d,]+) requests?, first/g)]`+
		`.reduce((n, [, m]) => n + Number(m.replaceAll(',', '')), 0) === %d`, came))
}

// refusedAndWhy follows the most frequent refusal to its requests, and one of these to what decided it.
func refusedAndWhy(t *testing.T, h *hand, r rows) {
	h.figure(t, "Refused requests", grouped(r.number(t, refusedInSQL+" AND {foreign}")))
	first := h.cells(t, "Refusals")[0]
	h.follow(t, "the most frequent refusal", inTable("Refusals", ""))
	if n := h.explored(t, r); n != shownNumber(t, first[3]) {
		t.Errorf("%d requests are listed, %s were counted", n, first[3])
	}
	h.follow(t, "a refused request", inTable("Requests", ""))
	h.at(t, "why=")
	id := parameters(t, value[string](t, h.browser, "address", "location.hash")).Get("why")
	who := r.list(t, "SELECT subject, toInt64(length(grants)) FROM "+judgedRows+
		" WHERE "+ofID+" AND recorded = 'forbid' AND replayed = 'forbid'", "{id}", quoteSQL(id))
	if len(who) != 1 || who[0].n > 0 {
		t.Fatalf("the request %s is %v", id, who)
	}
	shown := who[0].key
	if account, ok := strings.CutPrefix(shown, "system:serviceaccount:"); ok {
		shown = "sa/" + account
	}
	h.until(t, "it says that nothing allows it", settled+" && "+readsIn("dialog", "Nothing allows "+shown+" to do this"))
}

// wouldBreak asks what would be refused without a binding.
func wouldBreak(t *testing.T, h *hand, r rows) {
	want := r.counts(t, question(t, "breaks"))
	h.follow(t, "what if", `[...document.querySelectorAll('#main a.button')].find(a => a.innerText === 'What if?')`)
	h.at(t, "#/whatif")
	h.until(t, "it can be asked", settled+` && document.querySelector('#main form')`)
	h.do(t, `[...document.querySelectorAll('#main label')].find(l => l.innerText === 'Objects to delete').control.focus()`)
	h.press(t, "ClusterRoleBinding/a-bot1")
	h.steps++
	h.press(t, enterKey)
	h.at(t, "delete=")
	h.until(t, "it is said in words", settled+" && "+readsIn("#main li", fmt.Sprintf("%s accesses that were used would be refused: "+
		"%s requests of 1 subject, the last", grouped(int64(len(want))), grouped(sumOf(want)))))
	most := slices.Max(slices.Collect(maps.Values(want)))
	if shown := h.cells(t, "Accesses that change"); shownNumber(t, shown[0][3]) != most || shown[0][1] != "backup-bot" {
		t.Errorf("the page says %v first; something was asked for %d times", shown[0], most)
	}
}
