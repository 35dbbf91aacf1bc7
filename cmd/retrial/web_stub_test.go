package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/retrial-io/retrial/dashboards/ui"
	"github.com/retrial-io/retrial/query/api"
)

// stub serves the pages with answers of a test's own: what no real store would hold, and servers that fail.
type stub struct {
	url string

	mu      sync.Mutex
	answers map[string]any // by route; a string is an error's text, a func is asked
	asked   map[string][]url.Values
}

// openStub starts one without answers: those a test does not set are answered with 404.
func openStub(t *testing.T) *stub {
	t.Helper()
	s := &stub{asked: map[string][]url.Values{}, answers: map[string]any{}}
	mux := http.NewServeMux()
	mux.Handle("/", ui.Handler())
	mux.HandleFunc(apiRoot, func(w http.ResponseWriter, r *http.Request) {
		route := strings.TrimPrefix(r.URL.Path, apiRoot)
		s.mu.Lock()
		s.asked[route] = append(s.asked[route], r.URL.Query())
		answer, ok := s.answers[route]
		s.mu.Unlock()
		if f, is := answer.(func(url.Values) any); is {
			answer = f(r.URL.Query())
		}
		switch text, failed := answer.(string); {
		case !ok:
			api.Plain(w, http.StatusNotFound, "no answer to "+route)
		case failed:
			api.Plain(w, http.StatusInternalServerError, text)
		default:
			api.Respond(w, answer)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL + "/"
	return s
}

func (s *stub) set(route string, answer any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[route] = answer
}

// all sets the answers to all routes.
func (s *stub) all(answers map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = maps.Clone(answers)
}

// last returns the latest question to a route.
func (s *stub) last(route string) url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.asked[route]); n > 0 {
		return s.asked[route][n-1]
	}
	return nil
}

// routes returns what was asked since the last time.
func (s *stub) routes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	routes := slices.Sorted(maps.Keys(s.asked))
	clear(s.asked)
	return routes
}

// clustersAnswer is one cluster whose newest event is of this minute.
func clustersAnswer(minute int) object {
	return object{"clusters": []any{object{"name": "sample", "events": 10, "first": "2026-11-20T11:36:00Z",
		"last": fmt.Sprintf("2026-11-20T11:%d:00Z", minute)}}, "quiet": []any{}}
}

// answersOf answers every question of the OpenAPI document by what make makes of its schema.
func answersOf(c *contract, make func(*schema) any) map[string]any {
	answers := map[string]any{}
	for path, operations := range c.Paths {
		if _, ok := operations["get"]; ok || slices.Contains(askedByPost, path) {
			answers[strings.TrimPrefix(path, apiRoot)] = make(c.answerOf(path))
		}
	}
	answers["clusters"] = clustersAnswer(45)
	answers["status"] = object{"version": "test", "lag": 0, "policyLag": 0, "deadLetterLag": 0, "corrections": 0, "cacheLags": []any{}}
	return answers
}

// bareAnswers have nothing in them that need not be.
func bareAnswers(c *contract) map[string]any { return answersOf(c, c.bare) }

// hostileAnswers have one of the texts wherever a text can be.
func hostileAnswers(c *contract, texts []string) map[string]any {
	answers := answersOf(c, func(s *schema) any { return c.filled(s, texts) })
	const at = "2026-11-20T11:40:00Z"
	for i, r := range answers["why"].(object)["requests"].([]any) {
		s := texts[i]
		r.(object)["event"] = object{"auditID": s, "verb": s, "requestURI": "/api/v1/namespaces/a/pods/" + s,
			"requestReceivedTimestamp": at, "user": object{"username": s, "groups": []string{s}},
			"impersonatedUser": object{"username": s, "groups": texts},
			"sourceIPs":        texts, "userAgent": s, "responseStatus": object{"code": 403, "message": s}}
		r.(object)["verdict"].(object)["recorded"] = "forbid"
	}
	rows := []any{}
	for _, s := range texts {
		rows = append(rows, []any{s, 3, 1, 1, at, at})
	}
	answers["ask"].(object)["rows"] = rows
	for _, route := range []string{"events", "findings"} {
		answers[route].(object)["older"] = "" // else the list never ends
	}
	connection := answers["connection"].(object)
	connection["steps"] = append([]any{object{"id": "registered", "title": texts[0], "state": "done", "text": texts[1]}},
		connection["steps"].([]any)...)
	answers["complete"] = func(q url.Values) any {
		// q3 is completed by the fourth four, so that none is cut off.
		var n int
		if _, err := fmt.Sscanf(q.Get("prefix"), "q%d", &n); err != nil {
			n = 0
		}
		values := []any{}
		for _, s := range fourOf(texts, n) {
			values = append(values, object{"value": q.Get("prefix") + s, "requests": 1, "kind": s})
		}
		return object{"kind": q.Get("kind"), "values": values, "more": false}
	}
	return answers
}

