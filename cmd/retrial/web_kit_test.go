package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/query"
)

// settled: what the page asked is answered and shown.
const settled = `document.querySelector('#main h1') && !document.querySelector('[aria-label=Loading], [aria-busy]')`

// importSample imports so many events of the recorded cluster, and its state.
func (in install) importSample(t *testing.T, events int) {
	t.Helper()
	in.run(t, "import", "--cluster", "sample", "--state", in.file(t, sample.StateName, string(sample.StateZstd())),
		in.file(t, "sample.jsonl", string(sampleLines(t, events)))).ok(t)
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

// importHostile imports a cluster whose every name is hostile.
func (in install) importHostile(t *testing.T) {
	t.Helper()
	in.run(t, "import", "--cluster", "hostile", "--state", in.file(t, "hostile.json", string(hostileState(t))),
		in.file(t, "hostile.jsonl", string(hostileEvents(t)))).ok(t)
}

// web is a server that has the recorded cluster and one whose every name is hostile, judged, and a browser on it.
type web struct {
	in install
	s  *running
	b  *browser
}

// openWeb starts it with so many events of the recorded cluster.
func openWeb(t *testing.T, events int) *web {
	t.Helper()
	needPage(t)
	in := newInstall(t)
	s := in.serve(t, append([]string{"--replay-hold", "200ms"}, promptly...)...)
	in.importSample(t, events)
	in.importHostile(t)
	s.drained(t)
	s.detected(t)
	return &web{in, s, openBrowser(t, s.ui)}
}

// span is the time of the recorded cluster, as parameters.
func (w *web) span(t *testing.T) url.Values {
	t.Helper()
	var clusters struct {
		Clusters []query.Cluster `json:"clusters"`
	}
	w.s.get(t, "clusters", &clusters)
	for _, c := range clusters.Clusters {
		if c.Name == "sample" {
			return url.Values{"cluster": {"sample"}, "from": {c.First.Format(time.RFC3339Nano)}, "to": {c.Last.Format(time.RFC3339Nano)}}
		}
	}
	t.Fatal("the cluster \"sample\" is missing")
	return nil
}

// look is how somebody looks at a page.
type look struct {
	name          string
	width, height int64
	scheme        string
}

// looks are those every page is held to.
var looks = []look{
	{"wide-light", 1400, 900, "light"}, {"wide-dark", 1400, 900, "dark"},
	{"narrow-light", 390, 844, "light"}, {"narrow-dark", 390, 844, "dark"},
}

// as looks at the page that way from now on.
func (b *browser) as(t *testing.T, l look) {
	t.Helper()
	b.run(t, "look "+l.name,
		command(emulation.SetDeviceMetricsOverride,
			emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}))
}

// accessible fails the test where axe-core finds a violation of WCAG 2.2 AA, or where the page is wider than the screen.
func (b *browser) accessible(t *testing.T, what string) {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join("..", "..", "dashboards", "web", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		notRun(t, "axe-core is not there: make web")
	}
	if value[bool](t, b, "is axe there", "typeof axe === 'undefined'") {
		value[bool](t, b, "load axe", string(axe)+"; true")
	}
	for _, v := range value[[]string](t, b, "axe on "+what, `axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', `+
		`'wcag22aa', 'best-practice']}).then(r => r.violations.map(v => v.id + ': ' + v.help + '\n' + `+
		`v.nodes.slice(0, 5).map(n => '  ' + n.html.slice(0, 200) + '\n  ' + n.failureSummary.slice(0, 300)).join('\n')))`) {
		t.Errorf("%s: %s", what, v)
	}
	if over := value[int](t, b, "width", "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
		t.Errorf("%s is %d pixels wider than the screen: %s", what, over, b.look(`[...document.querySelectorAll('#main *')].filter(e => {`+
			`for (let p = e.parentElement; p.id !== 'main'; p = p.parentElement) `+
			`if (getComputedStyle(p).overflowX !== 'visible') return false; `+
			`return e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.01; `+
			`}).slice(0, 9).map(e => e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 60)).join('; ')`))
	}
}

// looksGood opens an address in every look: nothing fails, it looks as it did, and axe finds nothing light, dark, and on a phone.
func (b *browser) looksGood(t *testing.T, name, url string) {
	t.Helper()
	for _, l := range looks {
		b.as(t, l)
		b.load(t, url)
		b.until(t, name+" is there", settled)
		b.shot(t, name+"-"+l.name)
		if l != looks[3] { // its colours and its sizes are those of others
			b.accessible(t, name+" "+l.name)
		}
	}
	b.as(t, looks[0])
	b.blameless(t)
}

// holds looks at what the page shows, light and dark, and on a phone: axe finds nothing.
func (b *browser) holds(t *testing.T, name string) {
	t.Helper()
	for _, l := range looks[:3] {
		b.as(t, l)
		if l.width < looks[0].width {
			b.load(t, b.look("location.href")) // what is folded on a phone is so from the beginning
		}
		b.until(t, name+" is there", settled)
		b.accessible(t, name+" "+l.name)
	}
	b.as(t, looks[0])
}

// stroke presses a key that a page may keep for itself: press would write its character into what has the focus by then.
func (b *browser) stroke(t *testing.T, key string) {
	t.Helper()
	b.run(t, "stroke "+key,
		command(input.DispatchKeyEvent,
			input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key}),
		command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: key}))
}

// chord presses a key with Control.
func (b *browser) chord(t *testing.T, key string) {
	t.Helper()
	b.run(t, "press Ctrl-"+key, chromedp.KeyEvent(key, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
}

// at waits for the address to have a page and parameters: "/explore", "why=".
func (b *browser) at(t *testing.T, parts ...string) {
	t.Helper()
	conditions := make([]string, len(parts))
	for i, p := range parts {
		conditions[i] = fmt.Sprintf("location.hash.includes(%s)", quoteJS(p))
	}
	b.until(t, "the address has "+strings.Join(parts, " and "), strings.Join(conditions, " && "))
}

// grouped writes a number as the page does.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// readsIn is an expression: whether the text stands in any element of a selector.
func readsIn(selector, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%s)].some(e => e.textContent.includes(%s))`, quoteJS(selector), quoteJS(text))
}
