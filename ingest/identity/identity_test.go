package identity

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/clientcmd"
)

// clock is a settable time, safe for the goroutines of a handshake.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) set(t time.Time) { c.mu.Lock(); defer c.mu.Unlock(); c.now = t }

var start = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

func open(t *testing.T, cfg Config) *Authority {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(t.TempDir(), "tls")
	}
	if cfg.Now == nil {
		cfg.Now = (&clock{now: start}).Now
	}
	a, err := Open(cfg, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func parse(t *testing.T, certPEM []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(certPEM)
	if block == nil {
		t.Fatal("no PEM block")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestFirstRunMakesWhatIsNeeded(t *testing.T) {
	a := open(t, Config{Names: []string{"retrial.example", "10.1.2.3", "localhost"}})
	if _, err := a.Registry().Add("prod"); err != nil {
		t.Fatal(err)
	}
	for file, mode := range map[string]os.FileMode{
		"ca.key": 0o600, "server.key": 0o600, "clusters/prod.key": 0o600, "clusters/prod.yaml": 0o600,
		"ca.crt": 0o644, "server.crt": 0o644, "clusters/prod.crt": 0o644, ".": 0o700, "clusters": 0o700,
	} {
		info, err := os.Stat(a.path(file))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want %v", file, info.Mode(), err, mode)
		}
	}
	ca, err := readCert(a.path("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := readCert(a.path("server.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "retrial.example", "10.1.2.3"} {
		if _, err := server.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: start}); err != nil {
			t.Errorf("server certificate for %s: %v", name, err)
		}
	}
	if life := ca.NotAfter.Sub(start); life != defaultCALife {
		t.Errorf("authority lives %v", life)
	}
	if life := server.NotAfter.Sub(start); life != defaultLeafLife {
		t.Errorf("server certificate lives %v", life)
	}
	if ca.SerialNumber.Cmp(server.SerialNumber) == 0 || ca.SerialNumber.BitLen() < 64 {
		t.Error("serials are not random")
	}
}

func TestOpenAgain(t *testing.T) {
	c := &clock{now: start}
	cfg := Config{Dir: t.TempDir(), Now: c.Now}
	read := func() string {
		b, err := os.ReadFile(filepath.Join(cfg.Dir, "server.crt"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	open(t, cfg)
	first := read()
	open(t, cfg)
	if read() != first {
		t.Error("the server certificate was issued anew for no reason")
	}
	cfg.Names = []string{"new.example"}
	open(t, cfg)
	named := read()
	if named == first {
		t.Error("a new name needs a new certificate")
	}
	c.set(start.Add(defaultLeafLife * 2 / 3).Add(time.Hour))
	open(t, cfg)
	if read() == named {
		t.Error("a certificate in its last third was not renewed")
	}
	c.set(start.Add(defaultCALife).Add(time.Hour))
	if _, err := Open(cfg, nil, nil); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("expired authority: %v", err)
	}
}

func TestBrokenDirectories(t *testing.T) {
	for _, tc := range []struct {
		name string
		harm func(dir string) error
		text string
	}{
		{"no authority certificate", func(dir string) error { return os.Remove(filepath.Join(dir, "ca.crt")) }, "ca.crt is missing"},
		{"no authority key, server certificate to issue", func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "ca.key")), os.Remove(filepath.Join(dir, "server.crt")))
		}, "ca.key is missing"},
		{"garbage", func(dir string) error { return os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("x"), 0o600) },
			"holds no certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, Config{Dir: dir})
			if err := tc.harm(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(Config{Dir: dir, Now: (&clock{now: start}).Now}, nil, nil); err == nil ||
				!strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %v, want one with %q", err, tc.text)
			}
		})
	}
}

func TestTwoProcessesStartAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := Open(Config{Dir: dir}, nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")); err != nil {
		t.Error(err)
	}
}