// plainAnswers have a plain word wherever a text can be.
func plainAnswers(c *contract) map[string]any {
	return hostileAnswers(c, []string{"alpha", "beta", "gamma", "delta"})
}

// webPages are the pages with everything that can be open beside them.
var webPages = []struct{ name, hash string }{
	{"today", "#/?cluster=sample"},
	{"explore", "#/explore?cluster=sample"},
	{"request", "#/events/x?cluster=sample"},
	{"request beside a list", "#/explore?cluster=sample&why=x"},
	{"findings", "#/findings?cluster=sample"},
	{"finding", "#/findings?cluster=sample&finding=x"},
	{"subjects", "#/subjects?cluster=sample&system=yes"},
	{"subject", "#/subjects/x?cluster=sample"},
	{"credential", "#/subjects?cluster=sample&system=yes&credential=x"},
	{"access", "#/access?cluster=sample"},
	{"who can", "#/access?cluster=sample&verb=get&resource=x&since=2026-11-20T11:37:00Z"},
	{"what can", "#/access?cluster=sample&subject=x&since=2026-11-20T11:37:00Z"},
	{"changes", "#/changes?cluster=sample"},
	{"change", "#/changes?cluster=sample&id=x"},
	{"what if", "#/whatif?cluster=sample&delete=ClusterRoleBinding/x"},
	{"trust", "#/trust?cluster=sample"},
}

// notFailed: no page fell over its answers.
const notFailed = `![...document.querySelectorAll('h2')].some(h => h.innerText === 'This page failed')`

// TestWebStates shows every page in the states that a good store seldom has: without anything in the answers, with hostile strings wherever
// a string can be, and without any answer.
func TestWebStates(t *testing.T) {
	needPage(t)
	c, s := needContract(t), openStub(t)
	b := openBrowser(t, s.url)
	show := func(t *testing.T, hash string) {
		t.Helper()
		b.load(t, s.url+hash)
		b.until(t, hash+" is there", settled+" || !("+notFailed+")")
		if !value[bool](t, b, "it stands", notFailed) {
			t.Fatalf("%s fell: %s", hash, b.look("document.querySelector('#main').innerText"))
		}
	}
	t.Run("empty", func(t *testing.T) {
		s.all(bareAnswers(c))
		for _, page := range webPages {
			t.Run(page.name, func(t *testing.T) {
				show(t, page.hash)
				b.holds(t, page.name+", empty")
			})
		}
		b.blameless(t)
	})
	t.Run("hostile", func(t *testing.T) {
		s.all(hostileAnswers(c, hostileTexts()))
		for _, page := range webPages {
			t.Run(page.name, func(t *testing.T) {
				show(t, page.hash)
				b.innocent(t, page.name)
				b.holds(t, page.name+", hostile")
			})
		}
		b.blameless(t)
		hostileEverywhere(t, s, b)
		hostileCompletions(t, s, b)
	})
	t.Run("failing", func(t *testing.T) { failing(t, s, b, c) })
	t.Run("slow", func(t *testing.T) { slow(t, s, b, c) })
	t.Run("news", func(t *testing.T) { news(t, s, b, c) })
}

