// Package webhook receives audit events: the endpoint a kube-apiserver's audit webhook and, on a local listener, `retrial import` post to.
//
//	POST /v1/clusters/{cluster}/audit                     an EventList
//	POST /v1/clusters/{cluster}/apiservers/{name}/audit   the same, naming the apiserver
//	POST /v1/clusters/{cluster}/state                     objects as kubectl prints them; trusted listener only
//	GET  /healthz, /readyz
//
// The path of a body: authenticate, reserve memory, read, decode, redact, produce the copies
// of policy writes and wait for their acknowledgement, produce all events and wait, answer
// 200. Nothing leaves the package unredacted, and 200 means that Kafka has every record.
// For each body, events received = events acknowledged + items dead-lettered.
//
// # Answers
//
// What kube-apiserver does with an answer decides which one is given. Any 2xx is success.
// Everything else is retried: five attempts with growing pauses (at 0, 11, 28, 54 and 93
// seconds by default), then the batch is dropped and apiserver_audit_error_total{plugin=
// "webhook"} grows on the apiserver. 429 and 5xx with Retry-After stretch each attempt by up
// to ten more posts within 30 seconds, 4xx do not: told to come back after five seconds, an
// apiserver holds on to a batch for 230 seconds (docs/adr/0071-pushing-back.md). The apiserver
// waits 30 seconds for an answer and then posts the same batch again, so the receiver answers
// within [Config].Deadline.
//
//	200  every event is safe; malformed items of the list became dead letters
//	400  the body is not an EventList, or is not complete JSON: dead letter. The apiserver
//	     retries it and then drops it; it could do nothing better
//	401  no credential, or none that is accepted
//	403  the credential belongs to another cluster
//	404  no such path; or no such cluster, on a listener without authentication
//	405  not POST
//	408  the body did not arrive in time
//	413  the body is over the limit: dead letter (with the digest of what was read), then as 400
//	415  Content-Encoding: apiservers never compress
//	429  too many requests or bytes of bodies in flight, of the cluster or in total,
//	     Retry-After: 1; or no room in the log or the spool, Retry-After: 5
//	503  neither Kafka nor the spool took the events in time; Retry-After: 5
//
// # Fairness between clusters
//
// A cluster that floods leaves room for the others: it uses at most three times the memory for
// bodies that it leaves free, sends 256 requests at once, and waits its turn (see fairQueue) for
// a processor to decode on and for room in the producer.
//
// # What the receiver cannot see
//
// An apiserver whose batch holds an event that it cannot encode (a PATCH with an unparsable body, recorded at level Request or above,
// Kubernetes up to at least 1.36) drops the whole batch. So does one whose buffer is full. Nothing arrives; only the apiserver's own
// apiserver_audit_error_total shows it, by plugin "webhook" and "buffered". retrial_webhook_last_body_timestamp_seconds is when the last
// body arrived.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
)

// Sources as records carry them.
const (
	sourceWebhook = "webhook"
	sourceImport  = "import"
	sourceLog     = "log"
)

// Response headers of an accepted list, for clients that keep count.
const (
	// HeaderEvents is the number of events acknowledged.
	HeaderEvents = "Retrial-Events"
	// HeaderDeadLetters is the number of items of the list that were not events.
	HeaderDeadLetters = "Retrial-Dead-Letters"
	// HeaderPolicy is the number of policy copies acknowledged.
	HeaderPolicy = "Retrial-Policy-Events"
)

// QueryPolicy is the query parameter with which an import splits the work on a list between
// two posts to a trusted handler: first [QueryPolicyOnly], which produces only the copies of
// policy writes, for the whole file, so that none of its events has to be judged again; then
// [QueryPolicyDone], which produces everything else.
const (
	QueryPolicy     = "policy"
	QueryPolicyOnly = "only"
	QueryPolicyDone = "done"

	// QuerySource is the query parameter with which a client says that it follows a log as it
	// is written ([QuerySourceLog]), so that its events can be told from those of the webhook.
	// They age like the webhook's, whereas those of an import may be old already and stay.
	// Apiservers drop the query of their webhook's URL.
	QuerySource    = "source"
	QuerySourceLog = sourceLog

	// QuerySince is the query parameter of a state post that says, in RFC 3339, when the audit log begins that has every later change.
	QuerySince = "since"
)

// Handler is the receiver's http.Handler. It is safe for use by several goroutines and
// starts none.
type Handler struct {
	cfg      Config
	source   string
	producer stream.Appender
	redactor Redactor
	clusters Clusters
	flight   *flight
	decoding *fairQueue // requests that decode or encode: as many as there are processors
	outgoing *fairQueue // bytes of records handed to the producer
	buffers  *buffers
	log      *zap.Logger
	metrics  *metrics

	sightings event.Sightings // of apiservers' versions, passed on to audit.policy
}

