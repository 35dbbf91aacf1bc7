package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/stream"
)

// site is a receiver with its own authority, listening on loopback.
type site struct {
	*bench
	ca  *identity.Authority
	url string
	now *atomic.Pointer[time.Time]
	// refused gets a value for each connection error, after it was counted.
	refused chan struct{}
}

func newSite(t testing.TB, cfg Config, server ServerConfig) *site {
	t.Helper()
	s := &site{now: &atomic.Pointer[time.Time]{}}
	now := time.Now()
	s.now.Store(&now)
	s.ca = newAuthority(t, s)
	cfg.Now = func() time.Time { return *s.now.Load() }
	s.bench = newBench(t, cfg, s.ca.Registry())
	s.refused = make(chan struct{}, 100)
	log := s.log.WithOptions(zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == "connection error" {
			s.refused <- struct{}{}
		}
		return nil
	}))
	srv, err := NewServer(server, s.ca.ServerTLS(), s.h, log, s.reg)
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "https://" + lis.Addr().String()
	served := make(chan error, 1)
	go func() { served <- srv.ServeTLS(lis, "", "") }()
	t.Cleanup(func() {
		_ = srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

func newAuthority(t testing.TB, s *site) *identity.Authority {
	t.Helper()
	ca, err := identity.Open(identity.Config{Dir: t.TempDir(), Now: func() time.Time { return *s.now.Load() }}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func (s *site) add(t testing.TB, cluster string) identity.Credentials {
	t.Helper()
	cred, err := s.ca.Registry().Add(cluster)
	if err != nil {
		t.Fatal(err)
	}
	return cred
}

// client returns a client that trusts the site and presents cred, unless it is empty.
func (s *site) client(t testing.TB, cred identity.Credentials, http2 bool) *http.Client {
	t.Helper()
	bundle, err := s.ca.CABundle()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	conf := &tls.Config{RootCAs: roots, Time: func() time.Time { return *s.now.Load() }}
	if cred.Cert != nil {
		pair, err := tls.X509KeyPair(cred.Cert, cred.Key)
		if err != nil {
			t.Fatal(err)
		}
		// Whatever authorities the server names: a foreign certificate is to be sent too.
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	transport := &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: http2}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (s *site) send(t *testing.T, c *http.Client, cluster, token string) (code int, text string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(
		t.Context(),
		http.MethodPost,
		s.url+"/v1/clusters/"+cluster+"/audit?timeout=30s",
		strings.NewReader(list(read("a"))),
	)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), nil
}

func TestCredentials(t *testing.T) {
	s := newSite(t, Config{}, ServerConfig{})
	prod, test := s.add(t, "prod"), s.add(t, "test")
	token, err := s.ca.Registry().NewToken("prod")
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.ca.Registry().NewToken("test")
	if err != nil {
		t.Fatal(err)
	}
	none := identity.Credentials{}
	for _, tc := range []struct {
		name    string
		cred    identity.Credentials
		token   string
		cluster string
		code    int
		text    string
	}{
		{"certificate", prod, "", "prod", 200, "accepted 1 events"},
		{"another cluster's certificate", test, "", "prod", 403, "certificate is cluster test's, the path says prod"},
		{"certificate, unknown cluster", prod, "", "nowhere", 403, "retrial cluster add nowhere"},
		{"certificate before token", test, token, "prod", 403, "certificate is cluster test's"},
		{"token", none, token, "prod", 200, "accepted 1 events"},
		{"another cluster's token", none, other, "prod", 401, "not accepted for cluster prod"},
		{"token, unknown cluster", none, token, "nowhere", 401, "retrial cluster add nowhere"},
		{"wrong token", none, strings.Repeat("x", 43), "prod", 401, "not accepted"},
		{"nothing", none, "", "prod", 401, "no client certificate and no bearer token"},
		{"nothing, unknown cluster", none, "", "nowhere", 401, "no client certificate and no bearer token"},
	} {
		for _, http2 := range []bool{false, true} {
			name := tc.name + "/http1"
			if http2 {
				name = tc.name + "/http2"
			}
			t.Run(name, func(t *testing.T) {
				code, text, err := s.send(t, s.client(t, tc.cred, http2), tc.cluster, tc.token)
				if err != nil {
					t.Fatal(err)
				}
				if code != tc.code || !strings.Contains(text, tc.text) {
					t.Errorf("answer %d %q, want %d with %q", code, text, tc.code, tc.text)
				}
			})
		}
	}
	for _, r := range s.producer.topic(stream.TopicEvents) {
		if r.Cluster != "prod" || r.Source != "webhook" {
			t.Errorf("record of cluster %s from %s", r.Cluster, r.Source)
		}
	}
	if log := s.logged(); strings.Contains(log, token) || strings.Contains(log, other) || strings.Contains(log, strings.Repeat("x", 43)) {
		t.Error("a token in the logs")
	}
}

func TestProtocolsAreNegotiated(t *testing.T) {
	s := newSite(t, Config{}, ServerConfig{})
	cred := s.add(t, "prod")
	for _, tc := range []struct {
		http2 bool
		proto string
	}{{false, "HTTP/1.1"}, {true, "HTTP/2.0"}} {
		resp, err := s.client(t, cred, tc.http2).Post(s.url+auditPath, "application/json", strings.NewReader(list(read("a"))))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.Proto != tc.proto || resp.TLS.Version < tls.VersionTLS12 {
			t.Errorf("%s over TLS %x, want %s", resp.Proto, resp.TLS.Version, tc.proto)
		}
	}
	old := s.client(t, cred, false)
	old.Transport.(*http.Transport).TLSClientConfig.MinVersion = tls.VersionTLS10
	old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS11
	if _, _, err := s.send(t, old, "prod", ""); err == nil {
		t.Error("TLS 1.1 was taken")
	}
}

func TestRevocationCountsOnOpenConnections(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		s := newSite(t, Config{}, ServerConfig{})
		cred := s.add(t, "prod")
		token, err := s.ca.Registry().NewToken("prod")
		if err != nil {
			t.Fatal(err)
		}
		c, bare := s.client(t, cred, http2), s.client(t, identity.Credentials{}, http2)
		if code, text, err := s.send(t, c, "prod", ""); code != 200 {
			t.Fatalf("before: %d %s %v", code, text, err)
		}
		if err := s.ca.Registry().Revoke("prod"); err != nil {
			t.Fatal(err)
		}
		if code, text, err := s.send(t, c, "prod", ""); code != 401 || !strings.Contains(text, "revoked") ||
			!strings.Contains(text, "retrial cluster rotate prod") {
			t.Errorf("certificate after: %d %s %v", code, text, err)
		}
		if code, _, err := s.send(t, bare, "prod", token); code != 401 {
			t.Errorf("token after: %d %v", code, err)
		}
		fresh, err := s.ca.Registry().Rotate("prod", false)
		if err != nil {
			t.Fatal(err)
		}
		if code, text, err := s.send(t, s.client(t, fresh, http2), "prod", ""); code != 200 {
			t.Errorf("rotated: %d %s %v", code, text, err)
		}
		if code, _, err := s.send(t, c, "prod", ""); code != 401 {
			t.Errorf("old certificate after the rotation: %d %v", code, err)
		}
	}
}

func TestCertificatesTheHandshakeRefuses(t *testing.T) {
	s := newSite(t, Config{}, ServerConfig{})
	cred := s.add(t, "prod")
	foreign := newAuthority(t, s)
	wrong, err := foreign.Registry().Add("prod")
	if err != nil {
		t.Fatal(err)
	}
	if code, _, err := s.send(t, s.client(t, wrong, true), "prod", ""); err == nil {
		t.Errorf("a foreign authority's certificate was answered %d", code)
	}
	<-s.refused

	open := s.client(t, cred, false)
	if code, text, err := s.send(t, open, "prod", ""); code != 200 {
		t.Fatalf("before it expires: %d %s %v", code, text, err)
	}
	// The server renews its own certificate by itself, the client's has to be rotated.
	later := time.Now().Add(366 * 24 * time.Hour)
	s.now.Store(&later)
	if code, text, err := s.send(t, open, "prod", ""); err != nil || code != 401 || !strings.Contains(text, "expired") {
		t.Errorf("open connection after it expired: %d %s %v", code, text, err)
	}
	if code, _, err := s.send(t, s.client(t, cred, false), "prod", ""); err == nil {
		t.Errorf("an expired certificate was answered %d", code)
	}
	<-s.refused
	if n := s.metric(t, "connection_errors_total"); n < 2 {
		t.Errorf("%v refused handshakes counted, want 2", n)
	}
	rotated, err := s.ca.Registry().Rotate("prod", true)
	if err != nil {
		t.Fatal(err)
	}
	if code, text, err := s.send(t, s.client(t, rotated, true), "prod", ""); code != 200 {
		t.Errorf("rotated: %d %s %v", code, text, err)
	}
}

func TestAnonymous(t *testing.T) {
	s := newSite(t, Config{Anonymous: true}, ServerConfig{})
	s.add(t, "prod")
	cred := s.add(t, "test")
	none := s.client(t, identity.Credentials{}, true)
	for _, tc := range []struct {
		name    string
		client  *http.Client
		cluster string
		token   string
		code    int
		text    string
	}{
		{"registered", none, "prod", "", 200, "accepted"},
		{"not registered", none, "nowhere", "", 404, "retrial cluster add nowhere"},
		{"a credential still counts", s.client(t, cred, true), "prod", "", 403, "certificate is cluster test's"},
		{"a wrong token too", none, "prod", strings.Repeat("x", 40), 401, "not accepted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if code, text, err := s.send(t, tc.client, tc.cluster, tc.token); code != tc.code || !strings.Contains(text, tc.text) {
				t.Errorf("answer %d %q %v, want %d with %q", code, text, err, tc.code, tc.text)
			}
		})
	}
}

func TestHugeBodyOverTheWire(t *testing.T) {
	s := newSite(t, Config{}, ServerConfig{})
	cred := s.add(t, "prod")
	for _, http2 := range []bool{false, true} {
		body := &spaces{left: 200 << 20}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+auditPath, io.NopCloser(body))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 200 << 20
		resp, err := s.client(t, cred, http2).Do(req)
		if err != nil {
			t.Fatalf("http2=%v: %v", http2, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("http2=%v: answer %d", http2, resp.StatusCode)
		}
	}
	letters := s.producer.letters(t)
	if len(letters) != 2 || letters[0].Reason != "too-large" || letters[0].Size != 200<<20 {
		t.Errorf("dead letters %+v", letters)
	}
}

func TestSlowClients(t *testing.T) {
	dial := func(t *testing.T, s *site, cred identity.Credentials) *tls.Conn {
		conf := s.client(t, cred, false).Transport.(*http.Transport).TLSClientConfig.Clone()
		d := tls.Dialer{Config: conf}
		conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.(*tls.Conn)
	}
	t.Run("header", func(t *testing.T) {
		s := newSite(t, Config{}, ServerConfig{ReadHeaderTimeout: 20 * time.Millisecond})
		conn := dial(t, s, s.add(t, "prod"))
		if _, err := io.WriteString(conn, "POST "+auditPath+" HTTP/1.1\r\nHost: x\r\nX-Slow: "); err != nil {
			return // on a busy machine it has hung up by now
		}
		// The rest never comes: the server hangs up, or this would wait forever.
		if answer, _ := io.ReadAll(conn); strings.Contains(string(answer), "200") {
			t.Errorf("answered %s", answer)
		}
	})
	t.Run("body", func(t *testing.T) {
		s := newSite(t, Config{Deadline: 20 * time.Millisecond}, ServerConfig{})
		conn := dial(t, s, s.add(t, "prod"))
		if _, err := io.WriteString(conn, "POST "+auditPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(conn)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
			t.Errorf("answered %q, want 408", answer)
		}
		if n := s.metric(t, "in_flight_bytes"); n != 0 {
			t.Errorf("%v bytes still in flight", n)
		}
		if len(s.producer.calls) != 0 {
			t.Error("half a body was produced")
		}
	})
}

func TestConnectionIsUsedAgainAfterARefusal(t *testing.T) {
	// Push-back comes every second: it must not cost a handshake each.
	s := newSite(t, Config{}, ServerConfig{})
	c := s.client(t, s.add(t, "prod"), false)
	conns := map[string]bool{}
	s.producer.before = func(context.Context, []stream.Record) error { return stream.ErrFull }
	c.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, addr)
		if err == nil {
			conns[conn.LocalAddr().String()] = true
		}
		return conn, err
	}
	for range 3 {
		if code, _, err := s.send(t, c, "prod", ""); code != 429 {
			t.Fatalf("answer %d %v", code, err)
		}
	}
	if len(conns) != 1 {
		t.Errorf("%d connections for three posts", len(conns))
	}
}
