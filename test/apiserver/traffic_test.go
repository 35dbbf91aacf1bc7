package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// call is one request that reached the apiserver under an audit ID of ours.
type call struct {
	who    string
	line   string // method and URI
	status int
}

// ledger gives every request of its clients an audit ID of its own, and keeps what was
// answered: what must be found again in the product, request by request.
type ledger struct {
	prefix string
	mu     sync.Mutex
	calls  map[string]call
}

func newLedger(prefix string) *ledger { return &ledger{prefix: prefix, calls: map[string]call{}} }

// watch makes a client's requests go through the ledger. client-go's streams use it as well.
func (l *ledger) watch(who string, cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &writer{l, who, next} })
	return cfg
}

// all returns a copy of what is in the ledger, by audit ID.
func (l *ledger) all() map[string]call {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]call, len(l.calls))
	for id, c := range l.calls {
		out[id] = c
	}
	return out
}

type writer struct {
	*ledger
	who  string
	next http.RoundTripper
}

func (w *writer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	w.mu.Lock()
	id := fmt.Sprintf("%s-%05d", w.prefix, len(w.calls))
	w.calls[id] = call{who: w.who, line: r.Method + " " + r.URL.RequestURI()}
	w.mu.Unlock()
	r.Header.Set("Audit-ID", id)
	res, err := w.next.RoundTrip(r)
	if err == nil {
		w.mu.Lock()
		c := w.calls[id]
		c.status = res.StatusCode
		w.calls[id] = c
		w.mu.Unlock()
	}
	return res, err
}

// person is somebody who makes requests.
type person struct {
	name   string
	host   string
	client *http.Client
	header http.Header // of every request
}

func newPerson(t testing.TB, l *ledger, name string, cfg *rest.Config) *person {
	t.Helper()
	client, err := rest.HTTPClientFor(l.watch(name, cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return &person{name: name, host: cfg.Host, client: client, header: http.Header{}}
}

// as returns the same client with impersonation headers: name, value, name, value …
func (p *person) as(header ...string) *person {
	q := *p
	q.header = p.header.Clone()
	for i := 0; i < len(header); i += 2 {
		q.header.Add(header[i], header[i+1])
	}
	return &q
}

// ask is one request: "GET /api/v1/pods", and its body. A body that begins with { is JSON;
// others are preceded by their content type and a space.
type ask struct {
	line string
	body string
	want []int // status codes; none: anything but 401 and 403
}

// do makes a request and returns the answer's status and body.
func (p *person) do(t testing.TB, a ask) (int, string) {
	t.Helper()
	method, uri, _ := strings.Cut(a.line, " ")
	var body io.Reader
	kind, text := "application/json", a.body
	if text != "" {
		if text[0] != '{' && text[0] != '[' {
			kind, text, _ = strings.Cut(text, " ")
		}
		body = bytes.NewReader([]byte(text))
	}
	req, err := http.NewRequestWithContext(t.Context(), method, p.host, body)
	if err != nil {
		t.Fatal(err)
	}
	// The URI goes out as it is written here, however odd it is.
	if req.URL, err = req.URL.Parse(p.host); err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(uri, "?")
	req.URL.Path, req.URL.RawQuery = path, query
	if strings.Contains(path, "%") || strings.HasPrefix(path, "//") {
		req.URL.Opaque = "//" + req.URL.Host + path
		req.URL.Path = ""
	}
	req.Header = p.header.Clone()
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	res, err := p.client.Do(req)
	if err != nil {
		t.Fatalf("%s: %s: %v", p.name, a.line, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %s: %v", p.name, a.line, err)
	}
	refused := res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden
	if len(a.want) == 0 && refused || len(a.want) > 0 && !slices.Contains(a.want, res.StatusCode) {
		t.Errorf("%s: %s: %d, want %v\n%.500s", p.name, a.line, res.StatusCode, a.want, answer)
	}
	return res.StatusCode, string(answer)
}

// must makes requests one after the other.
func (p *person) must(t testing.TB, asks ...ask) {
	t.Helper()
	for _, a := range asks {
		p.do(t, a)
	}
}

// may are requests that are authorized, whatever becomes of them.
func (p *person) may(t testing.TB, lines ...string) {
	t.Helper()
	for _, l := range lines {
		line, body := cutBody(l)
		p.do(t, ask{line: line, body: body})
	}
}

// mayNot are requests that are answered 403.
func (p *person) mayNot(t testing.TB, lines ...string) {
	t.Helper()
	for _, l := range lines {
		line, body := cutBody(l)
		p.do(t, ask{line: line, body: body, want: []int{http.StatusForbidden}})
	}
}

// cutBody splits "POST /path BODY".
func cutBody(l string) (line, body string) {
	parts := strings.SplitN(l, " ", 3)
	if len(parts) < 3 {
		return l, ""
	}
	return parts[0] + " " + parts[1], parts[2]
}
