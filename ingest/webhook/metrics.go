package webhook

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of one listener. Label values come from closed sets: answers, reasons, and the
// source the handler was made for (webhook or import), which is a constant label so that
// both listeners of a process can register.
type metrics struct {
	requests                                                                *prometheus.CounterVec // by code
	refusals, letters                                                       *prometheus.CounterVec // by reason
	received, acknowledged, unacked, policy, malformed, stripped, bodyBytes prometheus.Counter
	inFlight, lastBody                                                      prometheus.Gauge
	ack                                                                     prometheus.Histogram
}

// Reasons for refusing a request, beside those of dead letters.
const (
	refusedPath       = "path"
	refusedMethod     = "method"
	refusedCredential = "credential"
	refusedCluster    = "cluster"
	refusedName       = "name"
	refusedEncoding   = "encoding"
	refusedInFlight   = "in-flight"
	refusedAborted    = "aborted"
	refusedTooSlow    = "too-slow"
	refusedUnacked    = "not-acknowledged"
	refusedFull       = "full"
	refusedBadState   = "bad-state"
)

// Reasons of dead letters made here.
const (
	letterNotList   = "not-event-list"
	letterTooLarge  = "too-large"
	letterMalformed = "malformed-item"
)

// codeClass returns the value of the code label: one class each, 429 apart from other refusals
// because it is pressure and not a fault.
func codeClass(code int) string {
	if code == http.StatusTooManyRequests {
		return "429"
	}
	return strconv.Itoa(code/100) + "xx"
}

func newMetrics(reg prometheus.Registerer, source string) *metrics {
	auto := promauto.With(reg)
	labels := prometheus.Labels{"source": source}
	counter := func(name, help string) prometheus.Counter {
		return auto.NewCounter(prometheus.CounterOpts{Name: "retrial_webhook_" + name, Help: help, ConstLabels: labels})
	}
	vec := func(name, help, label string) *prometheus.CounterVec {
		opts := prometheus.CounterOpts{Name: "retrial_webhook_" + name, Help: help, ConstLabels: labels}
		return auto.NewCounterVec(opts, []string{label})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return auto.NewGauge(prometheus.GaugeOpts{Name: "retrial_webhook_" + name, Help: help, ConstLabels: labels})
	}
	m := &metrics{
		requests: vec("requests_total", "Requests answered, by class of the answer; 429 is push-back.", "code"),
		refusals: vec("refused_requests_total", "Requests not answered with 200, by reason.", "reason"),
		received: counter(
			"events_received_total",
			"Items of event lists that were decoded, well-formed or not: acknowledged + malformed + unacknowledged.",
		),
		acknowledged: counter("events_acknowledged_total", "Events that Kafka acknowledged, as the sender was told."),
		unacked:      counter("events_unacknowledged_total", "Items of requests that were not acknowledged; the sender will repeat them."),
		policy:       counter("policy_records_total", "Copies of policy writes acknowledged by Kafka, ahead of the events."),
		malformed:    counter("items_malformed_total", "Items of acknowledged lists that are not events; dead letters hold them."),
		letters: vec("dead_letters_total", "Dead letters written, by reason. "+
			"not-event-list and too-large are whole bodies: the apiserver retries and then drops them.", "reason"),
		stripped: counter("events_stripped_total", "Events over the size limit that lost their request and response bodies, "+
			"except for what the replica reads of policy."),
		bodyBytes: counter("body_bytes_total", "Bytes of bodies read."),
		inFlight:  gauge("in_flight_bytes", "Bytes reserved for bodies being worked on."),
		ack: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "retrial_webhook_ack_duration_seconds", ConstLabels: labels,
			Help:    "Time from the request's arrival to its 200. Apiservers give up at 30 s.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25},
		}),
		lastBody: gauge("last_body_timestamp_seconds", "When a body was last acknowledged (Unix time); 0 before the first."),
	}
	// Every series exists from the start, so that an alert sees a first occurrence as a rise
	// from zero.
	for _, code := range []string{"2xx", "4xx", "429", "5xx"} {
		m.requests.WithLabelValues(code)
	}
	for _, reason := range []string{
		refusedPath, refusedMethod, refusedCredential, refusedCluster, refusedName, refusedEncoding, refusedInFlight,
		refusedAborted, refusedTooSlow, refusedUnacked, refusedFull, refusedBadState, letterNotList, letterTooLarge,
	} {
		m.refusals.WithLabelValues(reason)
	}
	for _, reason := range []string{letterNotList, letterTooLarge, letterMalformed} {
		m.letters.WithLabelValues(reason)
	}
	return m
}
