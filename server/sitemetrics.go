package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/webhook"
)

// siteMetrics are what no room knows alone: when each registered cluster last delivered, and the free disk. /metrics collects them.
type siteMetrics struct {
	dataDir    string
	clusters   *identity.Registry
	contacts   *webhook.Contacts // nil: the process receives nothing
	log        *zap.Logger
	last, free *prometheus.Desc
}

func newSiteMetrics(dataDir string, clusters *identity.Registry, contacts *webhook.Contacts, log *zap.Logger) siteMetrics {
	return siteMetrics{
		dataDir: dataDir, clusters: clusters, contacts: contacts, log: log,
		last: prometheus.NewDesc("retrial_webhook_cluster_last_events_timestamp_seconds",
			"When events of a registered cluster were last acknowledged to one of its apiservers (Unix time), 0 before the first since "+
				"the start.", []string{"cluster"}, nil),
		free: prometheus.NewDesc("retrial_storage_disk_free_bytes", "Bytes free on the disk of the data directory.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (m siteMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.last; ch <- m.free }

// Collect implements prometheus.Collector.
func (m siteMetrics) Collect(ch chan<- prometheus.Metric) {
	if free, _, ok := doctor.DiskBytes(m.dataDir); ok {
		ch <- prometheus.MustNewConstMetric(m.free, prometheus.GaugeValue, float64(free))
	}
	if m.contacts == nil {
		return
	}
	clusters, err := m.clusters.List()
	if err != nil {
		m.log.Warn("clusters left out of the metrics", zap.Error(err)) // the others are wanted all the more
		return
	}
	for _, c := range clusters {
		if c.Revoked != nil {
			continue
		}
		at := 0.0
		if accepted := m.contacts.Accepted(c.Name); accepted != nil {
			at = float64(accepted.Last.Unix())
		}
		ch <- prometheus.MustNewConstMetric(m.last, prometheus.GaugeValue, at, c.Name)
	}
}
