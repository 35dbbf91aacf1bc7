package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/test/grafana"
)

const sqlPassword = "correct-horse-battery"

var sqlLine = regexp.MustCompile(`SQL, read-only: (\S+)`)

// serveSQL starts a server with the SQL listener and returns the listener's URL.
func (in install) serveSQL(t *testing.T, args ...string) (*running, string) {
	t.Helper()
	file := in.file(t, "sql-password", sqlPassword+"\n")
	s := in.serve(t, append([]string{"--clickhouse-listen", "127.0.0.1:0", "--clickhouse-listen-password-file", file}, args...)...)
	m := sqlLine.FindStringSubmatch(s.out.String())
	if m == nil {
		t.Fatalf("the server does not say where it answers SQL: %s", s.out)
	}
	return s, m[1]
}

// file writes a file beside the data directory.
func (in install) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(in.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// driver connects as Grafana's data source does.
func driver(t *testing.T, address, password string, security *tls.Config) *sql.DB {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	db := clickhouse.OpenDB(&clickhouse.Options{
		Addr: []string{u.Host}, Protocol: clickhouse.HTTP, TLS: security,
		Auth:        clickhouse.Auth{Database: "retrial", Username: "grafana", Password: password},
		Compression: &clickhouse.Compression{Method: clickhouse.CompressionGZIP},
	})
	t.Cleanup(func() { db.Close() })
	return db
}

// TestGrafana runs every panel of the dashboards against a server that took in the bundled
// recording, judged by the real replay.
func TestGrafana(t *testing.T) {
	in := newInstall(t)
	s, address := in.serveSQL(t)
	logFile, stateFile := in.file(t, "audit.jsonl.zst", string(sample.AuditLogZstd())),
		in.file(t, "state.json.zst", string(sample.StateZstd()))
	in.run(t, "import", "--cluster", "sample", "--state", stateFile, logFile).ok(t)
	s.drained(t)
	db := driver(t, address, sqlPassword, nil)

	var first, last int64
	if err := db.QueryRow("SELECT toInt64(toUnixTimestamp(min(minute))), toInt64(toUnixTimestamp(max(minute))) FROM volume").Scan(&first,
		&last); err != nil {
		t.Fatal(err)
	}
	all := grafana.Dashboards(t)
	// Panels about what the recording has none of. Findings and questions come in their own
	// time and may be there.
	mayBeEmpty := map[string]bool{
		"Findings by severity": true, "Findings by rule": true, "Newest findings": true, "Requests that rules select": true,
		"Drift by class": true, "Drifting requests": true, "Delay of events": true, "Stored dead letters": true, "Who asked Retrial": true,
		"What is missing": true, "Impersonation": true, "Anonymous": true,
	}
	for name, d := range all {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if q.RawSQL == "" {
					continue
				}
				t.Run(name+"/"+p.Title, func(t *testing.T) {
					query, err := grafana.Expand(q.RawSQL, grafana.Values{
						From: time.Unix(first, 0).UTC(), To: time.Unix(last+60, 0).UTC(), Interval: time.Minute,
						Vars: map[string]string{"cluster": "sample"},
					})
					if err != nil {
						t.Fatal(err)
					}
					rows, err := db.QueryContext(t.Context(), query)
					if err != nil {
						t.Fatalf("%v\n%s", err, query)
					}
					defer rows.Close()
					n := 0
					for rows.Next() {
						n++
					}
					if err := rows.Err(); err != nil {
						t.Fatalf("%v\n%s", err, query)
					}
					if n == 0 && !mayBeEmpty[p.Title] {
						t.Errorf("no rows: %s", query)
					}
				})
			}
		}
	}
	t.Run("refused", func(t *testing.T) {
		for _, query := range []string{"SELECT file('/etc/passwd')", "SELECT * FROM file('/etc/passwd', LineAsString)",
			"INSERT INTO volume (cluster) VALUES ('x')", "SELECT * FROM url('http://127.0.0.1:1/', CSV, 'a String')"} {
			if _, err := db.QueryContext(t.Context(), query); err == nil {
				t.Errorf("%s went through", query)
			}
		}
	})
	t.Run("another password", func(t *testing.T) {
		if err := driver(t, address, "wrong", nil).PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), "516") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("metrics", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if n, ok := s.metric(ctx, "retrial_sqlgate_queries_total"); !ok || n < 30 {
			t.Errorf("%v queries counted", n)
		}
		if n, ok := s.metric(ctx, "retrial_storage_disk_free_bytes"); !ok || n <= 0 {
			t.Errorf("%v bytes free", n)
		}
	})
	s.stop(t)
	t.Run("query log", func(t *testing.T) {
		r := in.run(t, "query-log", "--limit", "500").ok(t)
		says(t, r.out, "sql", "grafana", "refused", "file('/etc/passwd')")
	})
}

// TestSQLListenerRefused: what would be unsafe, or could not work, ends the start with words
// about it.
func TestSQLListenerRefused(t *testing.T) {
	in := newInstall(t)
	good := in.file(t, "good", sqlPassword)
	for _, c := range []struct {
		name string
		args []string
		says []string
	}{
		{"no password", []string{"--clickhouse-listen", "127.0.0.1:0"}, []string{"clickhouse-listen-password-file"}},
		{"a short password", []string{"--clickhouse-listen", "127.0.0.1:0", "--clickhouse-listen-password-file",
			in.file(t, "short", "secret")}, []string{"at least 16"}},
		{"in the open", []string{"--clickhouse-listen", "0.0.0.0:0", "--clickhouse-listen-password-file", good},
			[]string{"not loopback", "tls-cert"}},
		{"a store of its own", []string{"--clickhouse-listen", "127.0.0.1:0", "--clickhouse-listen-password-file", good, "--clickhouse-dsn",
			"http://127.0.0.1:1"}, []string{"point Grafana at that server", "docs/grafana.md"}},
		{"a file that is not there", []string{"--clickhouse-listen", "127.0.0.1:0", "--clickhouse-listen-password-file", good + "-not"},
			[]string{"clickhouse-listen-password-file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := in.start(t, c.args...)
			if err == nil {
				t.Fatal("it serves")
			}
			says(t, err.Error()+s.log.String(), c.says...)
			if strings.Contains(err.Error(), sqlPassword) {
				t.Error("the message shows the password")
			}
		})
	}
}

// TestSQLListenerTLS: with a certificate the listener speaks TLS alone.
func TestSQLListenerTLS(t *testing.T) {
	in := newInstall(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sql"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	_, address := in.serveSQL(t, "--clickhouse-listen-tls-cert", in.file(t, "cert.pem", string(certPEM)),
		"--clickhouse-listen-tls-key", in.file(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))))
	if !strings.HasPrefix(address, "https://") {
		t.Fatal(address)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	if err := driver(t, address, sqlPassword, &tls.Config{RootCAs: roots}).PingContext(t.Context()); err != nil {
		t.Error(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(address, "https", "http", 1)+"/?query=SELECT+1",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("grafana", sqlPassword)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return // nothing was answered
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode == http.StatusOK {
		t.Errorf("answered without TLS: %s", text)
	}
}
