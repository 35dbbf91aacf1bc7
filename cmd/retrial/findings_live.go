package main

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/analysis/detect"
)

// detections are the two ends of detecting while requests come in, see docs/adr/0050:
//
//	runner ─▶ tagger: marks, in the row that is stored ─▶ events ─▶ sums of marks
//	                                                                   │ those that changed
//	one process of all (lease): a pass every few seconds ◀─────────────┘
//	   └─▶ marked requests ─▶ findings
type detections struct {
	sys     *system
	tagger  *detect.Tagger
	metrics *detectMetrics

	mu   sync.Mutex
	told map[string]bool // rules whose failure has been logged
}

type detectMetrics struct {
	findings  *prometheus.CounterVec
	withdrawn prometheus.Counter
	errors    *prometheus.CounterVec
	seconds   prometheus.Histogram
	spans     prometheus.Counter
	waiting   prometheus.Gauge
	lag       prometheus.Gauge
	dropped   prometheus.Counter
	leader    prometheus.Gauge
}

// Where an expression or a pass can fail.
const (
	failMark = "mark"
	failFind = "find"
	failPass = "pass"
)

func newDetectMetrics(reg prometheus.Registerer) *detectMetrics {
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
			Help: "Failures by step: mark and find, an expression on a request; pass, a pass over what changed, which is repeated."}, []string{"step"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "retrial_detect_pass_seconds",
			Help: "Time of a pass over what changed, without its rests.", Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 30, 100}}),
		spans:   counter("spans_total", "Stretches of time worked out, one of one rule each."),
		waiting: gauge("waiting_spans", "Stretches of time that changed and wait to be worked out, most of them for time to pass."),
		lag:     gauge("lag_seconds", "How far the oldest change passes have not come to lies behind its cluster's newest request."),
		dropped: counter("dropped_requests_total", "Requests left out of rules that count because there were too many groups at once."),
		leader:  gauge("leader", "1 in the process that works out findings."),
	}
	for _, step := range []string{failMark, failFind, failPass} {
		m.errors.WithLabelValues(step)
	}
	for _, severity := range detect.Severities() {
		m.findings.WithLabelValues(severity)
	}
	reg.MustRegister(m.findings, m.withdrawn, m.errors, m.seconds, m.spans, m.waiting, m.lag, m.dropped, m.leader)
	return m
}

func newDetections(sys *system) *detections {
	d := &detections{sys: sys, metrics: newDetectMetrics(sys.reg), told: map[string]bool{}}
	d.tagger = detect.NewTagger(sys.rules, func(rule string, err error) { d.failed(failMark, rule, err.Error(), 1) })
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
		d.sys.log.Warn("detection rule fails on requests it looks at, it does not hold for them", zap.String("rule", rule), zap.String("error", example))
	}
}

// run keeps findings up to date until ctx ends, whenever this process holds the lease.
func (d *detections) run(ctx context.Context) error {
	if !d.sys.cfg.Detect.Enabled {
		<-ctx.Done()
		return nil
	}
	return d.sys.stream.Lease(ctx, "detect", func(ctx context.Context) error {
		d.metrics.leader.Set(1)
		defer d.metrics.leader.Set(0)
		var rested time.Duration // work of this pass that was rested for
		live, err := d.live(time.Duration(d.sys.cfg.Detect.Lateness), func(ctx context.Context, worked time.Duration) error {
			rested += worked
			return sleepFor(ctx, restFor*worked)
		})
		if err != nil {
			return err
		}
		for {
			rested = 0
			p, err := d.pass(ctx, live)
			if err != nil && ctx.Err() == nil {
				d.metrics.errors.WithLabelValues(failPass).Inc()
				d.sys.log.Warn("findings are not up to date, trying again", zap.Error(err))
			}
			if err := sleepFor(ctx, max(time.Duration(d.sys.cfg.Detect.Every), restFor*(p.Worked-rested))); err != nil {
				return nil //nolint:nilerr // the lease is lost, or the process stops
			}
		}
	})
}

// restFor is how much longer than it works the upkeep of findings rests: at most a fortieth of any
// minute goes into it, however much there is to do.
const restFor = 39

// finish works out everything there is, without waiting for what may come late: for a process
// that ends when what it was given is stored.
func (d *detections) finish(ctx context.Context) error {
	if !d.sys.cfg.Detect.Enabled {
		return nil
	}
	live, err := d.live(0, nil)
	for left := 1; err == nil && left > 0; {
		var p detect.Pass
		p, err = d.pass(ctx, live)
		left = p.Left
	}
	return err
}

func (d *detections) live(lateness time.Duration, pause func(context.Context, time.Duration) error) (*detect.Live, error) {
	return detect.NewLive(d.sys.rules, d.sys.store, detect.LiveConfig{
		Lateness: lateness, Now: time.Now, Rest: pause,
		Failed: func(rule, example string, n int64) { d.failed(failFind, rule, example, n) },
	})
}

func (d *detections) pass(ctx context.Context, live *detect.Live) (detect.Pass, error) {
	p, err := live.Pass(ctx)
	d.metrics.seconds.Observe(p.Worked.Seconds())
	d.metrics.spans.Add(float64(p.Spans))
	for severity, n := range p.Saved {
		d.metrics.findings.WithLabelValues(severity).Add(float64(n))
	}
	d.metrics.withdrawn.Add(float64(p.Withdrawn))
	d.metrics.dropped.Add(float64(p.Dropped))
	if err == nil {
		d.metrics.waiting.Set(float64(p.Left))
		d.metrics.lag.Set(p.Lag.Seconds())
	}
	return p, err
}

// sleepFor waits, or returns the context's error.
func sleepFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
