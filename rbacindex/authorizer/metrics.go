package authorizer

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/retrial-io/retrial/rbacindex"
)

// Values of the event label.
const (
	eventAdded     = "added"
	eventUpdated   = "updated"
	eventDeleted   = "deleted"
	eventUnchanged = "unchanged" // an update of nothing that RBAC reads
	eventMalformed = "malformed" // not an object of the informer's kind
)

// metrics of one Authorizer; without a registerer they count unseen.
type metrics struct {
	events    *prometheus.CounterVec // by kind and event
	objects   *prometheus.GaugeVec   // by kind
	snapshots prometheus.Counter
	changes   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_authorizer_events_total",
			Help: "Informer events by kind and event: added, updated, deleted, unchanged (an update of metadata), malformed."},
			[]string{"kind", "event"}),
		objects: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "retrial_authorizer_objects",
			Help: "RBAC objects decisions are made on, by kind; absent before the first lists are complete."}, []string{"kind"}),
		snapshots: prometheus.NewCounter(prometheus.CounterOpts{Name: "retrial_authorizer_snapshots_total",
			Help: "Times the policy decisions are made on was replaced."}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{Name: "retrial_authorizer_changes_total",
			Help: "Objects changed by those replacements, each once per replacement."}),
	}
	for kind := rbacindex.KindRole; kind <= rbacindex.KindClusterRoleBinding; kind++ {
		for _, event := range []string{eventAdded, eventUpdated, eventDeleted, eventUnchanged, eventMalformed} {
			m.events.WithLabelValues(kind.String(), event)
		}
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.events, m.objects, m.snapshots, m.changes} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) event(kind rbacindex.Kind, event string) {
	m.events.WithLabelValues(kind.String(), event).Inc()
}

func (m *metrics) published(s *rbacindex.Snapshot, changes int) {
	m.snapshots.Inc()
	m.changes.Add(float64(changes))
	roles, clusterRoles, roleBindings, clusterRoleBindings := s.Len()
	for kind, n := range map[rbacindex.Kind]int{
		rbacindex.KindRole: roles, rbacindex.KindClusterRole: clusterRoles,
		rbacindex.KindRoleBinding: roleBindings, rbacindex.KindClusterRoleBinding: clusterRoleBindings,
	} {
		m.objects.WithLabelValues(kind.String()).Set(float64(n))
	}
}
