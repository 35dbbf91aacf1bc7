package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/retrial-io/retrial/dashboards/ui"
)

// newPage is what the page's listener serves: the files, the API and the metrics, behind
// the checks a listener that browsers can reach needs.
func newPage(sys *system, api http.Handler, addr net.Addr) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", api)
	mux.Handle("GET /metrics", promhttp.HandlerFor(sys.reg, promhttp.HandlerOpts{Registry: sys.reg}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := sys.ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("/", ui.Handler())
	g := guard{next: mux, hosts: sys.cfg.UI.Hosts, addr: addr.String()}
	if sys.cfg.UI.TokenFile != "" {
		token, err := readSecret("ui-token-file", sys.cfg.UI.TokenFile)
		if err != nil {
			return nil, err
		}
		if len(token) < 16 {
			return nil, fmt.Errorf("ui-token-file: the token has %d characters; use at least 16", len(token))
		}
		hash := sha256.Sum256([]byte(token))
		g.token = hash[:]
	}
	return g, nil
}

// guard keeps other sites and other machines from talking to the page's listener: the Host
// must be one the listener is known by (a name that was rebound to this address is not),
// a request that says which site it comes from must come from this one, and with a token
// configured everything but the probes needs it.
type guard struct {
	next  http.Handler
	hosts []string
	addr  string
	token []byte // SHA-256; nil: none needed
}

func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.knownHost(r.Host) {
		http.Error(w, "this address is not known under that host name; add it with --ui-hosts", http.StatusMisdirectedRequest)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
			http.Error(w, "requests from other sites are refused", http.StatusForbidden)
			return
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		http.Error(w, "requests from other sites are refused", http.StatusForbidden)
		return
	}
	if g.token != nil && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && !g.authenticated(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="Retrial: any user name, the token as password", charset="UTF-8"`)
		http.Error(w, "a token is needed: Authorization: Bearer TOKEN, or as the password of any user", http.StatusUnauthorized)
		return
	}
	g.next.ServeHTTP(w, r)
}

// authenticated takes the token as a bearer token, or as a password so that browsers can ask
// for it.
func (g guard) authenticated(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		if _, token, ok = r.BasicAuth(); !ok {
			return false
		}
	}
	hash := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(hash[:], g.token) == 1
}

func (g guard) knownHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(strings.ToLower(host), "[]")
	if host == "localhost" || hostport == g.addr || slices.Contains(g.hosts, host) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLoopback() || len(g.hosts) == 0 && g.token != nil)
}
