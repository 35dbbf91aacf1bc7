package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func load(t *testing.T, args ...string) (Config, error) {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f := Bind(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.Load()
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "retrial.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const head = "apiVersion: retrial.io/v1alpha1\nkind: Config\n"

func TestDefaultsAreValid(t *testing.T) {
	if _, err := load(t); err != nil {
		t.Fatal(err)
	}
}

func TestPrecedence(t *testing.T) {
	path := write(t, head+"dataDir: from-file\nreplay: {hold: 5s, lag: 1s, linger: 1s}\nkafka: {brokers: [a:1, b:2]}\n")
	t.Setenv("RETRIAL_REPLAY_LAG", "7s")
	t.Setenv("RETRIAL_REPLAY_LINGER", "7s")
	c, err := load(t, "--config", path, "--replay-linger", "9s")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.DataDir, c.Replay.Hold.String(), c.Replay.Lag.String(), c.Replay.Linger.String(), strings.Join(c.Kafka.Brokers, " ")}
	want := []string{"from-file", "5s", "7s", "9s", "a:1 b:2"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("value %d: got %q, want %q (flag over environment over file over default)", i, got[i], want[i])
		}
	}
}

func TestBadInput(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		args []string
		says string
	}{
		"unknown member":      {file: head + "datadir: x\n", says: "datadir"},
		"wrong version":       {file: "apiVersion: retrial.io/v9\nkind: Config\n", says: "retrial.io/v1alpha1"},
		"no version":          {file: "dataDir: x\n", says: "apiVersion"},
		"bad duration":        {file: head + "replay: {hold: soon}\n", says: "duration"},
		"bad size":            {file: head + "webhook: {maxBodyBytes: lots}\n", says: "size"},
		"open profiles":       {args: []string{"--debug-listen", "0.0.0.0:6060"}, says: "debug-listen: 0.0.0.0:6060 is not loopback"},
		"open page, no token": {args: []string{"--ui-listen", "0.0.0.0:8080"}, says: "ui-token-file"},
		"anyone may post":     {args: []string{"--webhook-allow-anonymous", "--webhook-listen", ":9443"}, says: "retrial cluster add"},
		"half a certificate":  {args: []string{"--ui-tls-cert", "x"}, says: "both"},
		"bad member is named": {file: head + "webhook: {maxBodyBytes: lots}\n", says: `webhook.maxBodyBytes: invalid size "lots"`},
		"no address":          {args: []string{"--ui-listen", "foo"}, says: `ui-listen: invalid address "foo"`},
		"no port":             {args: []string{"--webhook-listen", "127.0.0.1:99999"}, says: "webhook-listen"},
		"nothing taken":       {args: []string{"--webhook-max-body-bytes", "0"}, says: "webhook-max-body-bytes: 0 would accept nothing"},
		"spool, some value":   {file: head + "spool: {enabled: maybe}\n", says: "want on or off"},
		"spool of nothing":    {args: []string{"--spool-max-bytes", "0"}, says: "or --spool off"},
		"authority without TLS": {args: []string{"--clickhouse-dsn", "http://h:8123", "--clickhouse-ca-file", "ca.pem"},
			says: "begin clickhouse-dsn with https://"},
		"cluster of none": {args: []string{"--clickhouse-cluster", "main"}, says: "clickhouse-cluster: name one of the cluster's servers"},
		"native protocol": {args: []string{"--clickhouse-dsn", "clickhouse://127.0.0.1:9000"},
			says: "clickhouse-dsn: want a URL that begins with http://"},
		"unknown SASL":         {args: []string{"--kafka-sasl-mechanism", "GSSAPI"}, says: "SCRAM"},
		"watch, no kubeconfig": {args: []string{"--watch-clusters", "prod"}, says: "cluster=/path/to/kubeconfig"},
		"watch, cluster twice": {args: []string{"--watch-clusters", "prod=/a,prod=/b"}, says: "named twice"},
		"apiserver, no folder": {args: []string{"--apiserver-config", "prod"}, says: "cluster=/path/to/folder"},
		"apiserver, twice": {args: []string{"--apiserver-config", "prod=/a", "--apiserver-config=prod=/b"}, says: "cluster prod is " +
			"named twice"},
		"missing file":          {args: []string{"--config", "/does/not/exist"}, says: "read configuration"},
		"two faults, both told": {args: []string{"--log-level", "loud", "--log-format", "xml"}, says: "log-format"},
	} {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if tc.file != "" {
				args = append(args, "--config", write(t, tc.file))
			}
			_, err := load(t, args...)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want an error that says %q", err, tc.says)
			}
		})
	}
}

