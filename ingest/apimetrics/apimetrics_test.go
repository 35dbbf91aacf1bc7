package apimetrics

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const answer = `# HELP apiserver_audit_error_total [ALPHA] Counter of audit events that failed to be audited properly.
# TYPE apiserver_audit_error_total counter
apiserver_audit_error_total{plugin="buffered"} 7
apiserver_audit_error_total{plugin="log"} 1
apiserver_audit_error_total{plugin="webhook"} 400
# TYPE apiserver_audit_event_total counter
apiserver_audit_event_total 1.234567e+06
apiserver_audit_level_total{level="None"} 82
apiserver_audit_requests_rejected_total 3
apiserver_request_total{code="200",path="apiserver_audit_event_total 9"} 5
process_start_time_seconds 1.76379e+09
`

func TestParse(t *testing.T) {
	got, err := parse(strings.NewReader(answer + strings.Repeat("apiserver_other{x=\"y\"} 1\n", 1000)))
	want := Reading{
		Events:        1234567,
		WebhookErrors: 400,
		BufferErrors:  7,
		LogErrors:     1,
		Rejected:      3,
		Started:       time.Unix(1763790000, 0).UTC(),
	}
	if err != nil || got != want {
		t.Errorf("%+v %v\nwant %+v", got, err, want)
	}
	for name, text := range map[string]string{
		"empty": "", "another server's": "process_start_time_seconds 1\n", "endless line": strings.Repeat("x", maxLine+1),
		"nonsense": "apiserver_audit_event_total{ x\n",
	} {
		if _, err := parse(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestRead: over TLS with a client certificate and a token that change under way.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var seen []string
	code := http.StatusOK
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Path+" "+r.Header.Get("Authorization")+" "+r.TLS.PeerCertificates[0].Subject.CommonName)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(answer))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	cert, key := certificate(t, "one")
	target := Target{
		Cluster: "c", APIServer: "a", URL: server.URL, TokenFile: file("token", "secret-1\n"), CertFile: file("c.crt", cert),
		KeyFile: file("c.key", key),
		CAFile:  file("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))),
	}
	r, err := New(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := r.Read(t.Context())
	if err != nil || got.Events != 1234567 {
		t.Fatalf("%+v %v", got, err)
	}
	if d := got.Latest.Sub(got.Earliest); d <= 0 || got.Earliest.After(got.Taken) || got.Latest.Before(got.Taken.Add(-2*time.Second)) {
		t.Errorf("read between %s and %s, asked until %s", got.Earliest, got.Latest, got.Taken)
	}
	cert, key = certificate(t, "two, of another length")
	file("c.crt", cert)
	file("c.key", key)
	file("token", "secret-2\n")
	if _, err = r.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/metrics Bearer secret-1 one", "/metrics Bearer secret-2 two, of another length"}; strings.Join(
		seen,
		"\n",
	) != strings.Join(
		want,
		"\n",
	) {
		t.Errorf("seen %q", seen)
	}
	for status, says := range map[int]string{401: "credential", 403: "system:monitoring", 302: "302", 500: "500"} {
		code = status
		if _, err := r.Read(t.Context()); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v", status, err)
		}
	}
	target.CAFile = ""
	stranger, err := New(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Read(t.Context()); err == nil {
		t.Error("a certificate of nobody known was taken")
	}
	if n := len(seen); n != 6 {
		t.Errorf("%d requests arrived: the last must not have", n)
	}
}

func certificate(t *testing.T, name string) (certPEM, keyPEM string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		), string(
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		)
}

// TestBound: the date of several answers narrows down how far the clocks are apart, whatever
// that is, and the truth always lies between the bounds.
func TestBound(t *testing.T) {
	for _, skew := range []time.Duration{0, 300 * time.Millisecond, -7 * time.Hour, 42 * time.Minute} {
		r := &Reader{}
		begin := time.Date(2026, 11, 22, 12, 0, 0, 123e6, time.UTC)
		var width time.Duration
		for i := range 40 {
			asked := begin.Add(time.Duration(i) * 30100 * time.Millisecond)
			truth := asked.Add(5 * time.Millisecond).Add(skew)
			earliest, latest := r.bound(asked, asked.Add(10*time.Millisecond), truth.UTC().Format(http.TimeFormat))
			if truth.Before(earliest) || truth.After(latest) {
				t.Fatalf("skew %s: %s is not between %s and %s", skew, truth, earliest, latest)
			}
			width = latest.Sub(earliest)
		}
		if width > 300*time.Millisecond {
			t.Errorf("skew %s: after 40 answers the bounds are %s apart", skew, width)
		}
		// The clock is set.
		asked := begin.Add(time.Hour)
		truth := asked.Add(skew + 10*time.Minute)
		if earliest, latest := r.bound(asked, asked, truth.UTC().Format(http.TimeFormat)); truth.Before(earliest) || truth.After(latest) {
			t.Errorf("after the clock was set: %s is not between %s and %s", truth, earliest, latest)
		}
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		target Target
		ok     bool
	}{
		"https":                     {Target{URL: "https://10.0.0.1:6443"}, true},
		"http on loopback":          {Target{URL: "http://127.0.0.1:8080/metrics"}, true},
		"http elsewhere":            {Target{URL: "http://10.0.0.1:8080"}, false},
		"password":                  {Target{URL: "https://a:b@10.0.0.1"}, false},
		"no host":                   {Target{URL: "10.0.0.1:6443"}, false},
		"key without a certificate": {Target{URL: "https://x", KeyFile: "k"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.target.Check(); (err == nil) != tc.ok {
				t.Errorf("%v", err)
			}
		})
	}
}
