package spool

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Reasons why records were refused, or could not be sent.
const (
	refusedFull    = "full"
	refusedShare   = "cluster-share"
	refusedRoom    = "free-room"
	refusedDisk    = "disk-error"
	damagedFrame   = "damaged"
	damagedVersion = "version"
	damagedSize    = "too-large"
)

// metrics of a spool. Labels come from the constants above.
type metrics struct {
	active, bytes, held, maxBytes, oldest, kept prometheus.Gauge
	spooled, drained, torn                      prometheus.Counter
	refused, unsent                             *prometheus.CounterVec // reason
	sync                                        prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	gauge := func(name, help string) prometheus.Gauge {
		return auto.NewGauge(prometheus.GaugeOpts{Name: "retrial_spool_" + name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return auto.NewCounter(prometheus.CounterOpts{Name: "retrial_spool_" + name, Help: help})
	}
	vec := func(name, help string, reasons ...string) *prometheus.CounterVec {
		c := auto.NewCounterVec(prometheus.CounterOpts{Name: "retrial_spool_" + name, Help: help}, []string{"reason"})
		for _, r := range reasons {
			c.WithLabelValues(r)
		}
		return c
	}
	m := &metrics{
		active:   gauge("active", "1 while records go to the spool because Kafka does not accept them, or older ones are still there."),
		bytes:    gauge("bytes", "Bytes of segments on disk that are not yet in Kafka."),
		held:     gauge("records", "Records in the spool."),
		maxBytes: gauge("max_bytes", "Most bytes the spool may hold."),
		oldest:   gauge("since_timestamp_seconds", "When records began to go to the spool (Unix time); 0 while they go to Kafka."),
		kept:     gauge("kept_segments", "Segments set aside because something in them could not be sent to Kafka."),
		spooled:  counter("spooled_records_total", "Records made durable in the spool and acknowledged."),
		drained:  counter("drained_records_total", "Records sent from the spool to Kafka."),
		torn:     counter("torn_bytes_total", "Bytes truncated at the end of segments after a crash; nothing in them was acknowledged."),
		refused: vec("refused_records_total", "Records that found no room in the spool and were not acknowledged, by reason.",
			refusedFull, refusedShare, refusedRoom, refusedDisk),
		unsent: vec("unsent_records_total", "Acknowledged records that could not be sent to Kafka, by reason; their segment is set aside.",
			damagedFrame, damagedVersion, damagedSize),
		sync: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "retrial_spool_sync_duration_seconds", Help: "Time to write and sync a round, which several posts share.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14)}),
	}
	return m
}
