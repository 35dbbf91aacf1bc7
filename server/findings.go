package server

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/procstat"
	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/storage"
)

// detections has the two ends of detecting while requests come in, see docs/adr/0050:
//
//	runner ─▶ tagger: marks, in the row that is stored ─▶ events ─▶ sums of marks
//	                                                                   │ those that changed
//	whoever has the cluster (lease): a pass every few seconds ◀────────┘
//	   └─▶ marked requests ─▶ findings
type detections struct {
	cfg     config.Config
	log     *zap.Logger
	rules   *detect.Set
	store   *storage.Store
	stream  *stream.Client
	owned   bool // the store is this process's: nobody else stores into it, and its work is ours
	tagger  *detect.Tagger
	metrics *detectMetrics

	mu   sync.Mutex
	told map[string]bool // rules whose failure has been logged
	asOf time.Time       // up to when changes have been worked out; zero: this process works out none

	kept *upkeep // what was last worked on
}

// upkeep is the work on the findings of a share of the clusters.
type upkeep struct {
	parts []int32
	of    int
	live  *detect.Live
	pace  *detect.Pace
}

type detectMetrics struct {
	findings, errors          *prometheus.CounterVec
	withdrawn, spans, dropped prometheus.Counter
	seconds                   prometheus.Histogram
	waiting                   prometheus.Gauge
	leader, parts, led        prometheus.Gauge
}

// Where an expression or a pass can fail.
const (
	failMark = "mark"
	failFind = "find"
	failPass = "pass"
)

// newDetectMetrics registers the metrics; lag is how far findings are behind, in seconds.
func newDetectMetrics(reg prometheus.Registerer, enabled bool, lag func() float64) *detectMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "retrial_detect_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "retrial_detect_" + name, Help: help})
	}
	m := &detectMetrics{
		findings: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_detect_findings_total",
			Help: "Findings stored, new or with more requests, by severity."}, []string{"severity"}),
		withdrawn: counter("withdrawn_total", "Findings taken back because their requests were corrected."),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_detect_errors_total",
			Help: "Failures by step: mark and find, an expression on a request; pass, a pass over what changed, which is repeated."},
			[]string{"step"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "retrial_detect_pass_seconds",
			Help: "Time of a pass over what changed, without its rests.", Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 30, 100}}),
		spans:   counter("spans_total", "Stretches of time worked out, one of one rule each."),
		waiting: gauge("waiting_spans", "Stretches of time that changed and wait to be worked out, most of them for time to pass."),
		dropped: counter("dropped_requests_total", "Requests left out of rules that count because there were too many groups at once."),
		leader: prometheus.NewGauge(prometheus.GaugeOpts{Name: doctor.MetricDetectLeader,
			Help: "1 in a process that works out findings."}),
		parts: prometheus.NewGauge(prometheus.GaugeOpts{Name: doctor.MetricDetectParts,
			Help: "Parts the clusters are divided into, so that processes share the work on findings."}),
		led: prometheus.NewGauge(prometheus.GaugeOpts{Name: doctor.MetricDetectPartsLed,
			Help: "Parts whose findings this process works out; over all processes the sum is the number of parts."}),
	}
	m.parts.Set(1) // as long as nobody has divided anything, nobody works out anything
	for _, step := range []string{failMark, failFind, failPass} {
		m.errors.WithLabelValues(step)
	}
	for _, severity := range detect.Severities() {
		m.findings.WithLabelValues(severity)
	}
	reg.MustRegister(m.findings, m.withdrawn, m.errors, m.seconds, m.spans, m.waiting, m.dropped)
	if !enabled {
		return m // a leader is not to be missed
	}
	reg.MustRegister(m.leader, m.parts, m.led, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: doctor.MetricDetectLag,
		Help: "How long requests may have waited for findings to take them into account; 0 where this process makes no findings."}, lag))
	return m
}

