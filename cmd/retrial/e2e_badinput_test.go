package main

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/sample"
)

// endless yields so many bytes of JSON that never ends.
func endless(n int64) io.Reader { return io.LimitReader(filler{}, n) }

type filler struct{}

func (filler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '['
	}
	return len(p), nil
}

// TestBadBodies posts what an apiserver should not. Each is answered with what is wrong and
// what to do, what arrived leaves a dead letter, and what is good goes on.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	log := recorded(t)[:3]
	s := in.serve(t)
	good, other := s.addCluster(t, "prod"), s.addCluster(t, "other")

	whole := eventList(log)
	mixed := bytes.Replace(whole, []byte(`"items":[`), []byte(`"items":[{"level":7,"auditID":"malformed-item"},"no event",`), 1)
	large := strings.Replace(string(log[0]), `"level":`, `"requestObject":{"pad":"`+strings.Repeat("x", 9<<20)+`"},"level":`, 1)
	large = strings.Replace(large, decoded(t, log[0]).AuditID, "an-oversize-event", 1)
	var squeezed bytes.Buffer
	z := gzip.NewWriter(&squeezed)
	_, _ = z.Write(whole)
	_ = z.Close()

	for _, tc := range []struct {
		name   string
		body   io.Reader
		header []string
		code   int
		says   []string
	}{
		{name: "truncated JSON", body: bytes.NewReader(whole[:len(whole)/2]), code: http.StatusBadRequest,
			says: []string{"unexpected end", "at byte", "dead letter"}},
		{name: "no JSON", body: strings.NewReader("hello"), code: http.StatusBadRequest, says: []string{"dead letter"}},
		{name: "another kind", body: strings.NewReader(`{"kind":"PodList","apiVersion":"v1","items":[]}`), code: http.StatusBadRequest,
			says: []string{"kind: not EventList", "dead letter"}},
		{name: "200 MB", body: endless(200_000_000), code: http.StatusRequestEntityTooLarge,
			says: []string{"134217728", "--webhook-max-body-bytes"}},
		{name: "gzip", body: bytes.NewReader(squeezed.Bytes()), header: []string{"Content-Encoding", "gzip"},
			code: http.StatusUnsupportedMediaType, says: []string{"compressed", "retrial import"}},
		{name: "malformed items among good ones", body: bytes.NewReader(mixed), code: http.StatusOK},
		{name: "an oversize event", body: bytes.NewReader(eventList([][]byte{[]byte(large)})), code: http.StatusOK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, err := good.post(t.Context(), tc.body, tc.header...)
			if err != nil {
				t.Fatal(err)
			}
			if a.code != tc.code {
				t.Errorf("answer %d, want %d: %s", a.code, tc.code, a.text)
			}
			says(t, a.text, tc.says...)
		})
	}

	t.Run("200 MB of a declared length", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, good.url.String(), endless(200_000_000))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 200_000_000
		res, err := good.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("answer %s: %s", res.Status, text)
		}
		says(t, string(text), "134217728", "--webhook-max-body-bytes")
	})
	t.Run("certificate of another cluster", func(t *testing.T) {
		wrong := sender{good.url, other.client}
		a, err := wrong.post(t.Context(), bytes.NewReader(whole))
		if err != nil || a.code != http.StatusForbidden {
			t.Errorf("answer %d %v", a.code, err)
		}
		says(t, a.text, "cluster other's", "/v1/clusters/other/audit", "retrial cluster add prod")
	})
	t.Run("unknown cluster", func(t *testing.T) {
		unknown := *good.url
		unknown.Path = "/v1/clusters/nobody/audit"
		a, err := sender{&unknown, good.client}.post(t.Context(), bytes.NewReader(whole))
		if err != nil || a.code != http.StatusForbidden {
			t.Errorf("answer %d %v", a.code, err)
		}
		says(t, a.text, "cluster prod's", "nobody", "retrial cluster add nobody")
	})
	t.Run("certificate of another authority", func(t *testing.T) {
		wrong := selfSigned(t)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // it is the client that is wrong here
			// Whatever authorities the server names, as a client does that was misconfigured.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &wrong, nil }}}}
		defer client.CloseIdleConnections()
		a, err := sender{good.url, client}.post(t.Context(), bytes.NewReader(whole))
		if err == nil {
			t.Fatalf("answer %d: %s", a.code, a.text)
		}
		// The alert that names the cause may be lost when the connection breaks under a write:
		// what the server says of it is looked up at the end.
	})
	t.Run("no certificate", func(t *testing.T) {
		//nolint:gosec // it is the client that is wrong here
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		defer client.CloseIdleConnections()
		a, err := sender{good.url, client}.post(t.Context(), bytes.NewReader(whole))
		if err != nil || a.code != http.StatusUnauthorized {
			t.Errorf("answer %d %v", a.code, err)
		}
		says(t, a.text, "no client certificate and no bearer token", "retrial cluster add")
	})
	t.Run("certificate that was replaced", func(t *testing.T) {
		in.run(t, "cluster", "rotate", "other", "--revoke-old", "--server", s.webhook, "--output",
			filepath.Join(in.dir, "new.kubeconfig")).ok(t)
		a, err := other.post(t.Context(), bytes.NewReader(whole))
		if err != nil || a.code != http.StatusUnauthorized {
			t.Errorf("answer %d %v", a.code, err)
		}
		says(t, a.text, "revoked", "retrial cluster rotate other")
		if a, err := s.sender(t, filepath.Join(in.dir, "new.kubeconfig")).post(t.Context(), bytes.NewReader(eventList(nil))); err != nil ||
			a.code != http.StatusOK {
			t.Errorf("the new certificate: %d %v %s", a.code, err, a.text)
		}
	})
	t.Run("revoked cluster", func(t *testing.T) {
		in.run(t, "cluster", "revoke", "other").ok(t)
		a, err := s.sender(t, filepath.Join(in.dir, "new.kubeconfig")).post(t.Context(), bytes.NewReader(whole))
		if err != nil || a.code != http.StatusUnauthorized {
			t.Errorf("answer %d %v", a.code, err)
		}
		says(t, a.text, "revoked")
	})

	s.drained(t)
	for metric, want := range map[string]float64{"retrial_webhook_dead_letters_total": 7, "retrial_webhook_items_malformed_total": 2,
		"retrial_webhook_events_stripped_total": 1} {
		if got, _ := s.metric(t.Context(), metric); got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	s.stop(t)
	says(t, s.log.String(), "TLS handshake error", "unknown authority")
	at := func(name string) string { return filepath.Join(in.dir, name) }
	totals := inspect(t, inspection{Data: in.data(), Queries: map[string]string{
		at("letters"): "SELECT reason, size, length(prefix) > 0, startsWith(digest, 'sha256:') FROM retrial.dead_letters FINAL " +
			"ORDER BY reason, size FORMAT TSV",
		at("stripped"): "SELECT outcome != '', request_object = '', has(mapKeys(annotations), 'retrial.io/stripped-bytes'), " +
			"has(mapKeys(annotations), 'retrial.io/stripped-sha256') FROM retrial.events FINAL " +
			"WHERE audit_id = 'an-oversize-event' FORMAT TSV",
	}})
	if totals.Events != 4 {
		t.Errorf("%d events, want the three good ones and the oversize one", totals.Events)
	}
	if got := strings.Join(lines(t, at("stripped")), "\n"); got != "1\t1\t1\t1" {
		t.Errorf("the oversize event: judged, stripped, size and digest noted: %q", got)
	}
	letters := lines(t, at("letters"))
	if len(letters) != 7 {
		t.Errorf("dead letters:\n%s", strings.Join(letters, "\n"))
	}
	for _, l := range letters {
		if !strings.HasSuffix(l, "\t1\t1") {
			t.Errorf("dead letter without beginning or digest: %s", l)
		}
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "prod"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}
}