// New returns a handler. clusters may be nil when cfg.Trusted is set; log and reg may be
// nil.
func New(
	cfg Config, producer stream.Appender, redactor Redactor, clusters Clusters, log *zap.Logger, reg prometheus.Registerer,
) (*Handler, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("make webhook handler: %w", err)
	}
	switch {
	case producer == nil:
		return nil, errors.New("make webhook handler: no producer")
	case redactor == nil:
		return nil, errors.New("make webhook handler: no redactor: nothing may be produced unredacted")
	case clusters == nil && !cfg.Trusted:
		return nil, errors.New("make webhook handler: no clusters")
	}
	source := sourceWebhook
	if cfg.Trusted {
		source = sourceImport
	}
	m := newMetrics(reg, source)
	if log == nil {
		log = zap.NewNop()
	}
	// A sender that is refused retries every second: the first lines of a minute tell all there is to know, metrics count the rest.
	log = log.Named("ingest.webhook").With(zap.String("source", source)).WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 20, 0)
	}))
	return &Handler{
		cfg: cfg, source: source, producer: producer, redactor: redactor, clusters: clusters,
		flight: newFlight(cfg.MaxInFlight, cfg.MaxClusterInFlight, m.inFlight), buffers: &buffers{}, log: log, metrics: m,
		decoding: newFairQueue(int64(runtime.GOMAXPROCS(0))), outgoing: newFairQueue(outgoingBytes),
	}, nil
}

// outgoingBytes bounds the records handed to the producer at once: some forty posts of an
// apiserver, more than it takes to fill batches, and half of what the producer holds, so that
// no cluster waits there behind all that another has sent.
const outgoingBytes = 32 << 20

type answer struct {
	code   int
	reason string // refusal reason for the metric; empty with 2xx
	text   string
	retry  time.Duration // Retry-After; 0: none
	close  bool          // the body was not read: do not wait for it
	tally  *tally
	json   any // in place of text
}

func refuse(code int, reason, format string, args ...any) *answer {
	return &answer{code: code, reason: reason, text: fmt.Sprintf(format, args...)}
}

// When a client is asked to retry, in whole seconds. Room for a body is found soon. A full or unreachable log takes longer: told five
// seconds, an apiserver holds on to a batch for 230 seconds with 30 posts; told one, for 140 with 55; told nothing, for 86
// (docs/adr/0071-pushing-back.md).
const (
	roomBackAfter    = time.Second
	storageBackAfter = 5 * time.Second
)

// pushBack returns the answer with a Retry-After of after.
func (a *answer) pushBack(after time.Duration) *answer { a.retry = after; return a }

// unread returns the answer to a request whose body was not read.
func (a *answer) unread() *answer { a.close = true; return a }

// ServeHTTP answers one request; see the package comment for the paths and the answers.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := h.cfg.Now()
	switch r.URL.Path {
	case "/healthz":
		_, _ = io.WriteString(w, "ok\n")
		return
	case "/readyz":
		h.ready(w, r)
		return
	}
	a := h.serve(w, r, began)
	h.metrics.requests.WithLabelValues(codeClass(a.code)).Inc()
	if a.reason != "" {
		h.metrics.refusals.WithLabelValues(a.reason).Inc()
	}
	if a.code == http.StatusOK && a.tally != nil {
		now := h.cfg.Now()
		h.metrics.ack.Observe(now.Sub(began).Seconds())
		h.metrics.lastBody.Set(float64(now.Unix()))
	}
	h.remember(r, a)
	writeAnswer(w, a)
}

