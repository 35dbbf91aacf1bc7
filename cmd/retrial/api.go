package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/analysis/completeness"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/runner"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// api is the local API, read by the page, by `retrial why` and by whoever is let in. Its
// members, parameters and errors are described in docs/api.md; names are part of the
// interface: they are added to, never changed.
//
//	GET api/v1/clusters                      the clusters there are events of, with their range
//	GET api/v1/overview?cluster=&from=&to=   what the first page shows
//	GET api/v1/events?cluster=&from=&to=&…   requests with their verdicts, newest first
//	GET api/v1/why?auditID=&cluster=         everything about the requests of an audit ID
//	GET api/v1/classes                       what outcomes and classes mean
//	GET api/v1/status                        how far the replay is behind
//	GET api/v1/rejudge?cluster=&id=          the jobs that judge stored requests again; POST begins one
//	GET api/v1/drained                       answers when everything accepted is stored
type api struct {
	store    queries
	replay   replaying
	rejudges rejudging // nil: nobody judges
	asking   *queryLog // nil: nothing is recorded
	site     site
	offline  bool // answers from a log: questions about the policy alone, see policyOnly
	log      *zap.Logger
	slots    chan struct{} // one for every query under way
	longest  time.Duration // that a query may take
}

// queries is what the API asks the store.
type queries interface {
	accessQueries
	subjectQueries
	doctorQueries
	findingQueries
	driftQueries
	lineageQueries
	completeness.Store
	askingQueries
	Clusters(ctx context.Context) ([]storage.Cluster, error)
	Overview(ctx context.Context, cluster string, from, to time.Time) (storage.Overview, error)
	Events(ctx context.Context, f storage.EventFilter) ([]verdict.Row, error)
	// VisitWhy visits the rows of an audit ID, request by request, until visit returns an error.
	VisitWhy(ctx context.Context, cluster, auditID string, visit func(verdict.Row) error) error
	QueryLog(ctx context.Context, before time.Time, limit int) ([]storage.Asked, error)
}

// replaying is what the API asks the runner.
type replaying interface {
	Lag() runner.Lag
	WaitDrained(ctx context.Context) error
	// State is what is known of a cluster's objects, false when that is nothing. It is only read.
	State(cluster string) (*state.State, bool)
	// Clusters are those anything is known of, or was asked about while judging, sorted.
	Clusters() []string
}

// route is one question of the API.
type route struct {
	path   string   // below /api/v1/
	may    []string // parameters; anything else is an error of the caller
	answer func(context.Context, url.Values) (any, error)
}

// routes are all questions; each group stands with its answers.
func (a api) routes() []route {
	if a.offline {
		return slices.Concat([]route{{"clusters", nil, a.query(a.clusters)}}, a.accessRoutes(), a.escalationRoutes(), a.changeRoutes())
	}
	return slices.Concat([]route{
		{"clusters", nil, a.query(a.clusters)},
		{"overview", []string{"cluster", "from", "to"}, a.query(a.overview)},
		{"events", []string{"cluster", "from", "to", "user", "verb", "resource", "decision", "outcome", "class", "before", "limit"}, a.query(a.events)},
		{"why", []string{"auditID", "cluster", "at"}, a.query(a.why)},
		{"classes", nil, classes},
		{"status", nil, a.status},
		{"drained", nil, a.drained},
		{"query-log", []string{"before", "limit"}, a.query(a.queryLog)},
		{"rejudge", []string{"cluster", "id"}, a.query(a.rejudgeJobs)},
	}, a.accessRoutes(), a.suggestRoutes(), a.findingRoutes(), a.connectionRoutes(), a.escalationRoutes(), a.changeRoutes(), a.driftRoutes(), a.lineageRoutes(), a.explainRoutes(), a.completenessRoutes(), a.questionRoutes())
}

// Bounds of the API. A page asks two or three queries at a time, a query takes well below a
// second: who meets these bounds asks for too much, or there are too many of them.
const (
	queriesAtOnce = 8
	longestQuery  = 30 * time.Second
	longestValue  = 16 << 10 // bytes of a parameter
	usualEvents   = 50       // in one answer, unless asked
	mostEvents    = 500      // in one answer
	whyBytes      = 16 << 20 // of events in one answer
)

func newAPI(sys *system) http.Handler {
	return apiHandler(ruledStore{sys.store, sys.rules}, sys.runner, sys.asking, sys.log, longestQuery, at(sys.site()), withRejudging(sys.runner))
}

// policyOnly leaves the questions about a policy: all that a logStore can be asked.
func policyOnly(a *api) { a.offline = true }