// TestBadFiles imports what should not be imported, with a server and its data directory in
// several bad states.
func TestBadFiles(t *testing.T) {
	needWhole(t)
	t.Parallel()
	in := newInstall(t)
	at := func(name string) string { return filepath.Join(in.dir, name) }
	s := in.serve(t)
	state := writeState(t, in.dir)
	in.run(t, "import", "--cluster", "prod", "--state", state).ok(t)

	t.Run("state of another cluster", func(t *testing.T) {
		r, err := sample.OpenState()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var list map[string]any
		if err := json.NewDecoder(r).Decode(&list); err != nil {
			t.Fatal(err)
		}
		for _, item := range list["items"].([]any) {
			meta := item.(map[string]any)["metadata"].(map[string]any)
			meta["uid"] = "another-" + meta["uid"].(string)
		}
		other, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at("other.json"), other, 0o600); err != nil {
			t.Fatal(err)
		}
		in.run(t, "import", "--cluster", "prod", "--state", at("other.json")).refused(t, cli.ExitError,
			"state of cluster prod", "kube-system", "belongs to another cluster")
	})
	t.Run("no state file", func(t *testing.T) {
		if err := os.WriteFile(at("text.json"), []byte("not a list"), 0o600); err != nil {
			t.Fatal(err)
		}
		in.run(t, "import", "--cluster", "prod", "--state", at("text.json")).refused(t, cli.ExitError, "state of cluster prod")
	})
	line := recorded(t)[0]
	bomb := bytes.Repeat(append(bytes.Clone(line), '\n'), (100<<20)/len(line))
	t.Run("gzip bomb", func(t *testing.T) {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		_, _ = z.Write(bytes.Repeat([]byte{' '}, 200<<20))
		_ = z.Close()
		if err := os.WriteFile(at("bomb.gz"), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		in.run(t, "import", "--cluster", "prod", at("bomb.gz")).refused(t, cli.ExitError, "bomb.gz", "inflates beyond the limit", "gzip")
	})
	t.Run("zstd bomb", func(t *testing.T) {
		z, _ := zstd.NewWriter(nil)
		if err := os.WriteFile(at("bomb.zst"), z.EncodeAll(bomb, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		in.run(t, "import", "--cluster", "prod", at("bomb.zst")).refused(t, cli.ExitError, "bomb.zst", "inflates beyond the limit", "zstd")
	})
	t.Run("gzip cut off", func(t *testing.T) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		for _, l := range recorded(t)[:50] {
			_, _ = z.Write(append(bytes.Clone(l), '\n'))
		}
		_ = z.Close()
		if err := os.WriteFile(at("cut.gz"), b.Bytes()[:b.Len()-100], 0o600); err != nil {
			t.Fatal(err)
		}
		in.run(t, "import", "--cluster", "prod", at("cut.gz")).refused(t, cli.ExitError, "cut.gz", "unexpected EOF")
	})
	t.Run("data directory in use", func(t *testing.T) {
		second, err := in.start(t)
		if err == nil {
			t.Fatal("a second server started on the data directory")
		}
		if code := second.cmd.ProcessState.ExitCode(); code != cli.ExitError {
			t.Errorf("exit code %d", code)
		}
		says(t, err.Error(), "is in use by", fmt.Sprintf("pid %d", s.cmd.Process.Pid), "choose another directory")
		s.drained(t) // the first is none the worse
	})
	s.stop(t)

	t.Run("missing library", func(t *testing.T) {
		_, err := in.start(t, "--clickhouse-library", "/nonexistent/libchdb.so")
		if err == nil {
			t.Fatal("started without the library")
		}
		says(t, err.Error(), "libchdb not found", "/nonexistent/libchdb.so", "fetch-libchdb.sh", "--clickhouse-dsn", "retrial evaluate")
		in.run(t, "why", "x", "--clickhouse-library", "/nonexistent/libchdb.so").refused(t, cli.ExitError, "libchdb not found",
			"fetch-libchdb.sh")
		evaluated(t, in, state, writeLog(t, at("few.jsonl"), recorded(t)[:10]))
	})
	t.Run("data directory that cannot be written", func(t *testing.T) {
		if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r := finish(t, in.retrial(t.Context(), "serve", "--data-dir", at("file"), "--key-file", at("hmac.key")))
		r.refused(t, cli.ExitError, "data directory", at("file"), "--data-dir")
	})
	t.Run("key inside the data directory", func(t *testing.T) {
		r := finish(t, in.retrial(t.Context(), "serve", "--data-dir", in.data(), "--key-file", filepath.Join(in.data(), "key")))
		r.refused(t, cli.ExitError, "inside the data directory", "choose a file elsewhere")
	})
}
