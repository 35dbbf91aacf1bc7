package sqlgate

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of a gate; label values come from resultOf.
type metrics struct {
	queries *prometheus.CounterVec
	seconds prometheus.Histogram
	bytes   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	m := &metrics{
		queries: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "retrial_sqlgate_queries_total", Help: "Queries of the store's SQL listener, by result: ok, unauthenticated, refused, " +
				"limit, cancelled, error.",
		}, []string{"result"}),
		seconds: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "retrial_sqlgate_query_seconds", Help: "Time from a query's arrival to the end of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.002, 4, 8),
		}),
		bytes: auto.NewCounter(prometheus.CounterOpts{
			Name: "retrial_sqlgate_answer_bytes_total", Help: "Bytes of answers before compression.",
		}),
	}
	return m
}

func (m *metrics) ended(result string, took time.Duration, bytes int64) {
	m.queries.WithLabelValues(result).Inc()
	m.seconds.Observe(took.Seconds())
	m.bytes.Add(float64(bytes))
}

// resultOf returns the result label of an error's code.
func resultOf(code int) string {
	switch code {
	case 0:
		return "ok"
	case codeAuthentication:
		return "unauthenticated"
	case codeAccessDenied, codeReadonly:
		return "refused"
	case codeTimeout, 160, codeTooMany, 241, 307, 396, 158:
		return "limit"
	case codeCancelled:
		return "cancelled"
	}
	return "error"
}
