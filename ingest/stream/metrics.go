package stream

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of a client. Labels are topics without prefix and kinds of errors, both closed.
type metrics struct {
	produced, producedBytes, batches, batchBytes *prometheus.CounterVec // topic
	produceErrors                                *prometheus.CounterVec // kind
	produceSeconds                               prometheus.Histogram
	inFlight                                     prometheus.Gauge

	fetched, fetchedBytes, fetchErrors, gaps, resets, undecodable *prometheus.CounterVec // topic
	commits, rebalances, restarts, failures                       *prometheus.CounterVec // topic
	commitErrors                                                  *prometheus.CounterVec // kind
	refusals                                                      *prometheus.CounterVec // of
	assigned, lag                                                 *prometheus.GaugeVec   // topic

	mu   sync.Mutex
	lags map[partition]int64
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{lags: make(map[partition]int64)}
	var all []prometheus.Collector
	counter := func(name, help, label string, values ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_stream_" + name, Help: help}, []string{label})
		for _, v := range values {
			c.WithLabelValues(v)
		}
		all = append(all, c)
		return c
	}
	byTopic := func(name, help string) *prometheus.CounterVec {
		return counter(name, help, "topic", topicNames[:]...)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "retrial_stream_" + name, Help: help}, []string{"topic"})
		for _, t := range topicNames {
			g.WithLabelValues(t)
		}
		all = append(all, g)
		return g
	}
	m.produced = byTopic("produced_records_total", "Records acknowledged by the broker.")
	m.producedBytes = byTopic("produced_bytes_total", "Bytes of acknowledged records before compression.")
	m.batches = byTopic("produced_batches_total", "Batches acknowledged by the broker.")
	m.batchBytes = byTopic("produced_batch_bytes_total", "Bytes of acknowledged batches as sent.")
	m.produceErrors = counter("produce_errors_total", "Produce calls that failed, by kind.", "kind",
		kindFull, kindTooLarge, kindTransient, kindAuth, kindClosed, kindOther)
	m.produceSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "retrial_stream_produce_duration_seconds", Help: "Time from a Produce call to its last acknowledgement.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)})
	m.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "retrial_stream_produce_in_flight_bytes", Help: "Bytes of records waiting for acknowledgement."})
	all = append(all, m.produceSeconds, m.inFlight)

	m.fetched = byTopic("fetched_records_total", "Records read.")
	m.fetchedBytes = byTopic("fetched_bytes_total", "Bytes of keys and values read.")
	m.fetchErrors = byTopic("fetch_errors_total", "Fetches that failed and were retried.")
	m.gaps = byTopic("gap_records_total", "Offsets that were deleted before they were read.")
	m.resets = byTopic(
		"resets_total",
		"Partitions found with another log than the one that was consumed: too short, or with other records.",
	)
	m.undecodable = byTopic("undecodable_records_total", "Records whose headers could not be read.")
	m.commits = byTopic("commits_total", "Offsets committed.")
	m.commitErrors = counter("commit_errors_total", "Commits that failed, by kind.", "kind",
		kindRevoked, kindTransient, kindAuth, kindClosed, kindOther)
	m.refusals = counter("refusals_total", "Requests and connections that the broker refused although it had granted the same before, "+
		"by what it refused: the connection or rights.", "of",
		ofConnection, ofRights)
	m.rebalances = byTopic("rebalances_total", "Generations of the consumer group this process took part in.")
	m.restarts = byTopic("watchdog_restarts_total", "Generations ended because a fetch made no progress.")
	m.failures = byTopic("handler_errors_total", "Partition handlers that ended with an error and were restarted.")
	m.assigned = gauge("assigned_partitions", "Partitions this process consumes.")
	m.lag = gauge("lag_records", "Records behind the end of the log, over the partitions this process consumes.")

	if reg == nil {
		return m, nil
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// setLag records a partition's lag; negative removes it from the topic's sum.
func (m *metrics) setLag(topic string, of int32, lag int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := partition{topic, of}
	if m.lags[at] = lag; lag < 0 {
		delete(m.lags, at)
	}
	var sum int64
	for p, v := range m.lags {
		if p.topic == topic {
			sum += v
		}
	}
	m.lag.WithLabelValues(topic).Set(float64(sum))
}