// remember records the request and its answer in the contacts.
func (h *Handler) remember(r *http.Request, a *answer) {
	if h.cfg.Contacts == nil {
		return
	}
	to, _ := parsePath(r.URL.Path)
	accepted := a.code == http.StatusOK && a.tally != nil
	switch {
	case accepted && followed(r):
		h.cfg.Contacts.follow(to.cluster, to.apiserver, r.RemoteAddr, a.tally.events)
		return
	case h.cfg.Trusted: // an import says nothing about a cluster's connection
		return
	case accepted:
		h.cfg.Contacts.accept(to.cluster, to.apiserver, r.RemoteAddr, a.tally.events)
		return
	}
	// A credential identifies the sender better than the path does.
	cluster := to.cluster
	if !validCluster(cluster) {
		cluster = ""
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && h.clusters != nil {
		if owner, err := h.clusters.Certificate(r.TLS.VerifiedChains[0][0]); err == nil || owner != "" {
			cluster = owner
		}
	}
	if a.reason != "" {
		h.cfg.Contacts.refuse(cluster, r.RemoteAddr, Reason(a.reason), a.text)
	}
}

// followed reports whether a request declares that it comes from a follower of a log.
func followed(r *http.Request) bool { return r.URL.Query().Get(QuerySource) == QuerySourceLog }

func writeAnswer(w http.ResponseWriter, a *answer) {
	header := w.Header()
	if a.retry > 0 {
		header.Set("Retry-After", strconv.Itoa(int(a.retry.Seconds())))
	}
	if a.close {
		header.Set("Connection", "close")
	}
	if t := a.tally; t != nil && a.code == http.StatusOK {
		header.Set(HeaderEvents, strconv.Itoa(t.events))
		header.Set(HeaderDeadLetters, strconv.Itoa(t.malformed))
		header.Set(HeaderPolicy, strconv.Itoa(t.policy))
	}
	if a.json != nil {
		header.Set("Content-Type", "application/json")
		w.WriteHeader(a.code)
		_ = json.NewEncoder(w).Encode(a.json) // the client may be gone
		return
	}
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(a.code)
	_, _ = io.WriteString(w, a.text+"\n")
}

type route struct {
	cluster, apiserver string
	state              bool
}

// parsePath recognises the three paths a client posts to.
func parsePath(path string) (route, bool) {
	rest, ok := strings.CutPrefix(path, "/v1/clusters/")
	if !ok {
		return route{}, false
	}
	switch p := strings.Split(rest, "/"); {
	case len(p) == 2 && p[1] == "audit":
		return route{cluster: p[0]}, true
	case len(p) == 2 && p[1] == "state":
		return route{cluster: p[0], state: true}, true
	case len(p) == 4 && p[1] == "apiservers" && p[2] != "" && p[3] == "audit":
		return route{cluster: p[0], apiserver: p[2]}, true
	}
	return route{}, false
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, began time.Time) *answer {
	to, ok := parsePath(r.URL.Path)
	if !ok || to.state && (!h.cfg.Trusted || h.cfg.State == nil) {
		return refuse(http.StatusNotFound, refusedPath, "no such path: "+
			"post to /v1/clusters/CLUSTER/audit or /v1/clusters/CLUSTER/apiservers/NAME/audit")
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return refuse(http.StatusMethodNotAllowed, refusedMethod, "only POST is answered here")
	}
	if a := h.admit(r, to.cluster); a != nil {
		return a.unread()
	}
	if to.apiserver != "" && !validAPIServer(to.apiserver) {
		return refuse(http.StatusBadRequest, refusedName,
			"the apiserver's name in the path must be up to 253 lower-case letters, digits, '-' or '.'").unread()
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return refuse(http.StatusUnsupportedMediaType, refusedEncoding,
			"compressed bodies are not accepted (an audit webhook never sends one): "+
				"post plain JSON without Content-Encoding; for files use `retrial import`, which reads .gz and .zst").unread()
	}
	if to.state {
		return h.serveState(w, r, to.cluster)
	}

	arrived := time.Now() // the clock of sockets
	ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Deadline)
	defer cancel()
	in := &intake{h: h, ctx: ctx, cluster: to.cluster, apiserver: to.apiserver, source: h.source, received: began.UTC()}
	if followed(r) {
		in.source = sourceLog
	}
	if h.cfg.Trusted {
		in.policy = r.URL.Query().Get(QueryPolicy)
	}
	// A connection without deadlines has the server's timeouts. This one stays until the next request and bounds the rest of a body, too.
	_ = http.NewResponseController(w).SetReadDeadline(arrived.Add(h.cfg.Deadline))
	return in.serve(r)
}

func (h *Handler) serveState(w http.ResponseWriter, r *http.Request, cluster string) *answer {
	var since time.Time
	if s := r.URL.Query().Get(QuerySince); s != "" {
		var err error
		if since, err = time.Parse(time.RFC3339Nano, s); err != nil {
			return refuse(http.StatusBadRequest, refusedBadState, "%s: invalid time %q: want RFC 3339, such as 2026-11-20T11:36:00Z",
				QuerySince, s)
		}
	}
	// A state streams in for as long as it takes; the server's timeouts are for lists. A connection without deadlines has none to lift.
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	result, err := h.cfg.State(r.Context(), cluster, since, http.MaxBytesReader(w, r.Body, h.cfg.MaxState))
	_ = rc.SetReadDeadline(time.Now().Add(h.cfg.Deadline)) // for what State left unread
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return &answer{code: http.StatusOK, json: result}
	case errors.As(err, &tooLarge):
		return refuse(http.StatusRequestEntityTooLarge, refusedBadState, "the state is over %d bytes", tooLarge.Limit)
	case errors.Is(err, ErrBadState):
		return refuse(http.StatusBadRequest, refusedBadState, "state of cluster %s: %v", cluster, err)
	}
	h.log.Warn("state not accepted", zap.String("cluster", cluster), zap.Error(err))
	return refuse(http.StatusServiceUnavailable, refusedUnacked, "state of cluster %s: %v", cluster, err).pushBack(storageBackAfter)
}

func (h *Handler) ready(w http.ResponseWriter, r *http.Request) {
	if h.cfg.Ready != nil {
		if err := h.cfg.Ready(r.Context()); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
	}
	_, _ = io.WriteString(w, "ok\n")
}