// apiHandler serves the API below /api/v1/.
func apiHandler(store queries, runner replaying, asking *queryLog, log *zap.Logger, longest time.Duration, more ...func(*api)) http.Handler {
	a := api{store: store, replay: runner, asking: asking, log: log.Named("api"), slots: make(chan struct{}, queriesAtOnce), longest: longest}
	for _, set := range more {
		set(&a)
	}
	mux := http.NewServeMux()
	for _, e := range a.routes() {
		mux.HandleFunc("GET /api/v1/"+e.path, a.asked(e.path, func(w http.ResponseWriter, r *http.Request) {
			q, err := parameters(r, e.may)
			var v any
			if err == nil {
				v, err = e.answer(r.Context(), q)
			}
			if err == nil {
				respond(w, v)
				return
			}
			a.fail(w, r, e.path, err)
		}))
	}
	mux.HandleFunc("POST /api/v1/rejudge", a.asked("rejudge", a.beginRejudge))
	mux.HandleFunc("/api/v1/", func(w http.ResponseWriter, r *http.Request) {
		status, text := http.StatusNotFound, "there is no "+strconv.Quote(r.URL.Path)+" in the API; see docs/api.md"
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			status, text = http.StatusMethodNotAllowed, "the API only answers GET"
		}
		plain(w, status, text)
	})
	return mux
}

// query bounds an answer that asks the store: it waits for a slot and is ended after the
// longest time, or when the caller goes away.
func (a api) query(answer func(context.Context, url.Values) (any, error)) func(context.Context, url.Values) (any, error) {
	return func(ctx context.Context, q url.Values) (any, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, a.longest, errTooLong)
		defer cancel()
		select {
		case a.slots <- struct{}{}:
			defer func() { <-a.slots }()
		case <-ctx.Done():
			return nil, errBusy
		}
		v, err := answer(ctx, q)
		if err != nil && errors.Is(context.Cause(ctx), errTooLong) {
			err = errTooLong
		}
		return v, err
	}
}

var (
	errTooLong = errors.New("the store took too long; ask for a shorter range of time")
	errBusy    = errors.New("too many questions at once; try again in a moment")
)

// badRequest is an error of the caller.
type badRequest struct{ error }

func bad(format string, args ...any) error { return badRequest{fmt.Errorf(format, args...)} }

// nothing is the answer to a question about what is not there.
type nothing struct{ error }

func none(format string, args ...any) error { return nothing{fmt.Errorf(format, args...)} }

// fail answers with an error, as plain text.
func (a api) fail(w http.ResponseWriter, r *http.Request, path string, err error) {
	var callers badRequest
	var missing nothing
	switch {
	case r.Context().Err() != nil:
		// The caller went away, or the server stops; nobody reads what is written.
		plain(w, http.StatusServiceUnavailable, "the request ended before its answer was ready")
	case errors.As(err, &callers):
		plain(w, http.StatusBadRequest, err.Error())
	case errors.As(err, &missing):
		plain(w, http.StatusNotFound, err.Error())
	case errors.Is(err, errTooLong):
		a.log.Warn("query took too long", zap.String("path", path), zap.Duration("limit", a.longest))
		plain(w, http.StatusGatewayTimeout, err.Error())
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "1")
		plain(w, http.StatusServiceUnavailable, err.Error())
	default:
		a.log.Error("query failed", zap.String("path", path), zap.Error(err))
		plain(w, http.StatusInternalServerError, "the store could not answer; the server's log says why")
	}
}

func plain(w http.ResponseWriter, status int, text string) {
	private(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

// respond answers with v as JSON. It is made whole before it is sent, so that an error does
// not leave half an answer, and it must be read within a minute.
func respond(w http.ResponseWriter, v any) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(v); err != nil {
		plain(w, http.StatusInternalServerError, "the answer could not be written as JSON")
		return
	}
	private(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	// Not every ResponseWriter can; those that cannot have no connection to hold open.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
	_, _ = body.WriteTo(w) // the caller is gone when this fails
}

// private keeps answers out of caches and out of other sites' documents.
func private(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// parameters reads the query, strictly: a misspelt filter that is passed over would answer
// another question than the one that was asked.
func parameters(r *http.Request, may []string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, bad("the query cannot be read: %w", err)
	}
	for name, values := range q {
		switch {
		case !slices.Contains(may, name):
			return nil, bad("there is no parameter %q; known are: %s", name, strings.Join(may, ", "))
		case len(values) > 1:
			return nil, bad("%s is given %d times", name, len(values))
		case len(values[0]) > longestValue:
			return nil, bad("%s has %d bytes; at most %d are taken", name, len(values[0]), longestValue)
		case !utf8.ValidString(values[0]):
			return nil, bad("%s is not UTF-8", name)
		}
	}
	return q, nil
}

// window reads cluster, from and to.
func window(q url.Values) (cluster string, from, to time.Time, err error) {
	if cluster = q.Get("cluster"); cluster == "" {
		return cluster, from, to, bad("cluster is missing")
	}
	if from, err = instant(q, "from"); err != nil {
		return cluster, from, to, err
	}
	if to, err = instant(q, "to"); err != nil {
		return cluster, from, to, err
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		err = bad("from %s is not before to %s", from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano))
	}
	return cluster, from, to, err
}

// instant reads a time; those the store's columns do not hold are refused.
func instant(q url.Values, name string) (time.Time, error) {
	s := q.Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, bad("%s: %q is no RFC 3339 time, such as 2026-11-20T11:36:00Z", name, s)
	}
	if t.Unix() < 0 || t.Unix() > 1<<32-1 {
		return t, bad("%s: %q is not between 1970 and 2106", name, s)
	}
	return t.UTC(), nil
}

