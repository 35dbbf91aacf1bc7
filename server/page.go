package server

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
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/dashboards/ui"
	"github.com/retrial-io/retrial/query/api"
)

// newPage returns what the page's listener serves: the files, the API and the metrics, behind the checks a listener for browsers needs.
func newPage(sys *system, questions http.Handler, addr net.Addr) (http.Handler, error) {
	g := guard{addr: addr.String(), hosts: make([]string, len(sys.cfg.UI.Hosts))}
	for i, h := range sys.cfg.UI.Hosts {
		g.hosts[i] = hostName(h)
	}
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
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", questions)
	mux.Handle("GET /metrics", promhttp.HandlerFor(sys.reg, promhttp.HandlerOpts{Registry: sys.reg}))
	if _, none := questions.(elsewhere); none {
		mux.Handle("/", questions)
	} else {
		mux.Handle("/", ui.Handler())
	}
	g.next = mux

	probes := http.NewServeMux()
	probes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { api.Plain(w, http.StatusOK, "ok") })
	probes.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := sys.ready(r.Context()); err != nil {
			// Anybody may ask; the reason names brokers, so only the log gets it.
			sys.log.Warn("not ready", zap.Error(err))
			api.Plain(w, http.StatusServiceUnavailable, "not ready; the server's log says why")
			return
		}
		api.Plain(w, http.StatusOK, "ok")
	})
	probes.Handle("/", g)
	return probes, nil
}

// guard keeps other sites and other machines from the page's listener: the Host must be one of the listener's names (a name rebound to this
// address is not), a request that names its site must come from this one or follow a link, and a configured token is needed for everything.
// Probes bypass it: they come by changing addresses and reveal nothing.
type guard struct {
	next  http.Handler
	hosts []string // as hostName writes them
	addr  string
	token []byte // SHA-256; nil: none needed
}

func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !g.knownHost(r.Host):
		api.Plain(w, http.StatusMisdirectedRequest, "this address is not known under that host name; add it with --ui-hosts")
	case !ownOrigin(r) || !ownSite(r):
		api.Plain(w, http.StatusForbidden, "requests from other sites are refused")
	case g.token != nil && !g.authenticated(r):
		w.Header().Set("WWW-Authenticate", `Basic realm="Retrial: any user name, the token as password", charset="UTF-8"`)
		api.Plain(w, http.StatusUnauthorized, "a token is needed: Authorization: Bearer TOKEN, or as the password of any user")
	default:
		g.next.ServeHTTP(w, r)
	}
}

// ownOrigin refuses an Origin that is not the host asked.
func ownOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// ownSite refuses requests of another site's documents, except following a link here. Another port of localhost is the same site and still
// not this page.
func ownSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin": // no browser, typed by a person, the page itself
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" &&
		(r.URL.Path == "/" || r.URL.Path == "/index.html")
}

// authenticated reports whether a request has the token: as a bearer token, or as a password, which browsers can ask for.
func (g guard) authenticated(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		var ok bool
		if _, token, ok = r.BasicAuth(); !ok {
			return false
		}
	}
	hash := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(hash[:], g.token) == 1
}

// knownHost reports whether the Host is a name of the listener. Anybody can point a name here, no address: with a token any will do.
func (g guard) knownHost(hostport string) bool {
	host := hostName(hostport)
	if host == "" {
		return false
	}
	if host == "localhost" || hostport == g.addr || slices.Contains(g.hosts, host) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLoopback() || g.token != nil)
}

// hostName returns the name or address in a Host header, lower case, without port, brackets and final dot.
func hostName(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}
