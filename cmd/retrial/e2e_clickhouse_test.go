package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/test/chserver/chservertest"
)

// TestServeAtServer runs serve with a ClickHouse server of its own, over HTTPS, as a user with
// a password: every way it cannot work is told before it starts, and the server's restart in
// the middle of an import loses and doubles nothing.
func TestServeAtServer(t *testing.T) {
	in := newInstall(t)
	db := chservertest.Start(t, chservertest.TLS, chservertest.Dir(filepath.Join(in.data(), "clickhouse")))
	file := func(name, text string) string {
		path := filepath.Join(in.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	password := file("password", chservertest.OwnerPassword+"\n")
	flags := func(user, password string, more ...string) []string {
		return append([]string{"--clickhouse-dsn", db.DSN(user, ""), "--clickhouse-password-file", password}, more...)
	}
	trusted := []string{"--clickhouse-ca-file", db.CAFile}
	for name, tc := range map[string]struct {
		args []string
		says []string
	}{
		"wrong password": {flags(chservertest.Owner, file("wrong", "wr0ng"), trusted...),
			[]string{`refuses user "retrial"`, "--clickhouse-password-file"}},
		"no such file": {flags(chservertest.Owner, filepath.Join(in.dir, "none"), trusted...),
			[]string{"clickhouse-password-file", "none"}},
		"not trusted": {flags(chservertest.Owner, password), []string{"not trusted", "--clickhouse-ca-file"}},
		"no certificate": {flags(chservertest.Owner, password, "--clickhouse-ca-file", password),
			[]string{"clickhouse-ca-file", "no PEM certificate"}},
		"no TLS": {[]string{"--clickhouse-dsn", "http://" + db.Addr(), "--clickhouse-ca-file", db.CAFile},
			[]string{"clickhouse-ca-file", "https://"}},
		"may only read": {flags(chservertest.Reader, file("reader", chservertest.ReaderPassword), trusted...),
			[]string{`user "reader"`, "lacks INSERT", "GRANT SELECT, INSERT"}},
		"may set nothing": {flags(chservertest.Strict, file("strict", chservertest.StrictPassword), trusted...),
			[]string{`user "strict"`, "readonly = 1"}},
		"no server at all": {[]string{"--clickhouse-dsn", "http://127.0.0.1:1"}, []string{"connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := in.run(t, append([]string{"serve", "--webhook-listen", "127.0.0.1:0", "--ui-listen", "127.0.0.1:0"}, tc.args...)...)
			if r.code == cli.ExitOK {
				t.Fatal("it ended well")
			}
			says(t, r.err, tc.says...)
			for _, secret := range []string{chservertest.OwnerPassword, chservertest.ReaderPassword, chservertest.StrictPassword, "wr0ng"} {
				if strings.Contains(r.err+r.out, secret) {
					t.Errorf("a password is shown:\n%s", r.err)
				}
			}
		})
	}
	t.Run("restart amid an import", func(t *testing.T) {
		log := portion(t)
		whole, state := writeLog(t, filepath.Join(in.dir, "audit.jsonl"), log), writeState(t, in.dir)
		s := in.serve(t, flags(chservertest.Owner, password, append(trusted, "--replay-batch-rows", "400", "--replay-hold", "0s")...)...)
		in.run(t, "import", "--cluster", "prod", "--state", state).ok(t)
		under := in.importInBackground(t, whole)
		for _, share := range []float64{0.2, 0.6} {
			if !s.reach(t.Context(), "retrial_runner_out_total", share*float64(len(log))) {
				t.Fatal("the server is gone")
			}
			db.Stop()
			db.Resume()
		}
		<-under.done.Done()
		under.result.ok(t)
		s.drained(t)
		s.stop(t)
		db.Stop()
		if strings.Contains(s.log.String()+s.out.String(), chservertest.OwnerPassword) {
			t.Error("the password is in the log")
		}
		checkImported(t, in, "prod", state, whole, log)
	})
}
