package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/apimetrics"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/queries"
)

// completing reads what apiservers say they sent, and compares it with what came:
//
//	kube-apiservers ◀─GET /metrics─ every 30 s ─▶ audit_samples ─┐
//	                                              events ────────┴─ every 5 min ─▶ metrics, for alerts
//
// Several processes may do so at once: more readings of one apiserver do no harm.
type completing struct {
	cfg     config.Config
	log     *zap.Logger
	store   *storage.Store
	site    func() doctor.Site
	readers map[apimetrics.Target]*apimetrics.Reader // of one goroutine, once it runs
	metrics *completenessMetrics
}

// checkTicks is how many readings lie between two comparisons.
const (
	checkTicks = 10
	// mostServers bounds the apiservers of a cluster that have metrics of their own: clients choose the names, in the paths they post to.
	mostServers = 50
)

type completenessMetrics struct {
	missing, unexplained, dropped, silent, halves *prometheus.GaugeVec
	read                                          *prometheus.GaugeVec
	failures                                      *prometheus.CounterVec
}

func newCompletenessMetrics(reg prometheus.Registerer) *completenessMetrics {
	auto := promauto.With(reg)
	gauge := func(name, help string) *prometheus.GaugeVec {
		return auto.NewGaugeVec(prometheus.GaugeOpts{Name: "retrial_completeness_" + name, Help: help}, []string{"cluster", "apiserver"})
	}
	m := &completenessMetrics{
		missing: gauge("missing_events", "Events of the last hour that the apiserver counted and that did not arrive, at least; "+
			"those that no backend of it could write are left out."),
		unexplained: gauge("unexplained_events", "Of the missing events those that the apiserver does not say it dropped."),
		dropped: gauge("dropped_events",
			"Events of the last hour that the apiserver's webhook dropped or had no room for, whether or not they came another way."),
		silent: gauge("silent_seconds",
			"For how long an apiserver that did send events has sent nothing, when that is longer than usual; 0 otherwise."),
		halves: gauge("half_requests", "Requests of the last hour of which a stage is missing that must have been; apiserver is empty."),
		read: auto.NewGaugeVec(prometheus.GaugeOpts{Name: doctor.MetricCountersRead,
			Help: "When the apiserver's metrics were last read (Unix time), 0 before the first time."}, []string{"cluster", "apiserver"}),
		failures: auto.NewCounterVec(prometheus.CounterOpts{Name: doctor.MetricCountersFailed,
			Help: "Attempts to read an apiserver's metrics that failed."}, []string{"cluster", "apiserver"}),
	}
	return m
}

func newCompleting(cfg config.Config, store *storage.Store, site func() doctor.Site, log *zap.Logger,
	reg prometheus.Registerer) (*completing, error) {
	c := &completing{cfg: cfg, log: log, store: store, site: site, readers: map[apimetrics.Target]*apimetrics.Reader{},
		metrics: newCompletenessMetrics(reg)}
	if _, err := doctor.ScrapeTargets(cfg.Completeness); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	c.look()
	return c, nil
}

func (c *completing) close() error {
	for _, r := range c.readers {
		r.Close()
	}
	return nil
}

// look finds out which apiservers to ask: the data directory may change while the server runs.
func (c *completing) look() {
	targets, err := doctor.AllTargets(c.cfg)
	if err != nil {
		c.log.Warn("not all apiservers are asked for their metrics", zap.Error(err))
	}
	gone := maps.Clone(c.readers)
	for _, t := range targets {
		delete(gone, t)
		if c.readers[t] != nil {
			continue
		}
		r, err := apimetrics.New(t, nil)
		if err != nil {
			c.log.Warn("apiserver is not asked for its metrics", zap.String("cluster", t.Cluster), zap.String("apiserver", t.APIServer),
				zap.Error(err))
			continue
		}
		c.readers[t] = r
		c.metrics.read.WithLabelValues(t.Cluster, t.APIServer)
		c.metrics.failures.WithLabelValues(t.Cluster, t.APIServer)
	}
	for t, r := range gone {
		r.Close()
		delete(c.readers, t)
		if !slices.ContainsFunc(targets, func(o apimetrics.Target) bool { return o.Cluster == t.Cluster && o.APIServer == t.APIServer }) {
			c.metrics.read.DeleteLabelValues(t.Cluster, t.APIServer)
			c.metrics.failures.DeleteLabelValues(t.Cluster, t.APIServer)
		}
	}
}