func TestSwitch(t *testing.T) {
	for _, tc := range []struct {
		file, flag string
		want       Switch
	}{
		{"", "", true}, {"on", "", true}, {"off", "", false}, {"'off'", "", false}, {"false", "", false}, {"off", "on", true},
		{"", "off", false}, {"", "false", false},
	} {
		var args []string
		if tc.file != "" {
			args = append(args, "--config", write(t, "apiVersion: retrial.io/v1alpha1\nkind: Config\nspool: {enabled: "+tc.file+"}\n"))
		}
		if tc.flag != "" {
			args = append(args, "--spool", tc.flag)
		}
		c, err := load(t, args...)
		if err != nil || c.Spool.On != tc.want {
			t.Errorf("file %q, flag %q: %v, %v", tc.file, tc.flag, c.Spool.On, err)
		}
	}
}

func TestListsInPieces(t *testing.T) {
	t.Setenv("RETRIAL_APISERVER_CONFIG", "env=/e")
	c, err := load(t, "--apiserver-config", "a=/a", "--apiserver-config", "b=/b,c=/c")
	if got := strings.Join(c.Replay.ApiserverConfig, " "); err != nil || got != "a=/a b=/b c=/c" {
		t.Errorf("got %q, %v", got, err)
	}
	if c, err = load(t); err != nil || len(c.Replay.ApiserverConfig) != 1 {
		t.Errorf("got %q, %v", c.Replay.ApiserverConfig, err)
	}
}

func TestValuesRoundTrip(t *testing.T) {
	for _, s := range []string{"0s", "250ms", "30d", "1h30m0s"} {
		d, err := ParseDuration(s)
		if err != nil || d.String() != s {
			t.Errorf("duration %q: got %q, %v", s, d, err)
		}
	}
	for _, s := range []string{"0", "17", "512KiB", "128MiB", "2GiB"} {
		b, err := ParseBytes(s)
		if err != nil || b.String() != s {
			t.Errorf("size %q: got %q, %v", s, b, err)
		}
	}
	if _, err := ParseBytes("99999999999GiB"); err == nil {
		t.Error("a size beyond 64 bits was accepted")
	}
}

func TestEveryFieldIsDocumented(t *testing.T) {
	c := Default()
	for _, f := range c.Fields() {
		if f.Doc == "" {
			t.Errorf("%s has no doc tag", f.Path)
		}
	}
}

func TestCheckFiles(t *testing.T) {
	there := write(t, "x")
	c := Default()
	c.UI.TokenFile, c.Watch.Clusters, c.Replay.ApiserverConfig = there, []string{"prod=" + there}, []string{"prod=" + filepath.Dir(there)}
	if err := c.CheckFiles(); err != nil {
		t.Errorf("all are there: %v", err)
	}
	c.UI.TokenFile, c.Watch.Clusters, c.UI.TLSKey = there+"-not", []string{"prod=" + there + "-not"}, t.TempDir()
	err := c.CheckFiles()
	c.Replay.ApiserverConfig = []string{"prod=" + there} // a file
	err = errors.Join(err, c.CheckFiles())
	for _, flag := range []string{"ui-token-file: ", "watch-clusters: ", "ui-tls-key: ", "apiserver-config: "} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not told of: %v", flag, err)
		}
	}
}

func TestSQLListener(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*ClickHouse)
		want   string // empty: valid
	}{
		"loopback":                    {func(*ClickHouse) {}, ""},
		"with a certificate":          {func(c *ClickHouse) { c.Listen, c.ListenTLSCert, c.ListenTLSKey = "0.0.0.0:8123", "c", "k" }, ""},
		"off, whatever else is set":   {func(c *ClickHouse) { c.Listen, c.DSN = "", "http://ch:8123" }, ""},
		"a store of its own":          {func(c *ClickHouse) { c.DSN = "http://ch:8123" }, "point Grafana at that server"},
		"without a password":          {func(c *ClickHouse) { c.ListenPasswordFile = "" }, "clickhouse-listen-password-file"},
		"without a user":              {func(c *ClickHouse) { c.ListenUser = "" }, "clickhouse-listen-user"},
		"in the open":                 {func(c *ClickHouse) { c.Listen = "0.0.0.0:8123" }, "is not loopback"},
		"a certificate without a key": {func(c *ClickHouse) { c.ListenTLSCert = "c" }, "both or neither"},
		"no address":                  {func(c *ClickHouse) { c.Listen = "8123" }, "invalid address"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Default()
			c.ClickHouse.Listen, c.ClickHouse.ListenPasswordFile = "127.0.0.1:8123", "p"
			tc.change(&c.ClickHouse)
			err := c.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}
