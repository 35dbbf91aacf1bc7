// Package prometheus evaluates the alert rules with Prometheus's own engine: quiet on a
// healthy installation, firing on a broken one. It is a module of its own because the engine
// brings much that the product does not need.
package prometheus

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"gopkg.in/yaml.v3"
)

// load is an hour and three quarters of every metric the rules look at; words in capitals stand
// for what a test puts there.
const load = `load 1m
  retrial_runner_in_total{instance="a",job="r"} 0+100x120
  retrial_runner_partitions{instance="a",job="r"} 1x120
  process_start_time_seconds{instance="a",job="r"} 0x120
  retrial_webhook_last_body_timestamp_seconds{instance="a",job="r",source="webhook"} QUIETBODY
  retrial_webhook_cluster_last_events_timestamp_seconds{instance="a",job="r",cluster="prod"} QUIETCLUSTER
  retrial_webhook_requests_total{instance="a",job="r",source="webhook",code="2xx"} 0+10x120
  retrial_webhook_requests_total{instance="a",job="r",source="webhook",code="429"} ZERO
  retrial_webhook_refused_requests_total{instance="a",job="r",source="webhook",reason="aborted"} 0+1x120
  retrial_webhook_refused_requests_total{instance="a",job="r",source="webhook",reason="credential"} ZERO
  retrial_webhook_dead_letters_total{instance="a",job="r",source="webhook",reason="too-large"} ZERO
  retrial_runner_deadletters_total{instance="a",job="r",reason="x"} 0x120
  retrial_runner_verdicts_total{instance="a",job="r",outcome="match"} 0+100x120
  retrial_runner_verdicts_total{instance="a",job="r",outcome="drift"} ZERO
  retrial_runner_verdicts_total{instance="a",job="r",outcome="indeterminate"} INDET
  retrial_runner_lag_records{instance="a",job="r",topic="audit.events"} LAG
  retrial_runner_stuck_operations{instance="a",job="r",operation="insert"} GAUGE
  retrial_webhook_certificate_expiry_timestamp_seconds{instance="a",job="r",certificate="ca"} CERT
  retrial_webhook_certificate_expiry_timestamp_seconds{instance="a",job="r",certificate="client"} 0x120
  retrial_embedded_log_bytes{instance="a",job="r"} LOG
  retrial_embedded_log_limit_bytes{instance="a",job="r"} 100x120
  retrial_embedded_sync_failed{instance="a",job="r"} GAUGE
  retrial_embedded_resets_total{instance="a",job="r"} ZERO
  retrial_spool_active{instance="a",job="r"} GAUGE
  retrial_spool_bytes{instance="a",job="r"} LOG
  retrial_spool_max_bytes{instance="a",job="r"} 100x120
  retrial_spool_unsent_records_total{instance="a",job="r",reason="damaged"} ZERO
  retrial_completeness_missing_events{instance="a",job="r",cluster="prod",apiserver="one"} GAUGE
  retrial_completeness_half_requests{instance="a",job="r",cluster="prod",apiserver=""} HALVES
  retrial_completeness_silent_seconds{instance="a",job="r",cluster="prod",apiserver="one"} SILENT
  retrial_completeness_read_timestamp_seconds{instance="a",job="r",cluster="prod",apiserver="one"} READ
  retrial_storage_disk_free_bytes{instance="a",job="r"} DISK
  retrial_storage_inserts_total{instance="a",job="r",result="error"} ZERO
  retrial_runner_unknown_objects{instance="a",job="r",cluster="prod",reach="anybody"} GAUGE
  retrial_runner_unknown_objects{instance="a",job="r",cluster="prod",reach="role"} GAUGE
  retrial_watch_synced{instance="a",job="r",cluster="prod",resource="roles"} SYNC
  retrial_watch_gaps_total{instance="a",job="r",cluster="prod",resource="roles"} ZERO
  retrial_runner_replay_panics_total{instance="a",job="r"} ZERO
  retrial_sqlgate_queries_total{instance="a",job="r",result="unauthenticated"} MANY
  retrial_detect_findings_total{instance="a",job="r",severity="high"} ZERO
  retrial_detect_lag_seconds{instance="a",job="r"} DLAG
  retrial_detect_parts{instance="a",job="r"} 3x120
  retrial_detect_parts{instance="b",job="r"} 3x120
  retrial_detect_parts_led{instance="a",job="r"} SYNC
  retrial_detect_parts_led{instance="b",job="r"} 2x120
  retrial_detect_errors_total{instance="a",job="r",step="pass"} ZERO
  retrial_stream_refusals_total{instance="a",job="r",of="rights"} ZERO
  retrial_webhook_ack_duration_seconds_bucket{instance="a",job="r",source="webhook",le="1"} ACK
  retrial_webhook_ack_duration_seconds_bucket{instance="a",job="r",source="webhook",le="20"} 0+10x120
  retrial_webhook_ack_duration_seconds_bucket{instance="a",job="r",source="webhook",le="+Inf"} 0+10x120
`

