package main

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// hand is who uses the pages: with a mouse, or with the keyboard alone. Every click, and every Enter, is a step.
type hand struct {
	*browser
	keys  bool
	steps int
}

// follow follows the link that an expression finds.
func (h *hand) follow(t *testing.T, what, link string) {
	t.Helper()
	h.steps++
	h.until(t, what+" is there", link)
	if !h.keys {
		at := value[[]float64](t, h.browser, "find "+what, `(e => { e.scrollIntoView({block: 'center'}); const r = e.getClientRects()[0]; `+
			`return [r.left + Math.min(r.width / 2, 20), r.top + r.height / 2]; })(`+link+`)`)
		h.run(t, "click "+what, chromedp.MouseClickXY(at[0], at[1]))
		return
	}
	// j goes down from row to row, and k up from the last: whichever way is shorter. Other links are
	// reached by Tab, from the row before.
	const rows, tables = `[...document.querySelectorAll('#main [data-row]')]`, `[...document.querySelectorAll('#main [role=table]')]`
	key, row := "j", rows+`.filter(r => r === `+link+` || `+link+`.compareDocumentPosition(r) & Node.DOCUMENT_POSITION_PRECEDING).at(-1)`
	if value[bool](t, h.browser, "which way is shorter", `((link, far) => link.matches('[data-row]') && `+
		`far(link, Node.DOCUMENT_POSITION_PRECEDING) > far(link, Node.DOCUMENT_POSITION_FOLLOWING))(`+link+`, (link, side) => `+tables+
		`.filter(t => !t.contains(link) && link.compareDocumentPosition(t) & side).reduce((n, t) => n + Number(t.ariaRowCount), 0))`) {
		key, row = "k", link
	}
	h.do(t, `document.getElementById('main').focus()`)
	on := func(e string) bool {
		return value[bool](t, h.browser, "where the focus is", `(e => !e || document.activeElement === e)(`+e+`)`)
	}
	for n := 0; n < 80 && !on(row); n++ {
		h.press(t, key)
	}
	for n := 0; n < 40 && !on(link); n++ {
		h.press(t, kb.Tab)
	}
	h.until(t, "the focus is on "+what, `document.activeElement === `+link)
	h.press(t, enterKey)
}

