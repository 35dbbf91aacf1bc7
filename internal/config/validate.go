package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Validate checks what no single field can check. All errors are joined.
func (c *Config) Validate() error {
	var f faults
	f.when(c.DataDir == "", "data-dir: must not be empty")
	for _, part := range []interface{ validate(*faults) }{&c.Log, &c.Webhook, &c.Watch, &c.UI, &c.Kafka, &c.Spool, &c.ClickHouse, &c.Replay,
		&c.Detect, &c.Completeness, &c.Retention, &c.Debug} {
		part.validate(&f)
	}
	return errors.Join(f...)
}

// faults are what is wrong with a configuration.
type faults []error

// when notes a fault if it is one.
func (f *faults) when(is bool, format string, args ...any) {
	if is {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// address notes a listener's address that is none, and returns whether it is one.
func (f *faults) address(flag, addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	_, perr := strconv.ParseUint(port, 10, 16)
	bad := err != nil || perr != nil
	f.when(bad, "%s: invalid address %q: want HOST:PORT, such as 127.0.0.1:8080", flag, addr)
	return !bad
}

// clusters notes entries that cannot be split, and clusters that are named twice; hint says what to do then.
func (f *faults) clusters(flag string, entries []string, split func(string) (cluster, value string, err error), hint string) {
	named := map[string]bool{}
	for _, entry := range entries {
		cluster, _, err := split(entry)
		f.when(err != nil, "%s: %w", flag, err)
		f.when(err == nil && named[cluster], "%s: cluster %s is named twice%s", flag, cluster, hint)
		named[cluster] = true
	}
}

func (c *Log) validate(f *faults) {
	f.when(!slices.Contains([]string{"debug", "info", "warn", "error"}, c.Level),
		"log-level: invalid level %q: want debug, info, warn or error", c.Level)
	f.when(c.Format != "console" && c.Format != "json", "log-format: invalid format %q: want console or json", c.Format)
}

func (c *Webhook) validate(f *faults) {
	f.when(c.MaxBodyBytes == 0, "webhook-max-body-bytes: 0 would accept nothing")
	f.when(c.MaxEventBytes == 0, "webhook-max-event-bytes: 0 would accept nothing")
	f.when(c.MaxInFlightBytes == 0, "webhook-max-in-flight-bytes: 0 would accept nothing")
	f.when(c.MaxClusterInFlight == 0, "webhook-max-cluster-in-flight-bytes: 0 would accept nothing")
	f.when(f.address("webhook-listen", c.Listen) && c.AllowAnonymous && !Loopback(c.Listen),
		"webhook-allow-anonymous: %s is not loopback; "+
			"let apiservers present the certificate of `retrial cluster add`, or a token (webhook-token-file)", c.Listen)
}

func (c *Watch) validate(f *faults) {
	f.clusters("watch-clusters", c.Clusters, WatchedCluster, "")
}

func (c *UI) validate(f *faults) {
	f.when((c.TLSCert == "") != (c.TLSKey == ""), "ui-tls-cert and ui-tls-key: set both or neither")
	f.when(f.address("ui-listen", c.Listen) && !Loopback(c.Listen) && c.TokenFile == "",
		"ui-listen: %s is not loopback; set ui-token-file so that callers must authenticate, or listen on 127.0.0.1", c.Listen)
}

func (c *Kafka) validate(f *faults) {
	f.when(c.Partitions < 0, "kafka-partitions: must not be negative")
	f.when(c.ClusterPartitions < 1, "kafka-cluster-partitions: %d: want at least 1", c.ClusterPartitions)
	f.when(!slices.Contains([]string{"", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}, c.SASLMechanism),
		"kafka-sasl-mechanism: invalid mechanism %q: want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", c.SASLMechanism)
}

func (c *Spool) validate(f *faults) {
	f.when(bool(c.On) && c.MaxBytes < 1<<20, "spool-max-bytes: %s is too little: want at least 1MiB, or --spool off", c.MaxBytes)
}

func (c *ClickHouse) validate(f *faults) {
	overTLS := strings.HasPrefix(c.DSN, "https://")
	f.when(c.DSN != "" && !overTLS && !strings.HasPrefix(c.DSN, "http://"),
		"clickhouse-dsn: want a URL that begins with http:// or https://: ClickHouse's HTTP interface is used")
	f.when(c.Cluster != "" && c.DSN == "", "clickhouse-cluster: name one of the cluster's servers with clickhouse-dsn")
	f.when(c.EmbeddedThreads < 0, "clickhouse-embedded-threads: %d: want at least 0", c.EmbeddedThreads)
	f.when(c.CAFile != "" && !overTLS, "clickhouse-ca-file: it applies to TLS only: begin clickhouse-dsn with https://")
	if c.Listen == "" || !f.address("clickhouse-listen", c.Listen) {
		return
	}
	f.when(c.DSN != "", "clickhouse-listen: it serves the embedded store, but clickhouse-dsn names a server: "+
		"point Grafana at that server, with a user that may only read (docs/grafana.md has the grants)")
	f.when(c.ListenUser == "" || c.ListenPasswordFile == "",
		"clickhouse-listen: set clickhouse-listen-user and clickhouse-listen-password-file: no client is answered without a password")
	f.when((c.ListenTLSCert == "") != (c.ListenTLSKey == ""),
		"clickhouse-listen-tls-cert and clickhouse-listen-tls-key: set both or neither")
	f.when(!Loopback(c.Listen) && c.ListenTLSCert == "", "clickhouse-listen: %s is not loopback; "+
		"set clickhouse-listen-tls-cert and -key, or the password can be read in transit; or listen on 127.0.0.1", c.Listen)
}

func (c *Replay) validate(f *faults) {
	f.when(c.Hold < 0 || c.Lag < 0 || c.Linger < 0, "replay-hold, replay-lag and replay-linger: must not be negative")
	f.when(c.BatchRows < 1, "replay-batch-rows: must be at least 1")
	f.clusters("apiserver-config", c.ApiserverConfig, ApiserverFolder, "; all versions of a cluster belong in one folder")
}

func (c *Detect) validate(f *faults) {
	f.when(c.Lateness < 0 || c.Every < Duration(100*time.Millisecond), "detect-lateness must not be negative, detect-every at least 100ms")
}

func (c *Completeness) validate(f *faults) {
	for _, list := range []struct {
		flag    string
		entries []string
	}{
		{"completeness-scrape", c.Scrape}, {"completeness-token-files", c.TokenFiles}, {"completeness-ca-files", c.CAFiles},
		{"completeness-client-certificates", c.CertFiles}, {"completeness-client-keys", c.KeyFiles},
	} {
		for _, entry := range list.entries {
			_, _, _, err := ApiserverEntry(entry)
			f.when(err != nil, "%s: %w", list.flag, err)
		}
	}
	f.when(c.Every < Duration(time.Second), "completeness-every: must be at least 1s")
}

func (c *Retention) validate(f *faults) {
	day := Duration(24 * time.Hour)
	f.when(c.Events%day != 0 || c.Rollups%day != 0, "retention-events and retention-rollups: want whole days, such as 30d")
}

func (c *Debug) validate(f *faults) {
	f.when(c.Listen != "" && f.address("debug-listen", c.Listen) && !Loopback(c.Listen),
		"debug-listen: %s is not loopback; listen on 127.0.0.1, and reach it from elsewhere through ssh", c.Listen)
}