// hostileEverywhere looks every hostile string up where it has to be.
func hostileEverywhere(t *testing.T, s *stub, b *browser) {
	b.load(t, s.url+"#/?cluster=sample")
	for hash, in := range map[string][]string{
		"#/explore?cluster=sample&cols=subject,request,uri,agent": {"[role=table] [href*='/subjects/']", "[role=table]"},
		"#/findings?cluster=sample":                               {"[aria-label=Findings]", "[aria-label=Rules]"},
		"#/subjects?cluster=sample&system=yes":                    {"[role=table]"},
		"#/subjects/x?cluster=sample&rows=all": {"#main table", "[role=table][aria-label=Bindings]", "[aria-label=Findings]",
			"#main li a"},
		"#/subjects?cluster=sample&system=yes&credential=x":    {"dialog[open]"},
		"#/access?cluster=sample&verb=get&resource=x":          {`[role=table][aria-label="Who can"]`, "#main p"},
		"#/access?cluster=sample&subject=x":                    {`[role=table][aria-label="What it can do"]`, "#main p"},
		"#/access?cluster=sample&since=2026-11-20T11:37:00Z":   {`[role=table][aria-label="What changed"]`},
		"#/access?cluster=sample&verb=get&resource=x&view=map": {"#main table"},
		"#/changes?cluster=sample":                             {"#main [role=table]"},
		"#/trust?cluster=sample":                               {"#main ul", "#main details", "[aria-label=Classes]"},
		"#/whatif?cluster=sample&delete=ClusterRoleBinding/x&rows=all": {`[role=table][aria-label="Accesses that change"]`,
			`[aria-label="What it does to the policy"]`, "#main section ul"},
	} {
		b.visit(t, hash)
		if strings.Contains(hash, "credential=") {
			b.until(t, "the credential", `document.querySelector('dialog[open] article')`)
		}
		for _, selector := range in {
			b.readable(t, hash, selector)
		}
		b.innocent(t, hash)
	}
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			b.visit(t, "#/events/x?"+url.Values{"cluster": {"sample"}, "request": {h.raw}}.Encode())
			for _, in := range []string{"h2", "#main ol", "#main dl", "#main section"} {
				b.until(t, "the request in "+in, readsIn(in, h.read()))
			}
			b.innocent(t, "a request")
			b.visit(t, "#/findings?"+url.Values{"cluster": {"sample"}, "finding": {h.raw}}.Encode())
			b.until(t, "the finding", settled+" && "+readsIn("dialog[open] ol", h.read()))
			b.innocent(t, "a finding")
			b.visit(t, "#/subjects/"+url.PathEscape(h.raw)+"?cluster=sample")
			b.until(t, "the subject", readsIn("h1", h.read()))
			if asked := s.last("suggest").Get("subject"); asked != h.raw {
				t.Errorf("the server was asked about %.100q", asked)
			}
			b.innocent(t, "a subject")
		})
	}
	t.Run("links carry what they show", func(t *testing.T) {
		b.visit(t, "#/subjects?cluster=sample&system=yes")
		for _, h := range hostile {
			if !value[bool](t, b, h.name, `[...document.querySelectorAll('[role=table] a[data-row]')].some(a => `+
				`decodeURIComponent(a.getAttribute('href').split('?')[0]) === `+quoteJS("#/subjects/"+h.raw)+`)`) {
				t.Errorf("no link leads to %s", h.name)
			}
		}
	})
	b.blameless(t)
}

// fourOf returns the nth four elements of a list, none after its end.
func fourOf[T any](list []T, n int) []T { return list[min(4*n, len(list)):min(4*n+4, len(list))] }

// hostileCompletions has every completion offer the hostile strings.
func hostileCompletions(t *testing.T, s *stub, b *browser) {
	offers := func(t *testing.T, what, selector string, n int) {
		t.Helper()
		for _, h := range fourOf(hostile, n) {
			b.until(t, what+" offers "+h.name, readsIn(selector, fmt.Sprintf("q%d", n)+h.read()))
		}
		b.innocent(t, what)
	}
	// write replaces what stands in the field that has the focus.
	write := func(t *testing.T, text string) {
		t.Helper()
		b.do(t, `document.activeElement.select()`)
		b.press(t, text)
	}
	rounds := (len(hostile) + 3) / 4
	t.Run("search", func(t *testing.T) {
		b.load(t, s.url+"#/?cluster=sample")
		b.until(t, "it is there", settled)
		b.stroke(t, "/")
		for n := range rounds {
			b.until(t, "search is open", `document.activeElement?.getAttribute('role') === 'combobox'`)
			write(t, fmt.Sprintf("q%d", n))
			offers(t, "search", "[role=option]", n)
		}
		b.accessible(t, "hostile search")
	})
	t.Run("explore", func(t *testing.T) {
		b.load(t, s.url+"#/explore?cluster=sample")
		b.until(t, "it is there", settled)
		b.do(t, `document.querySelector('[aria-label=Filters] input').focus()`)
		for n := range rounds {
			write(t, fmt.Sprintf("q%d", n))
			offers(t, "anything", "[role=option]", n)
			write(t, fmt.Sprintf("namespace=q%d", n))
			offers(t, "a column", "[role=option]", n)
		}
		b.accessible(t, "hostile filters")
	})
	t.Run("access", func(t *testing.T) {
		b.load(t, s.url+"#/access?cluster=sample")
		b.until(t, "it is there", settled)
		const inputs = `document.querySelectorAll('#main form[aria-label] input')`
		const options = `[...document.querySelectorAll('datalist option')]`
		fields := value[[]string](t, b, "the fields", `[...`+inputs+`].map(i => i.ariaLabel)`)
		if len(fields) < 6 {
			t.Fatalf("the forms have %v", fields)
		}
		for i, field := range fields {
			b.do(t, fmt.Sprintf(inputs+`[%d].focus()`, i))
			for n := range rounds {
				if n > 0 && i > 0 {
					break // all fields are made alike
				}
				write(t, fmt.Sprintf("q%d", n))
				b.until(t, field+" is completed", fmt.Sprintf(options+`.some(o => o.value.startsWith('q%d'))`, n))
				for _, h := range fourOf(hostile, n) {
					if !value[bool](t, b, h.name, options+`.some(o => o.getAttribute('value') === `+
						quoteJS(fmt.Sprintf("q%d", n)+h.raw)+`)`) {
						t.Errorf("%s does not offer %s", field, h.name)
					}
				}
				b.innocent(t, field)
			}
		}
	})
	b.blameless(t)
}

