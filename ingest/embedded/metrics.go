package embedded

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	held     prometheus.Gauge
	limit    prometheus.Gauge
	refused  prometheus.Counter
	trimmed  prometheus.Counter
	resets   prometheus.Counter
	failed   prometheus.Gauge
	rejected *prometheus.CounterVec // reason: size, key, version
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "retrial_embedded_log_bytes",
			Help: "Bytes of the embedded broker's log that are not yet consumed."}),
		limit: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "retrial_embedded_log_limit_bytes",
			Help: "Cap on retrial_embedded_log_bytes, at which producers are refused."}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "retrial_embedded_refused_requests_total",
			Help: "Produce requests refused because the log was at its cap."}),
		trimmed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "retrial_embedded_trimmed_records_total",
			Help: "Records deleted after every consumer group had committed them."}),
		resets: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "retrial_embedded_resets_total",
			Help: "Commits found at start that pointed past the log and were reset: records were lost."}),
		failed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "retrial_embedded_sync_failed",
			Help: "1 after the log could not be synced to disk: nothing is acknowledged until the next start."}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "retrial_embedded_rejected_frames_total",
			Help: "Connections ended because of a frame that the broker must not see."}, []string{"reason"}),
	}
	for _, r := range []string{"size", "key", "version"} {
		m.rejected.WithLabelValues(r)
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.held, m.limit, m.refused, m.trimmed, m.resets, m.failed, m.rejected} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
