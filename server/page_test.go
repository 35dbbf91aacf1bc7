package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/config"
)

const pageToken = "0123456789abcdef-token"

// openPage is the page's listener with an API that only says that it was reached.
func openPage(t *testing.T, token bool, hosts ...string) http.Handler {
	t.Helper()
	sys := &system{log: zap.NewNop(), reg: prometheus.NewRegistry()}
	sys.cfg.UI.Hosts = hosts
	if token {
		sys.cfg.UI.TokenFile = filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(sys.cfg.UI.TokenFile, []byte(pageToken+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "reached") })
	h, err := newPage(sys, api, &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 8080})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestPageGuard(t *testing.T) {
	const api = "/api/v1/clusters"
	bearer := "Bearer " + pageToken
	for _, c := range []struct {
		name    string
		token   bool
		hosts   []string
		host    string
		path    string
		headers map[string]string
		want    int
	}{
		{name: "loopback address", host: "127.0.0.1:8080", path: api, want: 200},
		{name: "loopback v6", host: "[::1]:8080", path: api, want: 200},
		{name: "localhost", host: "LocalHost.:8080", path: api, want: 200},
		{name: "its own address", host: "10.1.2.3:8080", path: api, want: 200},
		{name: "a name rebound to this address", host: "attacker.example:8080", path: api, want: 421},
		{name: "a name that begins like a known one", host: "localhost.attacker.example", path: api, want: 421},
		{name: "a name that looks like an address", host: "127.0.0.1.attacker.example", path: api, want: 421},
		{name: "another address without a token", host: "192.168.7.7:8080", path: api, want: 421},
		{name: "a configured name", hosts: []string{"Retrial.Example."}, host: "retrial.example:443", path: api, want: 200},
		{name: "not below a configured name", hosts: []string{"retrial.example"}, host: "x.retrial.example", path: api, want: 421},
		{name: "rebound name for the page", host: "attacker.example", path: "/", want: 421},
		{name: "rebound name for metrics", host: "attacker.example", path: "/metrics", want: 421},
		{name: "rebound name with the token", token: true, host: "attacker.example", path: api,
			headers: map[string]string{"Authorization": bearer}, want: 421},

		{name: "own origin", host: "localhost:8080", path: api, headers: map[string]string{"Origin": "http://localhost:8080"}, want: 200},
		{name: "foreign origin", host: "localhost:8080", path: api, headers: map[string]string{"Origin": "https://attacker.example"},
			want: 403},
		{name: "origin of another port", host: "localhost:8080", path: api, headers: map[string]string{"Origin": "http://localhost:3000"},
			want: 403},
		{name: "opaque origin", host: "localhost:8080", path: api, headers: map[string]string{"Origin": "null"}, want: 403},
		{name: "the page's own request", host: "localhost:8080", path: api,
			headers: map[string]string{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, want: 200},
		{name: "typed by a person", host: "localhost:8080", path: api,
			headers: map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, want: 200},
		{name: "script of another site", host: "localhost:8080", path: api,
			headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, want: 403},
		{name: "image on another port of localhost", host: "localhost:8080", path: api,
			headers: map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, want: 403},
		{name: "link to the page", host: "localhost:8080", path: "/", headers: map[string]string{"Sec-Fetch-Site": "cross-site",
			"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, want: 200},
		{name: "link to the API", host: "localhost:8080", path: api, headers: map[string]string{"Sec-Fetch-Site": "cross-site",
			"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, want: 403},
		{name: "frame in another site", host: "localhost:8080", path: "/", headers: map[string]string{"Sec-Fetch-Site": "cross-site",
			"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, want: 403},

		{name: "bearer token", token: true, host: "10.9.9.9:8080", path: api, headers: map[string]string{"Authorization": bearer},
			want: 200},
		{name: "scheme in lower case", token: true, host: "10.9.9.9:8080", path: api,
			headers: map[string]string{"Authorization": "bearer " + pageToken}, want: 200},
		{name: "token as a password", token: true, host: "localhost", path: "/",
			headers: map[string]string{"Authorization": basic("anybody", pageToken)}, want: 200},
		{name: "no token for the API", token: true, host: "localhost", path: api, want: 401},
		{name: "no token for the page", token: true, host: "localhost", path: "/", want: 401},
		{name: "no token for metrics", token: true, host: "localhost", path: "/metrics", want: 401},
		{name: "wrong token", token: true, host: "localhost", path: api,
			headers: map[string]string{"Authorization": "Bearer 0123456789abcdef-tokeN"}, want: 401},
		{name: "beginning of the token", token: true, host: "localhost", path: api,
			headers: map[string]string{"Authorization": "Bearer 0123456789abcdef"}, want: 401},
		{name: "empty token", token: true, host: "localhost", path: api, headers: map[string]string{"Authorization": "Bearer "}, want: 401},
		{name: "token as the user's name", token: true, host: "localhost", path: api,
			headers: map[string]string{"Authorization": basic(pageToken, "")}, want: 401},
		{name: "token in the query", token: true, host: "localhost", path: api + "?token=" + pageToken, want: 401},

		{name: "probe without token", token: true, host: "localhost", path: "/healthz", want: 200},
		{name: "probe under the pod's address", hosts: []string{"retrial.example"}, host: "10.244.0.7:8080", path: "/healthz", want: 200},
		{name: "probe's path in other letters", token: true, host: "localhost", path: "/healthz/../api/v1/clusters", want: 307},
		{name: "probe's path with more", token: true, host: "localhost", path: "/healthz/x", want: 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "http://placeholder"+c.path, nil)
			r.Host = c.host
			for k, v := range c.headers {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			openPage(t, c.token, c.hosts...).ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("status %d, want %d: %s", w.Code, c.want, w.Body)
			}
			if reached := w.Body.String() == "reached"; reached != (c.want == 200 && strings.HasPrefix(c.path, "/api/")) {
				t.Errorf("API reached: %v", reached)
			}
			if c.want == 401 && w.Header().Get("WWW-Authenticate") == "" {
				t.Error("browsers are not told to ask for the token")
			}
		})
	}
}

func basic(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

func TestPageRefusesAShortToken(t *testing.T) {
	sys := &system{log: zap.NewNop(), reg: prometheus.NewRegistry()}
	sys.cfg.UI.TokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(sys.cfg.UI.TokenFile, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newPage(sys, http.NotFoundHandler(), &net.TCPAddr{}); err == nil || !strings.Contains(err.Error(), "at least 16") {
		t.Fatalf("got %v", err)
	}
}

// TestPageNeedsATokenBeyondLoopback: the configuration refuses what the guard would have to
// leave open.
func TestPageNeedsATokenBeyondLoopback(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:0": true, "[::1]:8080": true, "localhost:8080": true, "0.0.0.0:8080": false,
		":8080": false, "[::]:8080": false, "192.0.2.1:8080": false} {
		cfg := config.Default()
		cfg.UI.Listen = listen
		if err := cfg.Validate(); (err == nil) != want {
			t.Errorf("%s without a token: %v", listen, err)
		}
		cfg.UI.TokenFile = "token"
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s with a token: %v", listen, err)
		}
	}
}

// TestPageFiles: whatever is answered, a browser must neither guess its type nor run what
// it did not come with.
func TestPageFiles(t *testing.T) {
	h := openPage(t, false)
	get := func(method, path, tag string) *http.Response {
		r := httptest.NewRequest(method, "http://localhost"+path, nil)
		if tag != "" {
			r.Header.Set("If-None-Match", tag)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	kinds := map[string]string{"/": "text/html; charset=utf-8", "/icon.svg": "image/svg+xml"}
	index, _ := io.ReadAll(get(http.MethodGet, "/", "").Body)
	for _, file := range regexp.MustCompile(`(?:src|href)="\.(/assets/[^"]+)"`).FindAllSubmatch(index, -1) {
		kinds[string(file[1])] = map[string]string{".js": "text/javascript; charset=utf-8",
			".css": "text/css; charset=utf-8"}[filepath.Ext(string(file[1]))]
	}
	if len(kinds) < 4 {
		t.Fatalf("the page names %v", kinds)
	}
	for path, kind := range kinds {
		res := get(http.MethodGet, path, "")
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != kind || len(body) == 0 {
			t.Errorf("%s: %d %s, %d bytes", path, res.StatusCode, res.Header.Get("Content-Type"), len(body))
		}
		csp := res.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
			"require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: policy %q lacks %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: types may be guessed", path)
		}
		if again := get(http.MethodGet, path, res.Header.Get("ETag")); again.StatusCode != 304 {
			t.Errorf("%s: %d for what the browser has", path, again.StatusCode)
		}
	}
	for _, path := range []string{"/next/", "/assets/", "/assets/index.js", "/%2e%2e/ui.go", "/nothing"} {
		if res := get(http.MethodGet, path, ""); res.StatusCode != 404 && res.StatusCode != 301 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	if res := get(http.MethodPost, "/", ""); res.StatusCode != 405 {
		t.Errorf("POST: %d", res.StatusCode)
	}
}
