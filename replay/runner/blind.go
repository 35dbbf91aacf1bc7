package runner

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// blindness tells of each cluster how many roles and bindings are not known at present, when
// /metrics is asked: what they could give is neither seen nor missed.
type blindness struct {
	states  *states
	unknown *prometheus.Desc
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
