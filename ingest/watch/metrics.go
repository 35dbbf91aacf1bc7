package watch

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the type label of events.
const (
	typeAdded    = "added"
	typeModified = "modified"
	typeDeleted  = "deleted"
	typeBookmark = "bookmark"
	typeError    = "error"
)

// Values of the reason label of errors.
const (
	reasonForbidden    = "forbidden"     // 403: the role is missing
	reasonNotGranted   = "not-granted"   // 403 of an optional kind
	reasonNotServed    = "not-served"    // 404, 406: the cluster has no such resource
	reasonUnauthorized = "unauthorized"  // 401: the credentials are wrong or expired
	reasonOtherCluster = "other-cluster" // the credentials lead to another cluster
	reasonGone         = "gone"          // 410: too old to resume
	reasonMalformed    = "malformed"     // the answer cannot be parsed
	reasonUnavailable  = "unavailable"   // unreachable, or any other refusal
	reasonProduce      = "produce"       // Kafka did not accept the records
	reasonTooLarge     = "too-large"     // an object was sent without its content
	reasonPosition     = "position"      // the position could not be loaded or saved
)

// metrics of one watcher. The cluster is a constant label: its values are those of the
// configuration.
type metrics struct {
	objects   *prometheus.GaugeVec   // by resource
	events    *prometheus.CounterVec // by resource and type
	relists   *prometheus.CounterVec // by resource
	gaps      *prometheus.CounterVec // by resource
	errors    *prometheus.CounterVec // by resource and reason
	lastEvent *prometheus.GaugeVec   // by resource
	synced    *prometheus.GaugeVec   // by resource
}

func newMetrics(reg prometheus.Registerer, cluster string) (*metrics, error) {
	labels := prometheus.Labels{"cluster": cluster}
	counter := func(name, help string, by ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_watch_" + name, Help: help, ConstLabels: labels}, by)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: "retrial_watch_" + name, Help: help, ConstLabels: labels},
			[]string{"resource"},
		)
	}
	m := &metrics{
		objects: gauge("objects", "Objects of the resource in the cluster, as of the last listing and the changes since."),
		events: counter(
			"events_total",
			"Watch events read and, except for bookmarks and errors, acknowledged by Kafka.",
			"resource",
			"type",
		),
		relists: counter("relists_total", "Complete listings sent, the first one included.", "resource"),
		gaps:    counter("gaps_total", "Periods declared unknown because a watch could not be resumed.", "resource"),
		errors: counter("errors_total", "Failures by reason. "+
			"forbidden, unauthorized and other-cluster need a person; the kind stays unknown until then.", "resource", "reason"),
		lastEvent: gauge("last_event_timestamp_seconds", "When the last watch event or bookmark was read (Unix time); 0 before the first."),
		synced:    gauge("synced", "1 while the resource is completely listed and being watched, otherwise 0."),
	}
	// Every series exists from the start, so that a first occurrence is a rise from zero.
	for _, k := range Kinds() {
		m.objects.WithLabelValues(k.Resource)
		m.relists.WithLabelValues(k.Resource)
		m.gaps.WithLabelValues(k.Resource)
		m.lastEvent.WithLabelValues(k.Resource)
		m.synced.WithLabelValues(k.Resource)
		for _, t := range []string{typeAdded, typeModified, typeDeleted, typeBookmark, typeError} {
			m.events.WithLabelValues(k.Resource, t)
		}
		for _, reason := range []string{
			reasonForbidden, reasonNotGranted, reasonNotServed, reasonUnauthorized, reasonOtherCluster, reasonGone, reasonMalformed,
			reasonUnavailable,
			reasonProduce, reasonTooLarge, reasonPosition,
		} {
			m.errors.WithLabelValues(k.Resource, reason)
		}
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.objects, m.events, m.relists, m.gaps, m.errors, m.lastEvent, m.synced} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// seconds returns a time as metrics show it, in seconds since 1970.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
