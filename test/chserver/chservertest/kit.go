// Package chservertest starts the embedded engine as a ClickHouse server for a test: over
// HTTP or HTTPS, with users, stopped when the test ends, restarted in its middle.
package chservertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/test/chserver"
)

// Owner and Reader are the users of a server: one with all rights, one who may only read.
const (
	Owner, OwnerPassword   = "retrial", "owner's %/:@ secret"
	Reader, ReaderPassword = "reader", "reader-secret"
	// Strict may not change settings either, as with readonly = 1 in a user's profile.
	Strict, StrictPassword = "strict", "strict-secret"
)

// Server is a running server.
type Server struct {
	// CAFile holds the certificate of the authority that signed the server's, when it has one.
	CAFile string

	t       testing.TB
	cfg     chserver.Config
	running *chserver.Running
}

// Option changes how a server is started.
type Option func(*Server)

// TLS makes it an HTTPS server under an authority of its own.
func TLS(s *Server) { s.cfg.TLS = s.certificate() }

// Dir has it keep its files in a given folder.
func Dir(dir string) Option { return func(s *Server) { s.cfg.Engine.Path = dir } }

// Start starts a server on loopback, closed when the test ends. Only one engine can be open
// in a process: such tests must not run in parallel. The test is skipped, or failed when the
// environment variable CI is set, where the engine cannot run.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	need(t)
	s := &Server{t: t, cfg: chserver.Config{Listen: "127.0.0.1:0", Users: []chserver.User{
		{Name: Owner, Password: OwnerPassword},
		{Name: Reader, Password: ReaderPassword, ReadOnly: 2},
		{Name: Strict, Password: StrictPassword, ReadOnly: 1},
	}}}
	for _, o := range options {
		o(s)
	}
	if s.cfg.Engine.Path == "" {
		s.cfg.Engine.Path = t.TempDir()
	}
	s.Resume()
	t.Cleanup(s.Stop)
	return s
}

func need(t testing.TB) {
	t.Helper()
	err := embedded.Suitable()
	if err == nil {
		_, err = embedded.Locate("")
	}
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("CI runs need the embedded store: %v", err)
	default:
		t.Skipf("NOT RUN: %v", err)
	}
}

// Stop breaks all connections and closes the engine; its files and its address stay.
func (s *Server) Stop() {
	s.t.Helper()
	if s.running == nil {
		return
	}
	if err := s.running.Close(); err != nil {
		s.t.Error(err)
	}
	s.running = nil
}

// Resume starts a stopped server again, on the same files and the same address.
func (s *Server) Resume() {
	s.t.Helper()
	running, err := chserver.Listen(s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.running, s.cfg.Listen = running, running.Addr()
}

// Addr is host:port of the server.
func (s *Server) Addr() string { return s.cfg.Listen }

// DSN is the address of the server for a user; an empty password leaves it out.
func (s *Server) DSN(user, password string) string {
	u := url.URL{Scheme: "http", Host: s.cfg.Listen, User: url.User(user)}
	if s.cfg.TLS != nil {
		u.Scheme = "https"
	}
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// Roots are the authorities that signed the server's certificate.
func (s *Server) Roots() *tls.Config {
	s.t.Helper()
	text, err := os.ReadFile(s.CAFile)
	if err != nil {
		s.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// certificate makes an authority, writes it to CAFile and has it sign for 127.0.0.1.
func (s *Server) certificate() *tls.Config {
	s.t.Helper()
	ca := s.sign(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "chserver test authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	s.CAFile = filepath.Join(s.t.TempDir(), "clickhouse-ca.pem")
	if err := os.WriteFile(s.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate[0]}), 0o600); err != nil {
		s.t.Fatal(err)
	}
	leaf := s.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "chserver"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca)
	return &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12}
}

// sign makes a key and a certificate for it, by the authority or, without one, by itself.
func (s *Server) sign(template *x509.Certificate, by *tls.Certificate) *tls.Certificate {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := template, any(key)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		s.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
