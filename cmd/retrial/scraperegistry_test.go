package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
)

// countersOf is what a kube-apiserver that made so many audit events says of them.
const countersOf = "apiserver_audit_event_total 1234\nprocess_start_time_seconds 1.76379e+09\n"

// countingServer is a kube-apiserver that tells its counters to whoever has the token.
func countingServer(t *testing.T, token string) (url, ca string) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(countersOf))
	}))
	t.Cleanup(s.Close)
	return s.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// TestClusterScrape: an apiserver is asked once before it is kept, its credentials are copied for
// their owner alone, and both words of whom to ask are one list.
func TestClusterScrape(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	url, ca := countingServer(t, "secret-1")
	token, wrong, caFile := filepath.Join(dir, "token"), filepath.Join(dir, "wrong"), filepath.Join(dir, "ca.crt")
	put(t, token, "secret-1\n")
	put(t, wrong, "secret-2\n")
	put(t, caFile, ca)
	scrape := func(args ...string) (int, string) {
		t.Helper()
		code, _, errs := commandLine(t, "", append([]string{"cluster", "scrape", "--data-dir", data}, args...)...)
		return code, errs
	}
	good := []string{"prod", "--apiserver", "cp-1", "--url", url, "--token-file", token, "--certificate-authority", caFile}
	if code, errs := scrape(good...); code != cli.ExitError || !strings.Contains(errs, "name the server's with --data-dir") {
		t.Errorf("a data directory that is not there: %d %s", code, errs)
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no token": {[]string{"prod", "--url", url, "--certificate-authority", caFile}, cli.ExitUsage,
			"--token-file and --certificate-authority are all needed"},
		"no TLS": {[]string{"prod", "--url", "http://10.0.0.1:6443", "--token-file", token, "--certificate-authority", caFile},
			cli.ExitUsage, "use https"},
		"a name":           {[]string{"../x", "--remove"}, cli.ExitUsage, "lower-case letters"},
		"an apiserver":     {[]string{"prod", "--apiserver", "../x", "--remove"}, cli.ExitUsage, "--apiserver"},
		"remove, and whom": {[]string{"prod", "--url", url, "--remove"}, cli.ExitUsage, "--remove takes no --url"},
		"not asked":        {[]string{"prod", "--remove"}, cli.ExitNoMatch, "are not read"},
		"who may not": {[]string{"prod", "--url", url, "--token-file", wrong, "--certificate-authority", caFile}, cli.ExitError,
			"nothing is changed"},
		"another authority": {[]string{"prod", "--url", url, "--token-file", token, "--certificate-authority", token}, cli.ExitError,
			"nothing is changed"},
	} {
		if code, errs := scrape(tc.args...); code != tc.code || !strings.Contains(errs, tc.says) {
			t.Errorf("%s: code %d: %s\nwant %d with %q", name, code, errs, tc.code, tc.says)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "scrape")); !os.IsNotExist(err) {
		t.Errorf("a mistake is kept: %v", err)
	}

	if code, errs := scrape(good...); code != cli.ExitOK || !strings.Contains(errs, "prod/cp-1 made 1,234 audit events since") {
		t.Fatalf("%d %s", code, errs)
	}
	if code, errs := scrape("dev", "--url", url, "--token-file", token, "--certificate-authority", caFile); code != cli.ExitOK {
		t.Fatalf("%d %s", code, errs)
	}
	for _, f := range []string{"prod/cp-1/token", "dev/_/token"} {
		if info, err := os.Stat(filepath.Join(data, "scrape", f)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", f, info, err)
		}
	}
	cfg := config.Default()
	cfg.DataDir = data
	cfg.Completeness.Scrape = []string{"prod/cp-1=https://10.0.0.1:6443", "prod/cp-2=https://10.0.0.2:6443"}
	if err := os.Mkdir(filepath.Join(data, "scrape", "prod", "broken"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(data, "scrape", "prod", "broken", doctor.ScrapeTarget), "url: ftp://x")
	targets, err := doctor.AllTargets(cfg)
	if err == nil || !strings.Contains(err.Error(), "broken") || len(targets) != 3 {
		t.Fatalf("%+v %v", targets, err)
	}
	if targets[0].URL != "https://10.0.0.1:6443" || targets[2].Cluster != "dev" || targets[2].APIServer != "" || targets[2].URL != url {
		t.Errorf("%+v", targets)
	}
	if names := (doctor.Site{Config: cfg}).Scraped("prod"); strings.Join(names, " ") != "cp-1 cp-2" {
		t.Errorf("of prod are asked %v", names)
	}
	if code, errs := scrape("dev", "--remove"); code != cli.ExitOK {
		t.Errorf("%d %s", code, errs)
	}
	if names := (doctor.Site{Config: cfg}).Scraped("dev"); len(names) != 0 {
		t.Errorf("of dev are asked %v", names)
	}
}