// open registers the metrics and makes the tagger; the rest of d has been set.
func (d *detections) open(reg prometheus.Registerer) *detections {
	d.told = map[string]bool{}
	d.metrics = newDetectMetrics(reg, d.cfg.Detect.Enabled, func() float64 { return d.lag(time.Now()).Seconds() })
	d.tagger = detect.NewTagger(d.rules, func(rule string, err error) { d.failed(failMark, rule, err.Error(), 1) })
	return d
}

// failed counts expressions that failed on requests; the first failure of a rule is logged.
func (d *detections) failed(step, rule, example string, n int64) {
	d.metrics.errors.WithLabelValues(step).Add(float64(n))
	d.mu.Lock()
	first := !d.told[rule]
	d.told[rule] = true
	d.mu.Unlock()
	if first {
		d.log.Warn("detection rule fails on some requests; it does not match them", zap.String("rule", rule), zap.String("error", example))
	}
}

// worked notes up to when changes have been worked out.
func (d *detections) worked(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asOf = at
}

// since returns up to when changes have been worked out; zero: not known, or by another process.
func (d *detections) since() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asOf
}

// lag returns how long what findings do not take into account yet may have waited. It grows with the clock: a process that stopped shows.
func (d *detections) lag(now time.Time) time.Duration {
	since := d.since()
	if since.IsZero() {
		return 0
	}
	return now.Sub(since)
}

// alone reports whether nobody else works out findings while a lease is lost.
func (d *detections) alone() bool { return len(d.cfg.Kafka.Brokers) == 0 }

// run keeps the findings of this process's share of the clusters up to date until ctx ends.
func (d *detections) run(ctx context.Context) error {
	if !d.cfg.Detect.Enabled {
		<-ctx.Done()
		return nil
	}
	if d.alone() {
		d.worked(time.Now())
	}
	return d.stream.Divide(ctx, "detect", d.keep)
}

// keep keeps the findings of a share up to date until it is lost, and then tells whoever has its parts next how far they are.
func (d *detections) keep(ctx context.Context, share *stream.Share) error {
	for gauge, n := range map[prometheus.Gauge]int{d.metrics.leader: 1, d.metrics.led: len(share.Parts)} {
		gauge.Set(float64(n))
		defer gauge.Set(0)
	}
	d.metrics.parts.Set(float64(share.Of))
	if !d.alone() {
		d.worked(d.begun(ctx, share))
		defer d.worked(time.Time{})
		defer func() { d.note(context.WithoutCancel(ctx), share) }()
	}
	work, err := d.upkeep(share)
	if err != nil {
		return err
	}
	noted := time.Now()
	for {
		try := func(ctx context.Context, pass func(context.Context) (detect.Pass, error)) {
			if _, err := d.pass(ctx, pass); err != nil && ctx.Err() == nil {
				d.metrics.errors.WithLabelValues(failPass).Inc()
				d.log.Warn("findings are not up to date, trying again", zap.Error(err))
			}
		}
		try(ctx, work.live.Pass)
		if err := work.pace.Between(ctx, func(ctx context.Context) { try(ctx, work.live.Urgent) }); err != nil {
			return nil //nolint:nilerr // the share is lost, or the process stops
		}
		if !d.alone() && time.Since(noted) >= noteEvery {
			d.note(ctx, share)
			noted = time.Now()
		}
	}
}

// upkeep returns the work on a share, which is what it was before if the share is: leases are given anew whenever a process comes or goes.
func (d *detections) upkeep(share *stream.Share) (*upkeep, error) {
	if k := d.kept; k != nil && k.of == share.Of && slices.Equal(k.parts, share.Parts) {
		k.pace = detect.NewPace(d.pace())
		return k, nil
	}
	k := &upkeep{parts: slices.Clone(share.Parts), of: share.Of, pace: detect.NewPace(d.pace())}
	cfg := detect.LiveConfig{Lateness: time.Duration(d.cfg.Detect.Lateness), Since: d.since(), AsOf: d.worked,
		Rest: func(ctx context.Context) error { return k.pace.Rest(ctx) }}
	if d.owned {
		cfg.Changes = d.store.Inserted
	}
	if !share.All() {
		cfg.Mine = share.Has
	}
	var err error
	if k.live, err = d.live(cfg); err != nil {
		return nil, err
	}
	d.kept = k
	return k, nil
}

