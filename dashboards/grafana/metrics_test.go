package grafana_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/retrial-io/retrial/test/grafana"
)

// constLabels are labels that docs/metrics.md, which lists what varies within a process,
// does not have: each registration fixes them. ingest/webhook, ingest/identity, ingest/watch.
func constLabels(metric string) []string {
	switch {
	case metric == "retrial_webhook_certificate_expiry_timestamp_seconds":
		return []string{"certificate"}
	case strings.HasPrefix(metric, "retrial_webhook_") && metric != "retrial_webhook_cluster_last_events_timestamp_seconds":
		return []string{"source"}
	case strings.HasPrefix(metric, "retrial_watch_"):
		return []string{"cluster"}
	}
	return nil
}

// metrics reads the names and labels of docs/metrics.md, which a test of cmd holds to the
// registry, and adds those of the process that every Go program has.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{
		"process_resident_memory_bytes": nil, "process_cpu_seconds_total": nil, "process_start_time_seconds": nil, "go_goroutines": nil,
	}
	row := regexp.MustCompile("(?m)^\\| `(retrial_[a-z_0-9]+)` \\| ([^|]*) \\|")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		var names []string
		for _, l := range strings.Split(m[2], ",") {
			if l = strings.TrimSpace(l); l != "" {
				names = append(names, l)
			}
		}
		out[m[1]] = append(names, constLabels(m[1])...)
	}
	if len(out) < 50 {
		t.Fatalf("%d metrics", len(out))
	}
	return out
}

// histograms are the metrics that have buckets.
var histograms = []string{
	"retrial_webhook_ack_duration_seconds", "retrial_runner_block_seconds", "retrial_runner_hold_seconds", "retrial_storage_insert_seconds",
	"retrial_storage_known_seconds", "retrial_stream_produce_duration_seconds", "retrial_runner_block_records",
	"retrial_sqlgate_query_seconds",
}

// target labels Prometheus itself adds.
var targetLabels = []string{"instance", "job"}

// faults parses an expression and holds every metric and label in it to the registry.
func faults(expr string, known map[string][]string) (out []string) {
	fault := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	tree, err := parser.ParseExpr(strings.ReplaceAll(expr, "$__rate_interval", "5m"))
	if err != nil {
		return []string{err.Error()}
	}
	labelsOf := func(metric string) ([]string, bool) {
		if l, ok := known[metric]; ok {
			return l, !slices.Contains(histograms, metric)
		}
		base, ok := strings.CutSuffix(metric, "_bucket")
		return append([]string{"le"}, known[base]...), ok && slices.Contains(histograms, base)
	}
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			has, ok := labelsOf(n.Name)
			if !ok {
				fault("the metric %q does not exist in that form", n.Name)
			}
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(has, m.Name) && !slices.Contains(targetLabels, m.Name) {
					fault("%s has no label %q", n.Name, m.Name)
				}
			}
			if strings.HasSuffix(n.Name, "_total") && !inRange(tree, n) {
				fault("the counter %s is read without rate or increase", n.Name)
			}
		case *parser.AggregateExpr:
			var below []string
			parser.Inspect(n.Expr, func(k parser.Node, _ []parser.Node) error {
				if v, ok := k.(*parser.VectorSelector); ok {
					has, _ := labelsOf(v.Name)
					below = append(below, has...)
				}
				return nil
			})
			for _, l := range n.Grouping {
				if !slices.Contains(below, l) && !slices.Contains(targetLabels, l) {
					fault("nothing in %s has the label %q", n.Expr, l)
				}
			}
		}
		return nil
	})
	return out
}

// inRange reports whether a selector stands in a range or under absent.
func inRange(tree parser.Node, sel *parser.VectorSelector) (found bool) {
	parser.Inspect(tree, func(n parser.Node, path []parser.Node) error {
		if n != parser.Node(sel) {
			return nil
		}
		for _, p := range path {
			switch p := p.(type) {
			case *parser.MatrixSelector:
				found = true
			case *parser.Call:
				found = found || p.Func.Name == "absent"
			}
		}
		return nil
	})
	return found
}

// TestPromQL: every metric and label that a panel asks for exists, and every label in a
// legend is one the series have.
func TestPromQL(t *testing.T) {
	known := metrics(t)
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if q.Expr == "" {
					continue
				}
				where := file + ", " + p.Title
				for _, f := range faults(q.Expr, known) {
					t.Errorf("%s: %s", where, f)
				}
				for _, m := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
					if !strings.Contains(q.Expr, m[1]) && !slices.Contains(targetLabels, m[1]) && !legendOf(q.Expr, m[1], known) {
						t.Errorf("%s: the legend's %q is not a label of %s", where, m[1], q.Expr)
					}
				}
			}
		}
	}
}