// run reads and compares until ctx ends. It logs failures and tries again: nothing else depends on it.
func (c *completing) run(ctx context.Context) {
	every(ctx, time.Duration(c.cfg.Completeness.Every), nil, func(n int) {
		c.look()
		c.read(ctx)
		if n%checkTicks == 0 {
			c.check(ctx)
		}
	})
}

// read asks every apiserver, all at once, and stores what they say.
func (c *completing) read(ctx context.Context) {
	var mu sync.Mutex
	var samples []queries.AuditSample
	var group sync.WaitGroup
	for t, r := range c.readers {
		group.Go(func() {
			got, err := r.Read(ctx)
			if err != nil {
				if ctx.Err() == nil {
					c.metrics.failures.WithLabelValues(t.Cluster, t.APIServer).Inc()
					c.log.Warn("apiserver's metrics not read", zap.String("cluster", t.Cluster), zap.String("apiserver", t.APIServer),
						zap.Error(err))
				}
				return
			}
			c.metrics.read.WithLabelValues(t.Cluster, t.APIServer).Set(float64(got.Taken.Unix()))
			mu.Lock()
			defer mu.Unlock()
			samples = append(samples, queries.AuditSample{
				Cluster: t.Cluster, APIServer: t.APIServer, Taken: got.Taken, Earliest: got.Earliest, Latest: got.Latest,
				Started: got.Started, Events: got.Events, WebhookErrors: got.WebhookErrors, BufferErrors: got.BufferErrors,
				LogErrors: got.LogErrors, Rejected: got.Rejected,
			})
		})
	}
	group.Wait()
	if err := c.store.SaveAuditSamples(ctx, samples); err != nil && ctx.Err() == nil {
		c.log.Warn("readings of apiservers not stored", zap.Error(err))
	}
}

// check compares the last hour of every cluster and sets the metrics.
func (c *completing) check(ctx context.Context) {
	clusters, err := c.store.Clusters(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.log.Warn("completeness not checked", zap.Error(err))
		}
		return
	}
	m, now := c.metrics, time.Now()
	for _, g := range []*prometheus.GaugeVec{m.missing, m.unexplained, m.dropped, m.silent, m.halves} {
		g.Reset()
	}
	for _, cluster := range clusters {
		r, err := doctor.LastHour(ctx, c.store, c.site(), cluster.Name, now)
		if err != nil {
			if ctx.Err() == nil {
				c.log.Warn("completeness not checked", zap.String("cluster", cluster.Name), zap.Error(err))
			}
			continue
		}
		m.halves.WithLabelValues(cluster.Name, "").Set(float64(r.Pairs.Overdue + r.Pairs.NoStart + r.Pairs.NoAnswer))
		for _, s := range r.Servers[:min(len(r.Servers), mostServers)] {
			m.silent.WithLabelValues(cluster.Name, s.Name).Set(s.Silent)
			if of := s.Measured; of != nil {
				missing, dropped := max(0, of.Missing-of.Log), of.Webhook+of.Buffer
				m.missing.WithLabelValues(cluster.Name, s.Name).Set(float64(missing))
				m.unexplained.WithLabelValues(cluster.Name, s.Name).Set(float64(max(0, missing-dropped)))
				m.dropped.WithLabelValues(cluster.Name, s.Name).Set(float64(dropped))
			}
		}
	}
}
