package runner

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/retrial-io/retrial/verdict"
)

// metrics are the runner's figures. Labels come from closed sets only.
type metrics struct {
	in, out       prometheus.Counter
	deadLettered  *prometheus.CounterVec // reason
	policyLetters *prometheus.CounterVec // reason
	duplicates    *prometheus.CounterVec // kind: event, content, position
	verdicts      *prometheus.CounterVec // outcome
	corrections   *prometheus.CounterVec // outcome, of the verdict that came to stand
	rejudged      prometheus.Counter
	recovered     prometheus.Counter
	retries       *prometheus.CounterVec // operation
	stuck         *prometheus.GaugeVec   // operation
	policy        prometheus.Counter
	panics        prometheus.Counter
	holdTimeouts  prometheus.Counter
	letters       prometheus.Counter
	barriers      prometheus.Counter
	forwarded     prometheus.Counter
	waiting       prometheus.Gauge

	hold    prometheus.Histogram
	steps   *prometheus.HistogramVec // step
	replay  prometheus.Counter
	blocks  prometheus.Histogram
	lag     *prometheus.GaugeVec // topic
	owned   prometheus.Gauge
	backlog prometheus.Gauge

	cacheLag prometheus.Gauge

	pruned, forgotten prometheus.Counter
	horizon, contents prometheus.Gauge
}

// Kinds of duplicates.
const (
	duplicateEvent    = "event"    // the same event under another position
	duplicateContent  = "content"  // the same event with other content; the fuller copy stands
	duplicatePosition = "position" // a record stored before, read again outside a recovery
)

// Steps of a block, as timed.
const (
	stepDecode = "decode"
	stepPolicy = "policy"
	stepKnown  = "known"
	stepReplay = "replay"
	stepInsert = "insert"
	stepCommit = "commit"
)

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return auto.NewCounter(prometheus.CounterOpts{Name: "retrial_runner_" + name, Help: help})
	}
	counters := func(name, help, label string, values ...string) *prometheus.CounterVec {
		v := auto.NewCounterVec(prometheus.CounterOpts{Name: "retrial_runner_" + name, Help: help}, []string{label})
		for _, value := range values {
			v.WithLabelValues(value)
		}
		return v
	}
	gauge := func(name, help string) prometheus.Gauge {
		return auto.NewGauge(prometheus.GaugeOpts{Name: "retrial_runner_" + name, Help: help})
	}
	m := &metrics{
		in:  counter("in_total", "Event records taken from the stream and settled."),
		out: counter("out_total", "Event records that stand as rows of the store."),
		deadLettered: counters("deadletters_total", "Event records that could not be processed.",
			"reason", reasonPoison, reasonCodec),
		policyLetters: counters("policy_deadletters_total", "Policy records that could not be processed.",
			"reason", reasonPoison, reasonCodec),
		duplicates: counters("duplicates_total", "Event records of events already stored, by what they duplicate.",
			"kind", duplicateEvent, duplicateContent, duplicatePosition),
		verdicts: counters("verdicts_total", "Verdicts stored for new requests, by outcome.", "outcome", verdict.OutcomeNames()...),
		corrections: counters("corrections_total", "Verdicts replaced because policy became known late, by the outcome that stands now.",
			"outcome", verdict.OutcomeNames()...),
		rejudged:  counter("rejudged_total", "Stored verdicts judged again because policy became known late, changed or not."),
		recovered: counter("recovered_blocks_total", "Blocks whose insertion had an unknown outcome and was settled."),
		stuck: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "retrial_runner_stuck_operations", Help: "Operations that have failed ten times in a row and are still repeated; " +
				"their partitions wait.",
		}, []string{"operation"}),
		retries:      counters("retries_total", "Operations repeated after an error, by operation.", "operation", operations[:]...),
		policy:       counter("policy_records_total", "Policy records applied to the states."),
		panics:       counter("replay_panics_total", "Events whose replay, or whose detection rules, panicked; each is a bug."),
		holdTimeouts: counter("hold_timeouts_total", "Blocks judged without waiting longer for the policy reader."),
		letters:      counter("deadletters_saved_total", "Dead letters moved from the stream to the store."),
		barriers:     counter("layout_barriers_total", "Barriers passed: records that tell of a layout of the partitions."),
		forwarded: counter("forwarded_total", "Event records that stood in another partition than theirs and were appended to that; "+
			"they are counted where they arrive."),
		waiting: gauge("layout_waiting_partitions", "Owned partitions that store nothing until others have reached the layout they have "+
			"reached."),
		replay: counter("replay_cpu_seconds_total", "Time spent replaying, summed over goroutines."),
		hold: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "retrial_runner_hold_seconds", Help: "Time a block waited for the policy reader, after its records had been held.",
			Buckets: []float64{0.001, 0.01, 0.1, 0.5, 1, 2, 3, 5, 10, 30},
		}),
		steps: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: "retrial_runner_block_seconds", Help: "Time one block spent in a step.",
			Buckets: []float64{0.0005, 0.002, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10},
		}, []string{"step"}),
		blocks: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "retrial_runner_block_records", Help: "Records of one block.",
			Buckets: []float64{1, 10, 100, 1000, 5000, 10000, 20000},
		}),
		lag: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "retrial_runner_lag_records", Help: "Records of the owned partitions not yet settled, as of the last fetch.",
		}, []string{"topic"}),
		owned: gauge("partitions", "Partitions of audit.events owned at present."),
		cacheLag: gauge("cache_lag_seconds", "Longest cache lag learnt of an apiserver: by how much its decisions were behind policy; 0 "+
			"until three requests show one."),
		pruned: counter("policy_pruned_versions_total", "Versions of policy forgotten in memory because no kept request needs them."),
		forgotten: counter("forgotten_requests_total", "Requests that were judged without the policy of their time, as it was not in "+
			"memory: stays 0, since it is loaded for them."),
		horizon: gauge("policy_horizon_timestamp_seconds", "Since when roles and bindings are kept in memory, of the cluster "+
			"with the shortest history: a day before its oldest stored request. What is older is loaded on demand; 0 while everything is "+
			"kept."),
		contents: gauge("policy_forgotten_contents", "Contents of large policy objects forgotten in memory because their older versions "+
			"took more than 64 MiB of a cluster: what they held at their time is unknown."),
		backlog: gauge("correction_log_entries", "Policy changes remembered for corrections."),
	}
	for _, op := range operations {
		m.stuck.WithLabelValues(op)
	}
	return m
}