// inTable is the link of the first row of a table that holds a text.
func inTable(table, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('#main [role=table][aria-label=%s] [data-index]')]`+
		`.find(r => r.innerText.includes(%s))?.querySelector('a[data-row]')`, quoteJS(table), quoteJS(text))
}

// cells reads the rows of a table, cell by cell.
func (b *browser) cells(t *testing.T, table string) [][]string {
	t.Helper()
	return value[[][]string](t, b, "rows of "+table, fmt.Sprintf(`[...document.querySelectorAll(`+
		`'#main [role=table][aria-label=%s] [data-index]')].map(r => [...r.querySelectorAll('[role=cell]')].map(c => c.innerText.trim()))`,
		quoteJS(table)))
}

// figure waits until a figure of the first page has a value.
func (b *browser) figure(t *testing.T, label, want string) {
	t.Helper()
	b.until(t, label+": "+want, readsIn("#main li", label+want))
}

// rows is the store, asked in SQL about one cluster.
type rows struct {
	db      *sql.DB
	cluster string
}

// counted is a line of an answer in SQL.
type counted struct {
	key string
	n   int64
}

// list returns the lines of a query that selects a text and a number. The pairs are what stands for names in it.
func (r rows) list(t *testing.T, query string, pairs ...string) (out []counted) {
	t.Helper()
	query = strings.NewReplacer(append(pairs, "{cluster}", quoteSQL(r.cluster), "{foreign}", foreign)...).Replace(query)
	list, err := r.db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer list.Close()
	for list.Next() {
		var c counted
		if err := list.Scan(&c.key, &c.n); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	if err := list.Err(); err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	return out
}

// counts returns the lines of a query by their keys.
func (r rows) counts(t *testing.T, query string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, c := range r.list(t, query) {
		out[c.key] += c.n
	}
	return out
}

// number returns how many judged requests a condition selects.
func (r rows) number(t *testing.T, where string) int64 {
	t.Helper()
	return r.counts(t, "SELECT '', toInt64(count()) FROM "+judgedRows+" WHERE "+where)[""]
}

// question is a query of testdata/morning.
func question(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "morning", name+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// judgedRows are the judged requests of a cluster.
const judgedRows = `(SELECT * FROM events FINAL WHERE sign = 1 AND outcome != '' AND cluster = {cluster})`

// foreign selects requests of subjects that are not Kubernetes' own.
const foreign = `(subject = 'system:anonymous' OR NOT startsWith(subject, 'system:') OR ` +
	`startsWith(subject, 'system:serviceaccount:') AND NOT startsWith(subject, 'system:serviceaccount:kube-'))`

// refusedInSQL selects requests that were refused: by the authorizers, for want of an identity, by admission.
const refusedInSQL = `(recorded = 'forbid' OR code = 401 OR code = 403 OR admission = 'rejected')`

// ofID selects the requests of an audit ID.
const ofID = `(audit_text = {id} OR audit_uuid = toUUIDOrZero({id}))`

func quoteSQL(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// parameters reads what an address of the pages says.
func parameters(t *testing.T, hash string) url.Values {
	t.Helper()
	_, search, _ := strings.Cut(hash, "?")
	params, err := url.ParseQuery(search)
	if err != nil {
		t.Fatal(err)
	}
	return params
}

// selected says in SQL what an address of Explore selects. Only what these tests follow is understood.
func selected(t *testing.T, hash string) string {
	t.Helper()
	columns := map[string]string{"subject": "subject", "verb": "verb", "resource": "object_resource", "decision": "recorded",
		"apiGroup": "object_api_group", "subresource": "object_subresource", "namespace": "object_namespace", "name": "object_name",
		"path": "substringIndex(request_uri, '?', 1)", "code": "toString(code)"}
	all := []string{"1"}
	add := func(key, v string) {
		column := columns[strings.TrimSuffix(key, "^")]
		switch {
		case column == "":
			t.Fatalf("%s selects by %q", hash, key)
		case strings.HasSuffix(key, "^"):
			all = append(all, "startsWith("+column+", "+quoteSQL(v)+")")
		default:
			all = append(all, column+" = "+quoteSQL(v))
		}
	}
	params := parameters(t, hash)
	for key := range params {
		switch v := params.Get(key); key {
		case "cluster", "q", "range":
		case "from":
			all = append(all, "request_received >= "+momentSQL(v))
		case "to":
			all = append(all, "request_received < "+momentSQL(v))
		default:
			add(key, v)
		}
	}
	for _, c := range strings.Fields(params.Get("q")) {
		key, v, _ := strings.Cut(c, "=")
		add(key, strings.Trim(v, `"`))
	}
	return strings.Join(all, " AND ")
}

func momentSQL(at string) string {
	return "parseDateTime64BestEffort(" + quoteSQL(at) + ", 6, 'UTC')"
}

// explored waits until Explore shows as many requests as the store has of what its address selects.
func (h *hand) explored(t *testing.T, r rows) int64 {
	t.Helper()
	h.at(t, "#/explore")
	n := r.number(t, selected(t, value[string](t, h.browser, "address", "location.hash")))
	h.until(t, fmt.Sprintf("%d requests are shown", n), settled+fmt.Sprintf(` && %s === %d`, shownRequests, n))
	return n
}

// userOf is the user name behind a subject as pages write it.
func userOf(shown string) string {
	if account, ok := strings.CutPrefix(shown, "sa/"); ok {
		return "system:serviceaccount:" + account
	}
	return strings.TrimPrefix(shown, "(no user)")
}

// shownNumber reads a number that a page shows.
func shownNumber(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil {
		t.Fatalf("%q is not a number", text)
	}
	return n
}

func sumOf(counts map[string]int64) (n int64) {
	for _, v := range counts {
		n += v
	}
	return n
}
