package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/query"
)

// hostileText is a string as clients may choose it, and how it must read on the page.
type hostileText struct{ name, raw, shown string }

var hostile = []hostileText{
	{name: "script", raw: `<script>window.pwned=1</script>`},
	{name: "image", raw: `<img src=x onerror="window.pwned=1">`},
	{name: "out of an attribute", raw: `"><svg onload=window.pwned=1>`},
	{name: "event handler", raw: `' onmouseover='window.pwned=1' autofocus onfocus='window.pwned=1`},
	{name: "script URL", raw: `javascript:window.pwned=1//`},
	{name: "data URL", raw: `data:text/html,<script>opener.pwned=1</script>`},
	{name: "template", raw: "{{constructor.constructor('window.pwned=1')()}}${window.pwned=1}`"},
	{name: "frame", raw: `<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`},
	{name: "style", raw: `</style><style>*{display:none}</style>`},
	{name: "terminal", raw: "\x1b[31mred\x1b[0m\x1b]8;;http://x\x07", shown: `\u001b[31mred\u001b[0m\u001b]8;;http://x\u0007`},
	{name: "override of direction", raw: "user\u202egnp.nimda", shown: `user\u202egnp.nimda`},
	{name: "isolates", raw: "\u2066admin\u2069", shown: `\u2066admin\u2069`},
	{name: "zero width", raw: "ad\u200bmin\ufeff", shown: `ad\u200bmin\ufeff`},
	{name: "tag characters", raw: "admin\U000e0041", shown: `admin\u{e0041}`},
	{name: "odd space", raw: "system:\u00a0masters\u3164", shown: `system:\u00a0masters\u3164`},
	{name: "lines", raw: "one\ntwo\tthree\r", shown: `one\ntwo\tthree\u000d`},
	{name: "NUL", raw: "ad\x00min", shown: `ad\u0000min`},
	{name: "an escape that was in the text", raw: `user\u202egnp`, shown: `user\u202egnp`},
	{name: "an escape beside a real one", raw: "\\u0041\u202e", shown: `\\u0041\u202e`},
	{name: "right to left", raw: "שלום-עולם", shown: "שלום-עולם"},
	{name: "picture", raw: "🙂 crab 🦀", shown: "🙂 crab 🦀"},
	{name: "formula", raw: `=cmd|' /C calc'!A0`},
	{name: "quotes", raw: `"';--\`},
	{name: "path", raw: `../..//etc/passwd?a=b&c=d#frag%00%2f+`},
	{name: "prototype", raw: `__proto__`},
	{name: "long", raw: "long-" + strings.Repeat("x", 5000), shown: "long-" + strings.Repeat("x", 40)},
}

// hostileEvents puts each of the strings into every place of an event a client can reach,
// and an audit ID that two requests share.
func hostileEvents(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	add := func(i int, id, s string) {
		at := time.Date(2026, 11, 19, 10, 0, i, 0, time.UTC).Format(time.RFC3339Nano)
		line, err := json.Marshal(map[string]any{
			"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": id, "stage": "ResponseComplete",
			"requestURI": "/api/v1/namespaces/default/configmaps/" + s, "verb": s, "sourceIPs": []string{s}, "userAgent": s,
			"user": map[string]any{"username": s, "uid": s, "groups": []string{s, "system:authenticated"},
				"extra": map[string][]string{s: {s}}},
			"objectRef":      map[string]string{"resource": s, "namespace": s, "name": s, "apiVersion": s, "apiGroup": s},
			"responseStatus": map[string]any{"code": 403, "status": "Failure", "message": s, "reason": s},
			"requestObject":  map[string]any{"kind": s, s: s}, s: s,
			"requestReceivedTimestamp": at, "stageTimestamp": at,
			"annotations": map[string]string{"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": s, s: s},
		})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	for i, h := range hostile {
		add(i, h.raw, h.raw)
	}
	add(40, "used/again", "first")
	add(41, "used/again", "second")
	return out.Bytes()
}

// sampleLines returns the first lines of the bundled recording.
func sampleLines(t *testing.T, n int) []byte {
	t.Helper()
	r, err := sample.OpenAuditLog()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	var out bytes.Buffer
	for ; n > 0 && lines.Scan(); n-- {
		out.Write(append(lines.Bytes(), '\n'))
	}
	if lines.Err() != nil || n > 0 {
		t.Fatalf("%d lines are missing: %v", n, lines.Err())
	}
	return out.Bytes()
}

// TestBrowser uses the page as people do, in a real Chromium against a running server.
func TestBrowser(t *testing.T) {
	needPage(t)
	in := newInstall(t)
	s := in.serve(t, "--replay-hold", "200ms")
	b := openBrowser(t, s.ui)
	file := func(name string, content []byte) string {
		path := filepath.Join(in.dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	b.load(t, s.ui)
	b.until(t, "an empty store says what to do", `document.querySelector('main').innerText.includes('retrial import --cluster NAME')`)

	state := file(sample.StateName, sample.StateZstd())
	in.run(t, "import", "--cluster", "sample", "--state", state, file("sample.jsonl", sampleLines(t, 3000))).ok(t)
	b.until(t, "the page shows what arrives, by itself", `document.querySelectorAll('#requests tbody tr').length === 50`)
	in.run(t, "import", "--cluster", "hostile", file("hostile.jsonl", hostileEvents(t))).ok(t)
	s.drained(t)

	t.Run("first page", func(t *testing.T) { firstPage(t, s, b) })
	t.Run("filters and pages", func(t *testing.T) { filtersAndPages(t, s, b) })
	t.Run("why", func(t *testing.T) { whyDrawer(t, s, b) })
	t.Run("hostile strings", func(t *testing.T) { hostileStrings(t, s, b) })
	t.Run("an audit ID used again", func(t *testing.T) {
		b.load(t, s.ui+"#/?cluster=hostile&why="+url.QueryEscape("used/again"))
		b.until(t, "both requests are there", `document.querySelector('#drawer').innerText.includes('2 requests carry this audit ID') && `+
			`document.querySelectorAll('#drawer details.other').length === 1`)
	})
	t.Run("addresses that lead nowhere", func(t *testing.T) {
		for hash, says := range map[string]string{
			"#/?cluster=%3Cb%3Enobody": "No such cluster", "#/?cluster=sample&why=nothing": "No stored request carries",
			"#/?cluster=sample&outcome=nonsense": "want one of match, drift", "#/?cluster=sample&from=x&to=y": "Requests over time",
			"#/no/such/view": "Requests over time",
		} {
			b.load(t, s.ui+hash)
			b.until(t, hash+" says "+says, `document.body.innerText.includes(`+quoteJS(says)+`)`)
		}
		b.mu.Lock()
		b.faults = nil // a refused question is an error on the console, as it should be
		b.mu.Unlock()
	})
	t.Run("a narrow screen", func(t *testing.T) {
		b.run(t, "narrow", chromedp.EmulateViewport(390, 844))
		for _, hash := range []string{"#/?cluster=sample", "#/?cluster=hostile", "#/verdicts",
			"#/?cluster=hostile&why=" + url.QueryEscape(hostile[len(hostile)-1].raw)} {
			b.load(t, s.ui+hash)
			b.until(t, "it is drawn", `document.querySelector('main .card:not(:has(.loading))') && !document.querySelector('.loading')`)
			if over := value[float64](t, b, "width", `document.scrollingElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s is %v pixels wider than the screen", hash[:min(len(hash), 60)], over)
			}
		}
		b.run(t, "wide again", chromedp.EmulateViewport(1400, 1000))
	})
	t.Run("arriving requests leave the reader's place alone", func(t *testing.T) {
		b.load(t, s.ui+"#/?cluster=sample")
		b.until(t, "the list", listed+`.length === 50`)
		b.do(t, `document.querySelector('#requests a.request').focus()`)
		const first = `document.querySelector('#requests a.request').dataset.k`
		reading := value[string](t, b, "the first row", first)
		in.run(t, "import", "--cluster", "sample", file("more.jsonl", sampleLines(t, 3500)[len(sampleLines(t, 3000)):])).ok(t)
		b.until(t, "the numbers follow", `document.querySelector('.tiles').innerText.includes('3,500 audit events')`)
		b.until(t, "the row and the focus stay", `document.querySelector('.news') && document.activeElement === `+
			`document.querySelector('#requests a.request') && `+first+` === `+quoteJS(reading))
		b.click(t, ".news", "Show")
		b.until(t, "then the news are shown", first+` !== `+quoteJS(reading)+` && !document.querySelector('.news')`)
	})
	b.blameless(t)

	b.load(t, s.ui+"#/?cluster=sample")
	b.until(t, "it is drawn", `document.querySelectorAll('#requests tbody tr').length === 50`)
	s.stop(t)
	b.until(t, "a lost server is told", `document.querySelector('#status').innerText === 'server not reached'`)
	b.until(t, "what was shown stays", `document.querySelectorAll('#requests tbody tr').length === 50`)
}

func firstPage(t *testing.T, s *running, b *browser) {
	var clusters struct {
		Clusters []query.Cluster `json:"clusters"`
	}
	s.get(t, "clusters", &clusters)
	var o query.OverviewAnswer
	for _, c := range clusters.Clusters {
		if c.Name == "sample" {
			s.get(t, "overview?"+
				url.Values{"cluster": {"sample"}, "from": {c.First.Format(time.RFC3339)}, "to": {c.Last.Format(time.RFC3339)}}.Encode(), &o)
		}
	}
	if o.Totals.Events != 3000 || o.Totals.Match == 0 || o.Totals.Forbid == 0 {
		t.Fatalf("totals %+v", o.Totals)
	}
	b.load(t, s.ui+"#/?cluster=sample")
	b.until(t, "the tiles agree with the API",
		fmt.Sprintf(`document.querySelector('.tiles').innerText.includes(%s)`, quoteJS(grouped(o.Totals.Requests))))
	b.until(t, "bars", `document.querySelectorAll('.chart rect[class^=fill-]').length >= 1`)
	for _, panel := range []string{"Requests over time", "Verdict coverage", "Decisions", "Drift and open questions, by class",
		"What does not match, by likely cause", "Top subjects", "Requests"} {
		b.until(t, "panel "+panel,
			fmt.Sprintf(`document.querySelector('[aria-label=%s] .body').innerText.trim().length > 20`, quoteJS(panel)))
	}
	b.until(t, "a verdict is explained when it is pointed at", `(() => { document.querySelector('#requests .chip').dispatchEvent(new `+
		`MouseEvent('mouseover', {bubbles: true})); return document.querySelector('#tip').innerText.length > 30; })()`)
	b.click(t, "button", "by verdict")
	b.until(t, "bars by verdict", `location.hash.includes('chart=verdict') && document.querySelector('.chart .fill-match') && `+
		`!document.querySelector('.chart .fill-allow')`)

	b.do(t, `document.querySelector('.chart').focus()`)
	b.press(t, rightKey)
	b.until(t, "the bar's numbers", `document.querySelector('#tip').innerText.includes('match:')`)
	b.press(t, enterKey)
	b.until(t, "one bar's time", `location.hash.includes('from=') && document.querySelector('.reset')`)
	b.click(t, ".reset", "whole range")
	b.until(t, "all of it again", `!location.hash.includes('from=')`)

	b.click(t, ".intro a", "verdicts mean")
	b.until(t, "every class is explained",
		`['node-graph', 'unexplained-reason', 'unauthenticated'].every(c => document.querySelector('main').innerText.includes(c))`)
	b.click(t, "main a", "Back")
	b.until(t, "back at the cluster",
		`document.querySelector('#cluster').value === 'sample' && document.querySelector('.tiles b').innerText.length > 1`)
	b.blameless(t)
}

// grouped writes a number as the page does.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

const listed = `[...document.querySelectorAll('#requests tbody tr')]`

func filtersAndPages(t *testing.T, s *running, b *browser) {
	b.load(t, s.ui+"#/?cluster=sample")
	b.until(t, "the list", listed+`.length === 50`)
	b.click(t, "a.tile", "Forbidden")
	b.until(t, "forbidden requests only", listed+`.length > 0 && `+listed+`.every(r => r.cells[4].innerText === 'forbidden')`)
	b.click(t, "#requests button", "Clear filters")
	b.until(t, "all again",
		`!document.querySelector('#requests [aria-pressed=true]') && `+listed+`.some(r => r.cells[4].innerText === 'allowed')`)
	b.click(t, "#requests button", "ambiguous")
	b.until(t, "ambiguous requests only", `location.hash.includes('outcome=ambiguous') && `+listed+`.length > 0 && `+listed+
		`.every(r => r.cells[6].innerText === 'ambiguous')`)
	b.click(t, "#requests button", "ambiguous")
	b.until(t, "all again", `!location.hash.includes('outcome') && `+listed+`.some(r => r.cells[6].innerText === 'match')`)

	b.click(t, "[aria-label='Top subjects'] a.figure", "")
	b.until(t, "one subject",
		`location.hash.includes('subject=') && `+listed+`.length > 0 && new Set(`+listed+`.map(r => r.cells[1].innerText)).size === 1`)
	b.do(t, `(i => { i.value = 'nobody at all'; i.dispatchEvent(new Event('change')); })(document.querySelector('#requests input'))`)
	b.until(t, "nobody", `document.querySelector('#requests').innerText.includes('No request matches')`)
	b.click(t, "#requests button", "Clear filters")
	b.until(t, "the list", listed+`.length === 50`)

	rows := listed + `.map(r => r.querySelector('a').dataset.k)`
	first := value[[]string](t, b, "rows", rows)
	b.click(t, "#requests a.button", "Older")
	b.until(t, "the next page", `location.hash.includes('before=') && `+listed+`.length === 50 && `+rows+`[0] !== `+quoteJS(first[0]))
	second := value[[]string](t, b, "rows", rows)
	seen := map[string]bool{}
	for _, k := range append(first, second...) {
		if seen[k] {
			t.Errorf("%s is on both pages", k)
		}
		seen[k] = true
	}
	b.click(t, "#requests a.button", "Newest")
	b.until(t, "the first page", rows+`[0] === `+quoteJS(first[0]))

	b.do(t, `(s => { s.value = 'hostile'; s.dispatchEvent(new Event('change')); })(document.querySelector('#cluster'))`)
	b.until(t, "the other cluster", fmt.Sprintf(`location.hash.includes('cluster=hostile') && %s.length === %d`, listed, len(hostile)+2))
	b.blameless(t)
}

func whyDrawer(t *testing.T, s *running, b *browser) {
	b.load(t, s.ui+"#/?cluster=sample&outcome=match&decision=allow")
	b.until(t, "the list", listed+`.some(r => r.innerText.includes(' grant'))`)
	b.click(t, "#requests tbody tr", " grant")
	b.until(t, "the answer", `location.hash.includes('why=') && document.querySelectorAll('#drawer .grants .node').length >= 3`)
	b.until(t, "the list stays as it is", listed+`.length > 0 && location.hash.includes('outcome=match')`)
	link := value[string](t, b, "address", `location.href`)
	b.press(t, escapeKey)
	b.until(t, "it closes", `document.querySelector('#drawer').hidden && !location.hash.includes('why=')`)

	b.load(t, link)
	b.until(t, "its link opens it",
		`document.querySelectorAll('#drawer .grants .node').length >= 3 && document.activeElement.closest('#drawer')`)
	b.click(t, "#drawer .close", "×")
	b.until(t, "it closes", `document.querySelector('#drawer').hidden`)

	b.until(t, "the list", listed+`.length > 0`)
	b.do(t, `document.querySelector('#requests a.request').focus()`)
	b.press(t, enterKey)
	b.until(t, "it opens by keyboard", `!document.querySelector('#drawer').hidden && document.querySelector('#drawer .sides')`)
	b.press(t, escapeKey)
	b.until(t, "the focus comes back", `document.activeElement.matches('#requests a.request')`)

	wholeTrial(t, s, b)
	b.blameless(t)
}

// wholeTrial opens a request made with a token, follows the token to where it was issued, then
// a refusal, an example of what does not agree, and asks what each lacked.
func wholeTrial(t *testing.T, s *running, b *browser) {
	find := func(what, filter string, fits func(query.JudgedRequest) bool) string {
		t.Helper()
		var list struct{ Events []query.Event }
		s.get(t, "events?cluster=sample&limit=500&"+filter, &list)
		for _, e := range list.Events {
			var why query.WhyAnswer
			s.get(t, "why?cluster=sample&auditID="+url.QueryEscape(e.AuditID), &why)
			if len(why.Requests) == 1 && why.Requests[0].Verdict != nil && fits(why.Requests[0]) {
				return e.AuditID
			}
		}
		t.Fatalf("there is no %s", what)
		return ""
	}
	token := find("use of a token whose issue is recorded", "outcome=match&decision=allow",
		func(r query.JudgedRequest) bool { return r.Issue != nil && r.Issue.AuditID != "" })
	b.load(t, s.ui+"#/?cluster=sample&why="+url.QueryEscape(token))
	b.until(t, "the authorizers and who it was", `document.querySelectorAll('#drawer .chain tbody tr').length === 3 && `+
		`document.querySelector('#drawer dl').innerText.includes('service-account-bound')`)
	b.click(t, "#drawer a[data-k=lineage]", "JTI=")
	b.until(t, "the token's life", `location.hash.startsWith('#/lineage?') && `+
		`document.querySelector('.life').innerText.includes('issued') && document.querySelectorAll('.lives tbody tr').length > 0`)
	b.click(t, ".life a[data-k=issue0]", "the request")
	b.until(t, "its issue", `document.querySelector('#drawer .why')?.innerText.includes('/token')`)

	refused := find("refusal by RBAC", "outcome=match&decision=forbid", func(r query.JudgedRequest) bool { return len(r.Chain) == 3 })
	b.load(t, s.ui+"#/?cluster=sample&why="+url.QueryEscape(refused))
	b.click(t, "#drawer .denial summary", "")
	b.until(t, "what would have allowed it", `document.querySelector('#drawer .denial').innerText.includes('The narrowest rule that `+
		`allows it') && document.querySelector('#drawer .denial pre').innerText.includes('verbs: [')`)

	b.load(t, s.ui+"#/?cluster=sample")
	b.until(t, "what does not agree", `document.querySelector('.drift tbody tr .chip')?.innerText === 'ambiguous' && `+
		`document.querySelector('.drift').innerText.includes('race')`)
	b.click(t, ".drift a.who", "")
	b.until(t, "an example", `location.hash.includes('why=') && document.querySelector('#drawer .why .is-ambiguous')`)
	b.press(t, escapeKey)
}

// hostileStrings: whatever a client put into its request is text, in the list and in the
// answer, and it reads as what it is.
func hostileStrings(t *testing.T, s *running, b *browser) {
	const rest = `document.querySelectorAll('script:not([src="app.js"]), iframe, svg[onload], img:not([src="icon.svg"]), style, ` +
		`[onerror], [onmouseover], [onfocus]').length === 0 && window.pwned === undefined`
	b.load(t, s.ui+"#/?cluster=hostile")
	b.until(t, "the list", fmt.Sprintf(`%s.length === %d`, listed, len(hostile)+2))
	for _, h := range hostile {
		shown := h.shown
		if shown == "" {
			shown = h.raw
		}
		t.Run(h.name, func(t *testing.T) {
			b.until(t, "in the list", listed+`.some(r => r.cells[1].textContent.includes(`+quoteJS(shown)+
				`) && r.cells[2].textContent.includes(`+quoteJS(shown)+`))`)
			b.do(t, `location.hash = '#/?' + new URLSearchParams({cluster: 'hostile', why: `+quoteJS(h.raw)+`})`)
			b.until(t, "in the answer", `document.querySelector('#drawer .sides') && [...document.querySelectorAll('#drawer dl `+
				`bdi')].filter(e => e.textContent.includes(`+quoteJS(shown)+`)).length >= 5`)
			b.until(t, "nothing became markup", rest)
			b.do(t, `location.hash = '#/?' + new URLSearchParams({cluster: 'hostile', user: `+quoteJS(h.raw)+`, verb: `+quoteJS(h.raw)+
				`, resource: `+quoteJS(h.raw)+`})`)
			b.until(t, "filters find it", `document.querySelector('#drawer').hidden && `+listed+`.length === 1 && `+listed+
				`[0].textContent.includes(`+quoteJS(shown)+`)`)
			b.do(t, `location.hash = '#/?cluster=hostile'`)
			b.until(t, "the list again", fmt.Sprintf(`%s.length === %d`, listed, len(hostile)+2))
		})
	}
	b.until(t, "nothing became markup", rest)
	b.blameless(t)
}