// blindness tells of each cluster how many roles and bindings are not known at present, when
// /metrics is asked: what they could give is neither seen nor missed.
type blindness struct {
	states  *states
	unknown *prometheus.Desc
}

// newHeldClusters tells how many clusters' states are held.
func newHeldClusters(s *states) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "retrial_runner_clusters", Help: "Clusters whose policy is held in memory: " +
		"those the owned partitions have rows of, and those asked about a while ago."}, func() float64 { return float64(len(s.names())) })
}

// How far what is not known of an object reaches.
const (
	reachAnybody = "anybody" // a binding that could name any role and anybody
	reachRole    = "role"    // what one role gives, or could give
)

// farFuture is after every change: clocks of apiservers may be ahead.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func newBlindness(s *states) blindness {
	return blindness{s, prometheus.NewDesc("retrial_runner_unknown_objects",
		"Roles and bindings whose content is not known at present, by what could rest on it: any access of anybody, or what one role "+
			"gives.", []string{"cluster", "reach"}, nil)}
}

// Describe implements prometheus.Collector.
func (b blindness) Describe(ch chan<- *prometheus.Desc) { ch <- b.unknown }

// Collect implements prometheus.Collector.
func (b blindness) Collect(ch chan<- prometheus.Metric) {
	for _, name := range b.states.names() {
		s, ok := b.states.find(name)
		if !ok {
			continue
		}
		view := s.RBAC(farFuture)
		anybody, role := view.Blind()
		ch <- prometheus.MustNewConstMetric(b.unknown, prometheus.GaugeValue, float64(len(anybody)), name, reachAnybody)
		ch <- prometheus.MustNewConstMetric(b.unknown, prometheus.GaugeValue, float64(len(role)), name, reachRole)
	}
}