const (
	// noteEvery is how often it is noted how far findings are: to who takes over from a process that died they may seem so much later.
	noteEvery = 30 * time.Second
	// noteWithin bounds how long a note is waited for, also when the process stops.
	noteWithin = 3 * time.Second
)

// begun returns up to when the changes of a share have been worked out, by whoever had its parts before; now if nobody has said.
func (d *detections) begun(ctx context.Context, share *stream.Share) time.Time {
	now := time.Now()
	since, err := share.Since(ctx)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("how far findings are behind is not known and counts from now on", zap.Error(err))
	}
	if err != nil || since.IsZero() || since.After(now) {
		return now
	}
	return since
}

// note notes how far the findings of a share are.
func (d *detections) note(ctx context.Context, share *stream.Share) {
	ctx, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	if err := share.Done(ctx, d.since()); err != nil {
		d.log.Debug("how far findings are is not noted", zap.Error(err))
	}
}

// pace returns how passes are spread: by this process's processor time, or, if the store is a server, by the time they take.
func (d *detections) pace() detect.PaceConfig {
	c := detect.PaceConfig{Every: time.Duration(d.cfg.Detect.Every), Now: time.Now, Sleep: sleep.Unless}
	if d.owned {
		c.CPU, c.Changed = procstat.Own, d.store.Changed()
	}
	return c
}

// finish works out everything stored, without waiting for late events: for a process that ends once its input is stored.
func (d *detections) finish(ctx context.Context) error {
	if !d.cfg.Detect.Enabled {
		return nil
	}
	live, err := d.live(detect.LiveConfig{})
	for left := 1; err == nil && left > 0; {
		var p detect.Pass
		p, err = d.pass(ctx, live.Pass)
		left = p.Left
	}
	return err
}

func (d *detections) live(cfg detect.LiveConfig) (*detect.Live, error) {
	cfg.Now, cfg.Failed = time.Now, func(rule, example string, n int64) { d.failed(failFind, rule, example, n) }
	return detect.NewLive(d.rules, d.store, cfg)
}

func (d *detections) pass(ctx context.Context, pass func(context.Context) (detect.Pass, error)) (detect.Pass, error) {
	p, err := pass(ctx)
	d.metrics.seconds.Observe(p.Worked.Seconds())
	d.metrics.spans.Add(float64(p.Spans))
	for severity, n := range p.Saved {
		d.metrics.findings.WithLabelValues(severity).Add(float64(n))
	}
	d.metrics.withdrawn.Add(float64(p.Withdrawn))
	d.metrics.dropped.Add(float64(p.Dropped))
	if err == nil {
		d.metrics.waiting.Set(float64(p.Left))
	}
	return p, err
}

// Rules are the detection rules.
type Rules = detect.Set

type ruledStore struct {
	*storage.Store
	set *Rules
}

// DetectionRules returns the rules in the order of their ids.
func (s ruledStore) DetectionRules() []detect.Rule { return s.set.Rules() }

func configuredRules(cfg config.Config) (*Rules, error) {
	var dirs []string
	if cfg.Detect.RulesDir != "" {
		dirs = []string{cfg.Detect.RulesDir}
	}
	return LoadRules("detect-rules-dir", dirs)
}

// LoadRules returns the built-in rules and those of folders; errors name the flag.
func LoadRules(flag string, dirs []string) (*Rules, error) {
	all := []fs.FS{detect.BuiltinFiles()}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("%s %s: not a directory: name the folder that holds the rules", flag, dir)
		}
		all = append(all, os.DirFS(dir))
	}
	set, err := detect.Load(all...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return set, nil
}
