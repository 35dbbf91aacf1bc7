package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/retrial-io/retrial/internal/sample"
)

// settled: what the page asked is answered and shown.
const settled = `document.querySelector('#main h1') && !document.querySelector('[aria-label=Loading], [aria-busy]')`

// importSample imports so many events of the recorded cluster, and its state.
func (in install) importSample(t *testing.T, events int) {
	t.Helper()
	in.run(t, "import", "--cluster", "sample", "--state", in.file(t, sample.StateName, string(sample.StateZstd())),
		in.file(t, "sample.jsonl", string(sampleLines(t, events)))).ok(t)
}

// importHostile imports a cluster whose every name is hostile.
func (in install) importHostile(t *testing.T) {
	t.Helper()
	in.run(t, "import", "--cluster", "hostile", "--state", in.file(t, "hostile.json", string(hostileState(t))),
		in.file(t, "hostile.jsonl", string(hostileEvents(t)))).ok(t)
}

// webSample serves a part of the recorded cluster, judged, and opens a browser on it. next is the address of the new pages.
func webSample(t *testing.T, events int) (in install, s *running, b *browser, next string) {
	t.Helper()
	needPage(t)
	in = newInstall(t)
	s = in.serve(t, "--replay-hold", "200ms")
	in.importSample(t, events)
	s.drained(t)
	return in, s, openBrowser(t, s.ui), s.ui + "next/"
}

// webHostile is webSample beside a cluster whose every name is hostile.
func webHostile(t *testing.T, events int) (s *running, b *browser, next string) {
	t.Helper()
	in, s, b, next := webSample(t, events)
	in.importHostile(t)
	s.drained(t)
	return s, b, next
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
		t.Errorf("%s is %d pixels wider than the screen", what, over)
	}
}

// shot writes what is seen to RETRIAL_SCREENSHOTS, a folder, if that is set.
func (b *browser) shot(t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv("RETRIAL_SCREENSHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600)
	}
	if err != nil {
		t.Errorf("screenshot of %s: %v", name, err)
	}
}

// looksGood opens an address in every look: nothing fails, axe finds nothing, and the screenshots show it.
func (b *browser) looksGood(t *testing.T, name, url string) {
	t.Helper()
	for _, l := range looks {
		b.as(t, l)
		b.load(t, url)
		b.until(t, name+" is there", settled)
		b.shot(t, name+"-"+l.name)
		b.accessible(t, name+" "+l.name)
	}
	b.as(t, looks[0])
	b.blameless(t)
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

const downKey = kb.ArrowDown
