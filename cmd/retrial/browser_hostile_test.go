package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chromedp/chromedp"
)

// unharmed: no string became markup, code, or a way out of the page.
const unharmed = `document.querySelectorAll('script:not([src="app.js"]), iframe, svg[onload], img:not([src="icon.svg"]), style, ` +
	`[onerror], [onmouseover], [onfocus]').length === 0 && window.pwned === undefined && [...document.querySelectorAll('a')].every(a => ` +
	`a.getAttribute('href').startsWith('#'))`

// TestBrowserHostileAnswers gives every page answers in which every string is hostile: each
// has to be there, to be read, as what it is.
func TestBrowserHostileAnswers(t *testing.T) {
	needPage(t)
	s := openStub(t)
	b := openBrowser(t, s.url)
	var texts []string
	for _, h := range hostile {
		texts = append(texts, h.raw)
	}
	for route, answer := range answersOf(texts) {
		s.set(route, answer)
	}
	for _, page := range []struct {
		name, hash, ready string
		all               []string // containers in which every string has to be
	}{
		{"subjects", "#/subjects?cluster=sample", ".ranking", []string{".ranking"}},
		{"findings", "#/findings?cluster=sample", ".findings", []string{".findings", ".rules"}},
		{"who can", "#/access?cluster=sample&verb=get&resource=x", ".holders", []string{".holders", "#answer ul"}},
		{"can", "#/access?cluster=sample&subject=x", ".rights", []string{".rights", "#answer ul"}},
		{"overview", "#/?cluster=sample", "[aria-label=Findings] table", []string{".steps pre", ".drift"}},
		{"why", "#/?cluster=sample&why=x", "#drawer .grants",
			[]string{"#drawer .grants", "#drawer .chain", "#drawer .checks", "#drawer .contradictions", "#drawer dl"}},
		{"lineage", "#/lineage?cluster=sample&subject=x", ".life", []string{".life", ".lives"}},
		{"a cluster without events", "#/?cluster=other", ".steps", []string{".steps pre"}},
	} {
		t.Run(page.name, func(t *testing.T) {
			b.load(t, s.url+page.hash)
			b.until(t, "it is drawn", fmt.Sprintf(`document.querySelector(%s) && !document.querySelector('.loading')`, quoteJS(page.ready)))
			for _, in := range page.all {
				for _, h := range hostile {
					if h.name == "lines" && in == ".steps pre" {
						continue // what to do may have several
					}
					if !value[bool](t, b, h.name, readsIn(in, h.read())) {
						t.Errorf("%s: %s is not in %s, or does not read %.100q", page.name, h.name, in, h.read())
					}
				}
			}
			b.until(t, "nothing became markup", unharmed)
		})
	}
	t.Run("subject", func(t *testing.T) {
		b.load(t, s.url+"#/subjects?cluster=sample")
		for _, h := range hostile {
			asked := url.Values{"cluster": {"sample"}, "subject": {h.raw}, "rows": {"all"}}
			b.do(t, "location.hash = "+quoteJS("#/subject?"+asked.Encode()))
			b.until(t, h.name+" is the title of what is drawn", drawn+` && document.querySelector('.uses') && `+
				`document.querySelector('.rights') && document.querySelector('.unused') && document.querySelector('#main .keep') && `+
				readsIn("h1", h.read()))
			if asked := s.last("suggest").Get("subject"); asked != h.raw {
				t.Errorf("%s: the server was asked about %.100q", h.name, asked)
			}
			b.until(t, "nothing became markup", unharmed)
		}
		b.do(t, `for (const d of document.querySelectorAll('#main details')) d.open = true`)
		for _, in := range []string{".uses", ".rights", "[aria-label='What it never did']", ".keeps", ".failures", ".gaps"} {
			for _, h := range hostile {
				if !value[bool](t, b, h.name, readsIn(in, h.read())) {
					t.Errorf("%s is not in %s, or does not read %.100q", h.name, in, h.read())
				}
			}
		}
	})
	t.Run("links carry what they show", func(t *testing.T) {
		b.load(t, s.url+"#/subjects?cluster=sample")
		b.until(t, "the list", `document.querySelector('.ranking a')`)
		users := value[[]string](t, b, "users", `[...document.querySelectorAll('.ranking tbody a')].map(a => new `+
			`URLSearchParams(a.getAttribute('href').split(/\?(.*)/s)[1]).get('subject'))`)
		if !reflect.DeepEqual(users, texts) {
			t.Errorf("links lead to %.300q", users)
		}
	})
	t.Run("a finding", func(t *testing.T) {
		b.load(t, s.url+"#/findings?cluster=sample")
		for i, h := range hostile {
			b.do(t, fmt.Sprintf(`location.hash = '#/findings?cluster=sample&since=2026-11-20T11:36:01Z&finding=%032d'`, i))
			b.until(t, h.name+" is shown",
				fmt.Sprintf(`document.querySelector('#drawer .evidence') && `+
					`document.querySelector('#drawer').textContent.includes('%032d') && %s`, i, readsIn("#drawer .evidence", h.read())))
			b.until(t, "nothing became markup", unharmed)
		}
	})
	t.Run("a refusal", func(t *testing.T) {
		b.load(t, s.url+"#/?cluster=sample&why=x")
		b.until(t, "it is drawn", `document.querySelector('#drawer .denial')`)
		b.do(t, `document.querySelector('#drawer .denial').open = true`)
		b.until(t, "it is explained", `document.querySelector('#drawer .denial .grants')`)
		if s.last("explain-deny").Get("cluster") != "sample" {
			t.Errorf("asked about %v", s.last("explain-deny"))
		}
		for _, in := range []string{"#drawer .denial .grants", "#drawer .denial .chain", "#drawer .denial .plain"} {
			for _, h := range hostile {
				if !value[bool](t, b, h.name, readsIn(in, h.read())) {
					t.Errorf("%s is not in %s, or does not read %.100q", h.name, in, h.read())
				}
			}
		}
		b.until(t, "nothing became markup", unharmed)
	})
	t.Run("narrow", func(t *testing.T) {
		b.run(t, "narrow", chromedp.EmulateViewport(390, 844))
		for _, hash := range []string{"#/subject?cluster=sample&subject=x", "#/subjects?cluster=sample", "#/findings?cluster=sample",
			"#/access?cluster=sample&verb=get&resource=x", "#/access?cluster=sample&subject=x", "#/lineage?cluster=sample&subject=x",
			"#/?cluster=sample"} {
			b.load(t, s.url+hash)
			b.until(t, "it is drawn", `document.querySelector('main .rows') && !document.querySelector('.loading')`)
			if over := value[float64](t, b, "width", `document.scrollingElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s is %v pixels wider than the screen", hash, over)
			}
		}
	})
	b.blameless(t)
}

// read is how a string has to read on the page.
func (h hostileText) read() string {
	if h.shown == "" {
		return h.raw
	}
	return h.shown
}

// readsIn is an expression: whether the text stands in any element of a selector.
func readsIn(selector, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%s)].some(e => e.textContent.includes(%s))`, quoteJS(selector), quoteJS(text))
}

// TestBrowserManifest holds the files the page offers to what they are made of: YAML reads
// back as the objects, a shell reads back the words, and nothing a name holds ends a comment.
func TestBrowserManifest(t *testing.T) {
	needPage(t)
	s := openStub(t)
	b := openBrowser(t, s.url)
	b.load(t, s.url)
	const with = `import('/manifest.js').then(m => `
	var texts []string
	for _, h := range hostile {
		texts = append(texts, h.raw)
	}
	texts = append(texts, "true", "no", "null", "1", "1e3", "0x1f", "~", "-", "- a", "a: b", "a #b", "#a", "", " a ", "2026-11-20", "0o7",
		"1_000", "=", "<<", "!x", "&a", "*a", "%x", "@a", "`a", "|", ">", "? a", "[a]", "{a}", "é", "a\u2028b", "a\u0085b", "\ufeff")

	answer := answersOf(texts)["suggest"].(func(url.Values) any)(url.Values{"subject": {texts[0]}})
	raw, err := json.Marshal(answer.(object)["suggestions"].([]any)[0])
	if err != nil {
		t.Fatal(err)
	}
	suggestion := decode(t, raw).(object)
	for part, objects := range map[string][]any{"change": suggestion["apply"].([]any), "rollback": suggestion["rollback"].([]any)} {
		t.Run(part, func(t *testing.T) {
			text := value[string](t, b, part, with+`m.`+part+`(JSON.parse(`+quoteJS(string(raw))+`), "sample"))`)
			var body strings.Builder
			for _, line := range strings.SplitAfter(text, "\n") {
				if !strings.HasPrefix(line, "#") {
					body.WriteString(line)
				}
			}
			docs := strings.Split(body.String(), "\n---\n")
			if len(docs) != len(objects) {
				t.Fatalf("%d documents of %d objects:\n%.2000s", len(docs), len(objects), text)
			}
			for i, doc := range docs {
				back, err := yaml.YAMLToJSONStrict([]byte(doc))
				if err != nil {
					t.Errorf("%v in\n%s", err, doc)
					continue
				}
				if got := decode(t, back); !reflect.DeepEqual(got, objects[i]) {
					t.Errorf("%q reads back as\n%v, want\n%v", doc, got, objects[i])
				}
			}
		})
	}
	t.Run("words of a shell", func(t *testing.T) {
		for _, s := range texts {
			if strings.ContainsRune(s, 0) {
				continue // no argument can hold it
			}
			word := value[string](t, b, "word", with+`m.word(`+quoteJS(s)+`))`)
			out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+word).Output()
			if err != nil || string(out) != s {
				t.Errorf("%q is written %q and reads %q (%v)", s, word, out, err)
			}
		}
	})
	b.blameless(t)
}
