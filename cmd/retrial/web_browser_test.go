package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// browser is a tab of a real Chromium. What no page may do is collected while it runs:
// exceptions, errors on the console (violations of the page's policy among them), dialogs,
// requests to other places, questions that the OpenAPI document does not have.
type browser struct {
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

// needPage leaves the page's tests out of short runs: a browser's time says nothing about races.
func needPage(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("the page is tested without -short")
	}
}

// openBrowser starts an installed Chromium with an empty profile. home is the only place it
// may ask.
func openBrowser(t *testing.T, home string) *browser {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if p, err := exec.LookPath(name); err == nil {
			program = p
			break
		}
	}
	if program == "" {
		notRun(t, "no chromium, chromium-browser or google-chrome in PATH")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1400, 1000), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Env("FONTCONFIG_FILE="+ownFonts(t)), chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("lang", "en-US"),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser's end
		stop()
		stopAllocator()
	})
	b, asks := &browser{ctx: ctx}, needContract(t)
	listening := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.fault("exception: %s", words(e.ExceptionDetails))
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
				b.fault("console: %s", words(e.Args))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				b.fault("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
			}
		case *page.EventJavascriptDialogOpening:
			b.fault("dialog: %s", e.Message)
			go func() {
				_ = chromedp.Do(ctx, command(page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}))
			}()
		case *network.EventRequestWillBeSent:
			own := strings.HasPrefix(e.Request.URL, "data:image/svg+xml;base64,") // icons of the browser's own fields
			if !own && !strings.HasPrefix(strings.TrimPrefix(e.Request.URL, "blob:"), home) && !strings.HasPrefix(e.Request.URL, "about:") {
				b.fault("request to %s", e.Request.URL)
			}
			if u, err := url.Parse(e.Request.URL); err == nil && strings.HasPrefix(u.Path, apiRoot) {
				if why := asks.against(e.Request.Method, u); why != "" {
					b.fault("not in the OpenAPI document: %s: %s", e.Request.URL, why)
				}
				var body []byte
				for _, part := range e.Request.PostDataEntries {
					body = append(body, part.Bytes...)
				}
				if e.Request.HasPostData {
					for _, why := range asks.againstBody(e.Request.Method, u, body) {
						b.fault("not in the OpenAPI document: %s: %s", e.Request.URL, why)
					}
				}
			}
		}
	})
	if listening == nil {
		listening = chromedp.Do(ctx, command(log.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}))
	}
	if listening != nil {
		t.Fatalf("start %s: %v", program, listening)
	}
	return b
}

// command is an action of the protocol that answers nothing.
func command[P any](c cdp.Command[P, cdp.Empty], p P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, p)
		return err
	})
}

func (b *browser) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// blameless fails the test if the page did what no page may do.
func (b *browser) blameless(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		t.Error(f)
	}
	b.faults = nil
}

// forget forgets what the page did: it was made to.
func (b *browser) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = nil
}

// excuse forgets refused questions: they are errors on the console, as they should be.
func (b *browser) excuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = slices.DeleteFunc(b.faults, func(f string) bool {
		return strings.Contains(f, "Failed to load resource: the server responded with a status of 4")
	})
}

func (b *browser) run(t *testing.T, what string, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	b.must(t, what, chromedp.Do(ctx, actions...))
}

// must ends the test with what the page shows.
func (b *browser) must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v\nat %s\nbusy: %s\nthe page shows:\n%.3000s", what, err, b.look("location.href"),
			b.look(`[...document.querySelectorAll('[aria-busy], [aria-label=Loading]')].map(e => e.outerHTML.slice(0, 160)).join('\n')`),
			b.look("document.body.innerText"))
	}
}

// value returns what an expression is; a promise is waited for.
func value[T any](t *testing.T, b *browser, what, js string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	b.must(t, what, err)
	return v
}

// do evaluates for the effect.
func (b *browser) do(t *testing.T, js string) {
	t.Helper()
	value[bool](t, b, js, `(() => { `+js+`; return true; })()`)
}

// look returns what an expression is now, for messages.
func (b *browser) look(js string) string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string](js))
	if err != nil {
		return err.Error()
	}
	return s
}

// load loads a page anew.
func (b *browser) load(t *testing.T, url string) {
	t.Helper()
	b.run(t, "load "+url, chromedp.Navigate("about:blank"), chromedp.Navigate(url))
}

// visit goes to an address of the page as a link does, and waits for what is asked there.
func (b *browser) visit(t *testing.T, hash string) {
	t.Helper()
	b.do(t, `history.pushState(null, '', `+quoteJS(hash)+`); dispatchEvent(new HashChangeEvent('hashchange'))`)
	b.until(t, hash+" is there", settled)
}

// until waits for an expression to be true. The page looks itself, so that no time is set
// for it and none is lost.
func (b *browser) until(t *testing.T, what, js string) {
	t.Helper()
	value[bool](t, b, "wait until "+what, `new Promise(done => { const look = () => { let ok = false; try { ok = !!(`+js+
		`); } catch {} ok ? done(true) : setTimeout(look, 20); }; look(); })`)
}

// click clicks the first element of a selector that holds the text, as a mouse would.
func (b *browser) click(t *testing.T, selector, text string) {
	t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%s)].find(e => e.textContent.includes(%s))`, quoteJS(selector), quoteJS(text))
	b.until(t, selector+" with "+text, find)
	at := value[[]float64](t, b, "find "+text, `(e => { e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); return `+
		`[r.left + Math.min(r.width / 2, 60), r.top + r.height / 2]; })(`+find+`)`)
	b.run(t, "click "+selector+" with "+text, chromedp.MouseClickXY(at[0], at[1]))
}

func (b *browser) press(t *testing.T, key string) {
	t.Helper()
	b.run(t, "press "+key, chromedp.KeyEvent(key))
}

func quoteJS(s string) string {
	q, _ := json.Marshal(s) // a string always can
	return string(q)
}

const (
	escapeKey = kb.Escape
	enterKey  = kb.Enter
	downKey   = kb.ArrowDown
)

// words writes what the browser tells of a fault.
func words(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// download returns the files, by name, that were saved when what do does is done.
func (b *browser) download(t *testing.T, do func()) map[string]string {
	t.Helper()
	dir := t.TempDir()
	var once sync.Once
	done := make(chan struct{})
	if err := chromedp.Listen(b.ctx, func(event any) {
		if e, ok := event.(*cdpbrowser.EventDownloadProgress); ok && e.State == cdpbrowser.DownloadProgressStateCompleted {
			once.Do(func() { close(done) })
		}
	}); err != nil {
		t.Fatal(err)
	}
	events := true
	b.run(t, "allow downloads",
		command(cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow,
			DownloadPath: dir, EventsEnabled: &events}))
	do()
	select {
	case <-done:
	case <-b.ctx.Done():
		t.Fatal("nothing was saved")
	}
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(body)
	}
	return out
}