// oneOf reads a parameter of a closed set; empty is none.
func oneOf(q url.Values, name string, set ...string) (string, error) {
	s := q.Get(name)
	if s != "" && !slices.Contains(set, s) {
		return "", bad("%s: %q is none of %s", name, s, strings.Join(set, ", "))
	}
	return s, nil
}

// outcomes of verdicts, as they are stored and printed.
var outcomes = []string{"match", "drift", "ambiguous", "indeterminate", "not_judged"}

type clusterJSON struct {
	Name   string    `json:"name"`
	Events int64     `json:"events"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

type clustersJSON struct {
	Clusters []clusterJSON `json:"clusters"`
	// Quiet are clusters whose objects are known and of which there is no event.
	Quiet []string `json:"quiet,omitempty"`
}

func (a api) clusters(ctx context.Context, _ url.Values) (any, error) {
	list, err := a.store.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	out := clustersJSON{Clusters: []clusterJSON{}}
	seen := make(map[string]bool, len(list))
	for _, c := range list {
		// The store knows whole minutes; the last one has not ended where its events have.
		out.Clusters = append(out.Clusters, clusterJSON{c.Name, c.Events, c.First, c.Last.Add(time.Minute)})
		seen[c.Name] = true
	}
	for _, name := range a.replay.Clusters() {
		if !seen[name] {
			out.Quiet = append(out.Quiet, name)
		}
	}
	return out, nil
}

type outcomeJSON struct {
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
}

// classes tells what outcomes and classes mean: closed sets, the same for every cluster.
func classes(context.Context, url.Values) (any, error) {
	type class struct {
		Class   string `json:"class"`
		Outcome string `json:"outcome"`
		Text    string `json:"text"`
	}
	out := struct {
		Outcomes []outcomeJSON `json:"outcomes"`
		Classes  []class       `json:"classes"`
	}{Outcomes: []outcomeJSON{
		{"match", "The replay came to the decision the apiserver recorded, for a reason the apiserver could give."},
		{"drift", "The replay came to another decision, or the recorded reason fits nothing in the policy: look at these first."},
		{"ambiguous", "The policy changed while the request was under way; before and after the change the answers differ, and the record fits one of them."},
		{"indeterminate", "Something needed for a certain answer is not known. The verdict names it; supplying it settles the verdict."},
		{"not_judged", "The log records no authorization decision for the request: it was turned away before one was made."},
	}}
	for _, c := range verdict.Classes() {
		out.Classes = append(out.Classes, class{c.Class, c.Outcome.String(), c.Text})
	}
	return out, nil
}

func (a api) status(context.Context, url.Values) (any, error) {
	lag, lags := a.replay.Lag(), []replay.Lag{}
	if learnt, ok := a.replay.(interface{ Lags() []replay.Lag }); ok {
		lags = append(lags, learnt.Lags()...)
	}
	return struct {
		Version     string `json:"version"`
		Lag         int64  `json:"lag"` // events accepted and not yet stored
		PolicyLag   int64  `json:"policyLag"`
		DeadLetters int64  `json:"deadLetterLag"`
		Corrections int64  `json:"corrections"`
		// CacheLags are what was learnt of apiservers, times in nanoseconds.
		CacheLags []replay.Lag `json:"cacheLags"`
	}{version, lag.Events, lag.Policy, lag.DeadLetters, lag.Corrections, lags}, nil
}

// settled waits until what was accepted is stored: it may be in the spool, too.
func (a api) settled(ctx context.Context) error {
	if a.site.spooled != nil {
		if err := a.site.spooled(ctx); err != nil {
			return err
		}
	}
	return a.replay.WaitDrained(ctx)
}

func (a api) drained(ctx context.Context, _ url.Values) (any, error) {
	return struct{}{}, a.settled(ctx)
}