// rules returns the expressions of the alert rules by name.
func rules(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../dashboards/grafana/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			out[r.Alert] = r.Expr
		}
	}
	return out
}

// firing evaluates every rule at the end of load and returns how many alerts each gives.
func firing(t *testing.T, values ...string) map[string]int {
	t.Helper()
	store := promqltest.LoadedStorage(t, strings.NewReplacer(values...).Replace(load))
	defer store.Close()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	out := map[string]int{}
	for name, expr := range rules(t) {
		q, err := engine.NewInstantQuery(context.Background(), store, nil, expr, time.Unix(110*60, 0))
		if err != nil {
			t.Fatal(name, err)
		}
		v, err := q.Exec(context.Background()).Vector()
		if err != nil {
			t.Fatal(name, err)
		}
		out[name] = len(v)
	}
	return out
}

func TestQuiet(t *testing.T) {
	for name, n := range firing(t, "QUIETBODY", "0+60x120", "QUIETCLUSTER", "0+60x120", "ZERO", "0x120", "INDET", "0+1x120", "LAG",
		"500x120",
		"GAUGE", "0x120", "CERT", "40000000x120", "LOG", "10x120", "DISK", "100000000000x120", "SYNC", "1x120", "MANY", "0+1x120", "DLAG",
		"300x120", "ACK", "0+10x120", "HALVES", "3x120", "SILENT", "0x120", "READ", "0+60x120") {
		if n != 0 {
			t.Errorf("%s fires", name)
		}
	}
}

func TestFiring(t *testing.T) {
	broken := []string{"QUIETBODY", "60x120", "ZERO", "0+1x120", "INDET", "0+50x120", "LAG", "500000x120", "GAUGE", "1x120", "CERT",
		"100000x120",
		"LOG", "90x120", "DISK", "1000x120", "SYNC", "0x120", "MANY", "0+100x120", "DLAG", "301x120", "ACK", "0x120", "HALVES", "30x120",
		"SILENT", "2000x120", "READ", "60x120"}
	// What cannot be at once with the others has a test of its own.
	apart := map[string]bool{"RetrialAbsent": true, "RetrialStandsStill": true, "RetrialClusterNeverCame": true}
	for name, n := range firing(t, append(broken, "QUIETCLUSTER", "60x120")...) {
		if n == 0 && !apart[name] {
			t.Errorf("%s stays quiet", name)
		}
	}
	still := `in_total{instance="a",job="r"} `
	got := firing(t, append(broken, "QUIETCLUSTER", "0x120", still+"0+100x120", still+"5x120")...)
	if got["RetrialClusterNeverCame"] != 1 || got["RetrialStandsStill"] != 1 || got["RetrialClusterSilent"] != 0 {
		t.Error(got)
	}
	if got := firing(t, append(broken, "QUIETCLUSTER", "60x120", "retrial_runner_in_total", "another_total")...); got["RetrialAbsent"] !=
		1 {
		t.Error(got)
	}
}