// legendOf reports whether some metric of an expression without aggregation has the label.
func legendOf(expr, label string, known map[string][]string) bool {
	for name, has := range known {
		if strings.Contains(expr, name) && slices.Contains(has, label) {
			return !strings.Contains(expr, "sum(") && !strings.Contains(expr, " by (")
		}
	}
	return false
}

// TestFaults: the check finds what it is for.
func TestFaults(t *testing.T) {
	known := metrics(t)
	for name, expr := range map[string]string{
		"unknown metric":     "rate(retrial_runner_out_totals[5m])",
		"unknown label":      `rate(retrial_runner_verdicts_total{kind="drift"}[5m])`,
		"unknown grouping":   "sum by (kind) (rate(retrial_runner_verdicts_total[5m]))",
		"bare counter":       "sum(retrial_runner_out_total)",
		"histogram as gauge": "retrial_storage_insert_seconds",
		"bucket of a gauge":  "retrial_runner_partitions_bucket",
		"syntax":             "sum(",
	} {
		t.Run(name, func(t *testing.T) {
			if len(faults(expr, known)) == 0 {
				t.Errorf("%s passes", expr)
			}
		})
	}
}

// TestAlerts: every rule parses, asks for metrics that exist, and says what to do.
func TestAlerts(t *testing.T) {
	var f struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	read(t, "alerts.yaml", &f)
	known := metrics(t)
	seen := map[string]bool{}
	label := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			t.Run(r.Alert, func(t *testing.T) {
				if seen[r.Alert] || !strings.HasPrefix(r.Alert, "Retrial") {
					t.Errorf("the name %q", r.Alert)
				}
				seen[r.Alert] = true
				for _, f := range faults(r.Expr, known) {
					t.Error(f)
				}
				if s := r.Labels["severity"]; s != "critical" && s != "warning" {
					t.Errorf("severity %q", s)
				}
				if r.For != "" {
					if _, err := time.ParseDuration(r.For); err != nil {
						t.Error(err)
					}
				}
				for _, a := range []string{"summary", "description", "runbook"} {
					if len(r.Annotations[a]) < 20 {
						t.Errorf("%s: %q", a, r.Annotations[a])
					}
					for _, m := range label.FindAllStringSubmatch(r.Annotations[a], -1) {
						if !strings.Contains(r.Expr, m[1]) && !legendOf(r.Expr, m[1], known) {
							t.Errorf("%s: the alert has no label %q", a, m[1])
						}
					}
				}
			})
		}
	}
	if len(seen) < 15 {
		t.Errorf("%d rules", len(seen))
	}
}

// TestExpand: macros and variables become what the data source makes of them, and what is
// not known is an error.
func TestExpand(t *testing.T) {
	v := grafana.Values{
		From: time.Unix(1000, 0).UTC(), To: time.Unix(200000, 0).UTC(), Interval: time.Minute,
		Vars: map[string]string{"cluster": "a'b\\\n%"},
	}
	for name, tc := range map[string]struct{ in, want string }{
		"filter":   {"$__timeFilter(minute)", "minute >= toDateTime(1000) AND minute <= toDateTime(200000)"},
		"days":     {"$__dateFilter(day)", "day >= toDate('1970-01-01') AND day <= toDate('1970-01-03')"},
		"step":     {"$__timeInterval(f(a))", "toStartOfInterval(toDateTime(f(a)), INTERVAL 60 second)"},
		"bounds":   {"$__fromTime $__toTime $__interval_s", "toDateTime(1000) toDateTime(200000) 60"},
		"variable": {"'${cluster:percentencode}'", "'a%27b%5C%0A%25'"},
		// errors
		"plain variable":   {"'${cluster}'", ""},
		"quoted variable":  {"${cluster:sqlstring}", ""},
		"unknown variable": {"${x:percentencode}", ""},
		"unknown macro":    {"$__nothing(a)", ""},
		"without argument": {"$__timeFilter", ""},
		"not closed":       {"$__timeFilter(a", ""},
		"bare":             {"$cluster", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := grafana.Expand(tc.in, v)
			if (err != nil) != (tc.want == "") || err == nil && got != tc.want {
				t.Fatalf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
