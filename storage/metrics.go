package storage

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of the store; without a registerer they count unseen. One store per registerer.
type metrics struct {
	rows      prometheus.Counter
	bytes     prometheus.Counter
	inserts   *prometheus.CounterVec
	seconds   prometheus.Histogram
	known     prometheus.Histogram
	repaired  *prometheus.CounterVec
	dropped   *prometheus.CounterVec
	reinserts prometheus.Counter
	folded    *prometheus.CounterVec
	forgotten *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	buckets := []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30}
	m := &metrics{
		rows:      prometheus.NewCounter(prometheus.CounterOpts{Name: "retrial_storage_rows_total", Help: "Rows inserted into events, rows that take others back included."}),
		bytes:     prometheus.NewCounter(prometheus.CounterOpts{Name: "retrial_storage_insert_bytes_total", Help: "Bytes of insert blocks as sent."}),
		inserts:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_storage_inserts_total", Help: "Inserts by result: ok, error."}, []string{"result"}),
		seconds:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "retrial_storage_insert_seconds", Help: "Time of an insert, encoding included.", Buckets: buckets}),
		known:     prometheus.NewHistogram(prometheus.HistogramOpts{Name: "retrial_storage_known_seconds", Help: "Time of looking up which rows of a block are stored.", Buckets: buckets}),
		repaired:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_storage_repaired_rows_total", Help: "Rows recovery added to a rollup to make it equal to its events."}, []string{"table"}),
		dropped:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_storage_dropped_partitions_total", Help: "Table partitions dropped, by table and cause: retention, disk."}, []string{"table", "cause"}),
		reinserts: prometheus.NewCounter(prometheus.CounterOpts{Name: "retrial_storage_reinserted_blocks_total", Help: "Blocks the store claimed to have but had lost, sent again."}),
		folded:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_storage_folded_total", Help: "Requests, and checks behind them, that rollups do not count under an access of their own: kind (without the name), other (beyond what a subject or a cluster has in a day), nobody (refused, of nobody in particular), groups (as a subject whose set of groups is not told apart), subject (nor is the subject); of activity, agent (beyond the user agents of a subject or a cluster in a day); of detections, first-seen (beyond the keys of a user or a cluster in a day)."}, []string{"as"}),
		forgotten: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_storage_policy_contents_forgotten_total", Help: "Contents of policy objects that were forgotten because an object, or all of a cluster, was written too often, by cluster. What they were is unknown from then on."}, []string{"cluster"}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.rows, m.bytes, m.inserts, m.seconds, m.known, m.repaired, m.dropped, m.reinserts, m.folded, m.forgotten} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}