func TestRegistry(t *testing.T) {
	c := &clock{now: start}
	a := open(t, Config{Now: c.Now})
	r := a.Registry()
	first, err := r.Add("prod")
	if err != nil {
		t.Fatal(err)
	}
	cert := parse(t, first.Cert)
	if name, err := r.Certificate(cert); name != "prod" || err != nil {
		t.Errorf("certificate of %q: %v", name, err)
	}
	if len(cert.URIs) != 1 || cert.URIs[0].String() != "retrial://cluster/prod" {
		t.Errorf("names %v", cert.URIs)
	}
	if _, err := r.Add("prod"); !errors.Is(err, ErrExists) {
		t.Errorf("added twice: %v", err)
	}

	// Another process on the same directory: what it does counts here at once.
	other := open(t, Config{Dir: a.cfg.Dir, Now: c.Now}).Registry()
	second, err := other.Rotate("prod", false)
	if err != nil {
		t.Fatal(err)
	}
	for name, cred := range map[string]Credentials{"old": first, "new": second} {
		if _, err := r.Certificate(parse(t, cred.Cert)); err != nil {
			t.Errorf("%s certificate after a rotation: %v", name, err)
		}
	}
	third, err := other.Rotate("prod", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Certificate(cert); !errors.Is(err, ErrRevoked) {
		t.Errorf("first certificate: %v", err)
	}
	if err := other.Revoke("prod"); err != nil {
		t.Fatal(err)
	}
	if name, err := r.Certificate(parse(t, third.Cert)); name != "prod" || !errors.Is(err, ErrRevoked) {
		t.Errorf("after the revocation: %q %v", name, err)
	}
	if r.Known("prod") {
		t.Error("a revoked cluster is known")
	}
	list, err := r.List()
	if err != nil || len(list) != 1 || list[0].Revoked == nil || len(list[0].Certificates) != 3 {
		t.Errorf("list %+v %v", list, err)
	}
	fourth, err := r.Rotate("prod", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Certificate(parse(t, third.Cert)); !errors.Is(err, ErrRevoked) {
		t.Errorf("a rotation brought a revoked certificate back: %v", err)
	}
	if _, err := r.Certificate(parse(t, fourth.Cert)); err != nil {
		t.Error(err)
	}
	c.set(start.Add(defaultLeafLife).Add(time.Second))
	if _, err := r.Certificate(parse(t, fourth.Cert)); !errors.Is(err, ErrExpired) {
		t.Errorf("expired: %v", err)
	}
	if err := os.Remove(a.path("clusters/prod.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Certificate(parse(t, fourth.Cert)); !errors.Is(err, ErrUnknown) {
		t.Errorf("entry removed: %v", err)
	}
	for verb, err := range map[string]error{"revoke": r.Revoke("none"), "token": r.AddToken("none", strings.Repeat("x", 40))} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("%s of an unknown cluster: %v", verb, err)
		}
	}
	if _, err := r.Rotate("none", false); !errors.Is(err, ErrUnknown) {
		t.Errorf("rotate of an unknown cluster: %v", err)
	}
}

func TestOnlyListedCertificatesAreAccepted(t *testing.T) {
	a := open(t, Config{})
	r := a.Registry()
	cred, err := r.Add("prod")
	if err != nil {
		t.Fatal(err)
	}
	// Signed by the authority, for the cluster, and still not in its entry.
	_, _, stray, err := a.issue(caKeyFile, &x509.Certificate{}, nil, parse(t, cred.Cert).URIs[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Certificate(stray); !errors.Is(err, ErrCredential) {
		t.Errorf("unlisted serial: %v", err)
	}
	server, err := readCert(a.path("server.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Certificate(server); !errors.Is(err, ErrCredential) {
		t.Errorf("server certificate as a client's: %v", err)
	}
}

func TestBrokenEntryRefuses(t *testing.T) {
	a := open(t, Config{})
	r := a.Registry()
	cred, err := r.Add("prod")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "kind: Cluster\n", "x: [", "apiVersion: retrial.io/v1alpha1\nkind: Cluster\nname: other\n",
		"apiVersion: retrial.io/v1alpha1\nkind: Cluster\nname: prod\nsurprise: 1\n"} {
		if err := os.WriteFile(a.path("clusters/prod.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Certificate(parse(t, cred.Cert)); err == nil {
			t.Errorf("entry %q accepts a certificate", text)
		}
		if r.Known("prod") {
			t.Errorf("entry %q makes the cluster known", text)
		}
	}
}

func TestClusterNames(t *testing.T) {
	r := open(t, Config{}).Registry()
	for name, ok := range map[string]bool{
		"a": true, "prod-1": true, strings.Repeat("a", 63): true, "0": true,
		"": false, "-a": false, "a-": false, "A": false, "a.b": false, "a_b": false, "..": false, "../x": false, "a/b": false,
		strings.Repeat("a", 64): false, "ä": false, "a\n": false,
	} {
		if ValidName(name) != ok {
			t.Errorf("ValidName(%q) = %v", name, !ok)
		}
		if ok {
			continue
		}
		if _, err := r.Add(name); !errors.Is(err, ErrName) {
			t.Errorf("Add(%q): %v", name, err)
		}
		if r.Known(name) || r.Token(name, "x") == nil {
			t.Errorf("%q is known", name)
		}
	}
}

func TestTokens(t *testing.T) {
	a := open(t, Config{})
	r := a.Registry()
	if _, err := r.Add("prod"); err != nil {
		t.Fatal(err)
	}
	token, err := r.NewToken("prod")
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Repeat("0123456789", 4)
	for range 2 { // adding it again changes nothing
		if err := r.AddToken("prod", own); err != nil {
			t.Fatal(err)
		}
	}
	entry, err := os.ReadFile(a.path("clusters/prod.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(entry), token) || strings.Contains(string(entry), own) {
		t.Error("a token at rest")
	}
	if c, err := r.Get("prod"); err != nil || len(c.Tokens) != 2 {
		t.Errorf("%d tokens kept, want 2 (%v)", len(c.Tokens), err)
	}
	for _, good := range []string{token, own} {
		if err := r.Token("prod", good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", token[1:], token + "x", strings.ToUpper(own + token)} {
		if err := r.Token("prod", bad); !errors.Is(err, ErrCredential) {
			t.Errorf("token %q: %v", bad, err)
		}
	}
	for _, weak := range []string{"short", strings.Repeat("x", 31), strings.Repeat("x", 40) + " y", strings.Repeat("x", 5000)} {
		if err := r.AddToken("prod", weak); err == nil {
			t.Errorf("took %.40q", weak)
		}
	}
	if err := r.Revoke("prod"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rotate("prod", false); err != nil {
		t.Fatal(err)
	}
	if err := r.Token("prod", token); !errors.Is(err, ErrCredential) {
		t.Errorf("token from before the revocation: %v", err)
	}
}

func TestTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	put := func(text string, mode os.FileMode) {
		t.Helper()
		if err := writeFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	one, two := strings.Repeat("a", 40), strings.Repeat("b", 40)
	put("# tokens\n\nprod "+one+"\nprod\t"+two+"\n", 0o600)
	cfg := Config{Dir: t.TempDir(), TokenFile: file}
	r := open(t, cfg).Registry()
	if !r.Known("prod") || r.Known("test") || r.Token("prod", one) != nil || r.Token("prod", two) != nil || r.Token("test", one) == nil {
		t.Error("the file does not count as it should")
	}
	put("test "+one+"\n", 0o600)
	if r.Known("prod") || r.Token("prod", one) == nil || r.Token("test", one) != nil {
		t.Error("the changed file does not count")
	}
	if _, err := r.Add("test"); err != nil {
		t.Fatal(err)
	}
	if err := r.Revoke("test"); err != nil {
		t.Fatal(err)
	}
	if err := r.Token("test", one); !errors.Is(err, ErrRevoked) {
		t.Errorf("token of a revoked cluster: %v", err)
	}
	put("test "+one+" "+two+"\n", 0o600)
	if r.Token("test", two) == nil {
		t.Error("a broken file counts")
	}
	for name, text := range map[string]string{"fields": "prod\n", "name": "Prod " + one + "\n", "short": "prod abc\n"} {
		put(text, 0o600)
		if _, err := Open(cfg, nil, nil); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	put("prod "+one+"\n", 0o644)
	if _, err := Open(cfg, nil, nil); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("readable by everyone: %v", err)
	}
}

func TestWebhookConfigIsOneClientGoTakes(t *testing.T) {
	r := open(t, Config{}).Registry()
	cred, err := r.Add("prod")
	if err != nil {
		t.Fatal(err)
	}
	text, err := kubeconfigOf(r, "prod", "https://retrial.example:9443/")
	if err != nil {
		t.Fatal(err)
	}
	conf, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	if conf.Host != "https://retrial.example:9443/v1/clusters/prod/audit" || string(conf.CertData) != string(cred.Cert) ||
		string(conf.KeyData) != string(cred.Key) ||
		string(conf.CAData) != string(cred.CA) {
		t.Errorf("configuration %s", conf.Host)
	}
	text, err = WebhookConfig("https://[::1]:9443", "cp-1", cred, "a-token")
	if err != nil {
		t.Fatal(err)
	}
	if conf, err = clientcmd.RESTConfigFromKubeConfig(text); err != nil || conf.BearerToken != "a-token" || conf.KeyData != nil ||
		conf.Host != "https://[::1]:9443/v1/clusters/prod/apiservers/cp-1/audit" {
		t.Errorf("token configuration: %+v %v", conf, err)
	}
	for _, bad := range []string{"", "retrial.example", "ftp://x", "https://x/?a=b", "https://u:p@x", "://"} {
		if _, err := kubeconfigOf(r, "prod", bad); err == nil {
			t.Errorf("server %q was taken", bad)
		}
	}
	if _, err := kubeconfigOf(r, "none", "https://x"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown cluster: %v", err)
	}
}

func TestServerCertificateIsReloadedAndRenewed(t *testing.T) {
	c := &clock{now: start}
	a := open(t, Config{Now: c.Now})
	serial := func() string {
		t.Helper()
		pair, err := a.serverPair()
		if err != nil {
			t.Fatal(err)
		}
		return serialText(pair.Leaf.SerialNumber)
	}
	first := serial()
	open(t, Config{Dir: a.cfg.Dir, Now: c.Now, Names: []string{"new.example"}}) // another process issues it anew
	second := serial()
	if second == first {
		t.Error("not reloaded")
	}
	c.set(start.Add(defaultLeafLife * 9 / 10))
	third := serial()
	if third == second {
		t.Error("not renewed in its last third")
	}
	// This process was told of no names; those another one put in stay, or apiservers that use
	// them would be cut off by a renewal.
	if covered, err := a.ServerCovers("new.example"); err != nil || !covered {
		t.Errorf("the renewed certificate has lost a name: %v", err)
	}
	// Half a pair: what was served last is served on.
	if err := os.WriteFile(a.path("server.key"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if serial() != third {
		t.Error("a broken key file changed what is served")
	}
}

func TestHandshakeFollowsTheFiles(t *testing.T) {
	a := open(t, Config{})
	cred, err := a.Registry().Add("prod")
	if err != nil {
		t.Fatal(err)
	}
	shake := func() error {
		pool, err := a.trusted()
		if err != nil {
			return err
		}
		client := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Time: a.cfg.Now}
		pair, err := tls.X509KeyPair(cred.Cert, cred.Key)
		if err != nil {
			return err
		}
		client.Certificates, client.ServerName = []tls.Certificate{pair}, "localhost"
		left, right := net.Pipe()
		defer left.Close()
		defer right.Close()
		served := make(chan error, 1)
		go func() {
			conn := tls.Server(left, a.ServerTLS())
			err := conn.Handshake()
			if err == nil && len(conn.ConnectionState().VerifiedChains) == 0 {
				err = errors.New("no verified chain")
			}
			served <- err
			_ = left.Close()
		}()
		conn := tls.Client(right, client)
		err = conn.Handshake()
		return errors.Join(err, <-served)
	}
	if err := shake(); err != nil {
		t.Fatal(err)
	}
	// With another authority in the file, the client's certificate is a stranger's, though
	// the server still presents the pair it had.
	b := open(t, Config{})
	bundle, err := b.CABundle()
	if err != nil {
		t.Fatal(err)
	}
	own, err := a.CABundle()
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFile(a.path("ca.crt"), bundle, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := shake(); err == nil {
		t.Error("the old authority's certificate is still taken")
	}
	if err := writeFile(a.path("ca.crt"), append(bundle, own...), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := shake(); err != nil {
		t.Errorf("both authorities trusted: %v", err)
	}
}

func TestExpiryMetrics(t *testing.T) {
	c := &clock{now: start}
	reg := prometheus.NewRegistry()
	a, err := Open(Config{Dir: t.TempDir(), Now: c.Now}, nil, reg)
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want map[string]float64) {
		t.Helper()
		families, err := reg.Gather()
		if err != nil || len(families) != 1 {
			t.Fatal(families, err)
		}
		for _, m := range families[0].GetMetric() {
			if label := m.GetLabel()[0].GetValue(); m.GetGauge().GetValue() != want[label] {
				t.Errorf("%s: %s expires %v, want %v", when, label, m.GetGauge().GetValue(), want[label])
			}
		}
	}
	year := float64(start.Add(defaultLeafLife).Unix())
	want := map[string]float64{"ca": float64(start.Add(defaultCALife).Unix()), "server": year, "client": 0}
	check("no clusters", want)
	if _, err := a.Registry().Add("prod"); err != nil {
		t.Fatal(err)
	}
	want["client"] = year
	check("one cluster", want)
	c.set(start.Add(24 * time.Hour))
	if _, err := a.Registry().Add("test"); err != nil {
		t.Fatal(err)
	}
	check("another later", want)
	if err := a.Registry().Revoke("prod"); err != nil {
		t.Fatal(err)
	}
	want["client"] = year + 86400
	check("the first revoked", want)
}

func TestKeyFile(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	path := filepath.Join(dir, "keys", "hmac.key")
	key, created, err := KeyFile(path, data)
	if err != nil || !created || len(key) != 32 {
		t.Fatalf("%d bytes, created %v, %v", len(key), created, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	again, created, err := KeyFile(path, data)
	if err != nil || created || string(again) != string(key) || KeyID(again) != KeyID(key) {
		t.Errorf("the second time: created %v, %v", created, err)
	}
	if strings.Contains(KeyID(key), string(key)) || KeyID(key) == KeyID(append([]byte{1}, key...)) {
		t.Error("key id")
	}
	link := filepath.Join(dir, "link")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := writeFile(p, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, tc := range []struct{ name, path, text string }{
		{"inside the data", filepath.Join(data, "k"), "inside the data directory"},
		{"inside through a link", filepath.Join(link, "deep", "k"), "inside the data directory"},
		{"inside by dots", filepath.Join(dir, "keys") + "/../data/k", "inside the data directory"},
		{"open to everyone", write("open.key", strings.Repeat("ab", 32), 0o644), "chmod 600"},
		{"no hex", write("text.key", "hello", 0o600), "in hex"},
		{"empty", write("empty.key", "", 0o600), "at least 16"},
		{"short", write("short.key", "abcd", 0o600), "at least 16"},
		{"a directory", dir, "not a regular file"},
		{"none", "", "no file configured"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, created, err := KeyFile(tc.path, data); err == nil || created || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %v, want one with %q", err, tc.text)
			}
		})
	}
}

// kubeconfigOf returns the webhook configuration with the certificate last issued for a cluster.
func kubeconfigOf(r *Registry, cluster, serverURL string) ([]byte, error) {
	cred, err := r.Credentials(cluster)
	if err != nil {
		return nil, err
	}
	return WebhookConfig(serverURL, "", cred, "")
}