// failing has each question of each page fail, and all of them: what went wrong is said where it is missing, the rest stands, and asking
// again helps.
func failing(t *testing.T, s *stub, b *browser, c *contract) {
	const words = "the store took too long; ask for a shorter range of time"
	const again = `[...document.querySelectorAll('#main button, dialog[open] button')].filter(b => b.innerText === 'Try again')`
	good := plainAnswers(c)
	bad := map[string]any{}
	for route := range good {
		bad[route] = words
	}
	for _, known := range []string{"clusters", "status"} {
		bad[known] = good[known]
	}
	// What only helps is left out where it is not known.
	silent := []string{"clusters", "status", "complete", "connection", "escalations", "classes", "today: completeness", "request: can",
		"request beside a list: can"}
	for _, page := range webPages {
		t.Run(page.name, func(t *testing.T) {
			s.all(bad)
			b.load(t, s.url+page.hash)
			b.until(t, "it says so", settled+` && document.querySelector('[role=alert]')`)
			b.holds(t, page.name+", failing")
			s.all(good)
			b.do(t, again+`.forEach(b => b.click())`)
			b.until(t, "all is there", settled+` && `+again+`.length === 0 && `+notFailed)

			s.routes()
			b.load(t, s.url+page.hash)
			b.until(t, "it is there", settled)
			for _, route := range s.routes() {
				if slices.Contains(silent, route) || slices.Contains(silent, page.name+": "+route) {
					continue
				}
				s.set(route, words)
				b.load(t, s.url+page.hash)
				b.until(t, route+" is told to fail", settled+` && `+readsIn("[role=alert]", words))
				if !value[bool](t, b, "the rest stands", notFailed+` && document.querySelector('#main h1') !== null`) {
					t.Errorf("without %s the page falls: %s", route, b.look("document.body.innerText"))
				}
				s.set(route, good[route])
			}
		})
	}
	b.mu.Lock()
	b.faults = slices.DeleteFunc(b.faults, func(f string) bool { return strings.Contains(f, "status of 500") })
	b.mu.Unlock()
	b.blameless(t)
}

// slow has an answer come after the one to a newer question: it does not take its place.
func slow(t *testing.T, s *stub, b *browser, c *contract) {
	good := plainAnswers(c)
	s.all(good)
	release := make(chan struct{})
	s.set("subject", func(q url.Values) any {
		if q.Get("subject") == "slow" {
			<-release
		}
		answer := maps.Clone(good["subject"].(object))
		answer["groups"] = [][]string{{"group of " + q.Get("subject")}}
		return answer
	})
	b.load(t, s.url+"#/subjects/slow?cluster=sample")
	b.until(t, "the page waits", `document.querySelector('#main[aria-busy]') && document.querySelector('h1')`)
	b.do(t, `location.hash = '#/subjects/quick?cluster=sample'`)
	b.until(t, "the newer answer", readsIn("#main", "group of quick"))
	close(release)
	b.run(t, "back", chromedp.NavigateBack())
	b.until(t, "the older one, where it belongs", readsIn("#main", "group of slow")+` && !`+readsIn("#main", "group of quick"))
	b.blameless(t)
}

// news has newer events come while somebody reads: nothing moves until it is asked for.
func news(t *testing.T, s *stub, b *browser, c *contract) {
	s.all(plainAnswers(c))
	b.load(t, s.url+"#/subjects/alpha?cluster=sample")
	b.until(t, "the page", settled+` && document.querySelector('#main table')`)
	b.do(t, `document.querySelector('#main table a').focus(); window.before = document.querySelector('#main table')`)
	s.set("clusters", clustersAnswer(46))
	b.until(t, "it says that there is news, and nothing moved",
		readsIn("header button", "Show what is new")+` && document.contains(window.before)`)
	if to := s.last("subject").Get("to"); to != "2026-11-20T11:45:00.000Z" {
		t.Errorf("asked until %s before it was wanted", to)
	}
	b.click(t, "header button", "Show what is new")
	b.until(t, "it is shown", settled+` && !`+readsIn("header button", "Show what is new"))
	if to := s.last("subject").Get("to"); to != "2026-11-20T11:46:00.000Z" {
		t.Errorf("asked until %s", to)
	}
	b.blameless(t)
}
