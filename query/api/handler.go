// Package api serves the questions of package query over HTTP: parameters are read strictly,
// answers are bounded in time and number and come as JSON, and who asked what is recorded.
package api

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

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/verdict"
)

// handler serves questions over HTTP. The API is read by the page, by `retrial why` and by
// whoever is let in. Its members, parameters and errors are described in docs/api.md; names are
// part of the interface: they are added to, never changed.
type handler struct {
	asking  *QueryLog // nil: nothing is recorded
	log     *zap.Logger
	slots   chan struct{} // one for every query under way
	turn    chan struct{} // one for who reads a whole history
	longest time.Duration // that a query may take
}

// Bounds of the API. A page asks two or three queries at a time, a query takes well below a
// second: who meets these bounds asks for too much, or there are too many of them.
const (
	// QueriesAtOnce is how many questions ask the store at a time.
	QueriesAtOnce = 8
	// LongestQuery is how long one may take.
	LongestQuery = 30 * time.Second
	// LongestValue is how many bytes a parameter may have.
	LongestValue = 16 << 10
)

// historyTimes is how much longer than any other query one may take that reads a whole history.
const historyTimes = 20

var (
	errTooLong = errors.New("the store took too long; ask for a shorter range of time")
	errBusy    = errors.New("too many questions at once; try again in a moment")
)

// New serves questions, each at its path.
func New(a *query.Service, routes []query.Question, asking *QueryLog, log *zap.Logger, longest time.Duration) http.Handler {
	h := handler{asking: asking, log: log.Named("api"), slots: make(chan struct{}, QueriesAtOnce), turn: make(chan struct{}, 1), longest: longest}
	mux := http.NewServeMux()
	for _, e := range routes {
		answer := h.bounded(e)
		mux.HandleFunc("GET /api/v1/"+e.Path, h.asked(e.Path, func(w http.ResponseWriter, r *http.Request) {
			q, err := parameters(r, e.Parameters)
			var v any
			if err == nil {
				v, err = answer(r.Context(), q)
			}
			if err == nil {
				Respond(w, v)
				return
			}
			h.fail(w, r, e.Path, err)
		}))
	}
	mux.HandleFunc("POST /api/v1/rejudge", h.asked("rejudge", h.beginRejudge(a)))
	mux.HandleFunc("/api/v1/", func(w http.ResponseWriter, r *http.Request) {
		status, text := http.StatusNotFound, "there is no "+strconv.Quote(r.URL.Path)+" in the API; see docs/api.md"
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			status, text = http.StatusMethodNotAllowed, "the API only answers GET"
		}
		Plain(w, status, text)
	})
	return mux
}

// answering answers a question with its parameters.
type answering func(context.Context, url.Values) (any, error)

// bounded holds an answer to what it may cost.
func (h handler) bounded(e query.Question) answering {
	switch e.Cost {
	case query.CostNothing:
		return e.Answer
	case query.CostHistory:
		return h.inTurn(h.query(e.Answer, historyTimes*h.longest))
	}
	return h.query(e.Answer, h.longest)
}

// inTurn has one answer made at a time. Who waits for it holds none of the slots of other
// questions.
func (h handler) inTurn(answer answering) answering {
	return func(ctx context.Context, q url.Values) (any, error) {
		waiting, cancel := context.WithTimeout(ctx, h.longest)
		defer cancel()
		select {
		case h.turn <- struct{}{}:
			defer func() { <-h.turn }()
		case <-waiting.Done():
			return nil, errBusy
		}
		return answer(ctx, q)
	}
}

// query bounds an answer that asks the store: it waits for a slot and is ended after the
// longest time, or when the caller goes away.
func (h handler) query(answer answering, longest time.Duration) answering {
	return func(ctx context.Context, q url.Values) (any, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, longest, errTooLong)
		defer cancel()
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
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

// fail answers with an error, as plain text.
func (h handler) fail(w http.ResponseWriter, r *http.Request, path string, err error) {
	var callers query.BadRequest
	var missing query.NotFound
	switch {
	case r.Context().Err() != nil:
		// The caller went away, or the server stops; nobody reads what is written.
		Plain(w, http.StatusServiceUnavailable, "the request ended before its answer was ready")
	case errors.As(err, &callers):
		Plain(w, http.StatusBadRequest, err.Error())
	case errors.As(err, &missing):
		Plain(w, http.StatusNotFound, err.Error())
	case errors.Is(err, errTooLong):
		h.log.Warn("query took too long", zap.String("path", path), zap.Duration("limit", h.longest))
		Plain(w, http.StatusGatewayTimeout, err.Error())
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "1")
		Plain(w, http.StatusServiceUnavailable, err.Error())
	default:
		h.log.Error("query failed", zap.String("path", path), zap.Error(err))
		Plain(w, http.StatusInternalServerError, "the store could not answer; the server's log says why")
	}
}

// Plain answers with a line of text for people.
func Plain(w http.ResponseWriter, status int, text string) {
	private(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

// Respond answers with v as JSON. It is made whole before it is sent, so that an error does
// not leave half an answer, and it must be read within a minute.
func Respond(w http.ResponseWriter, v any) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(v); err != nil {
		Plain(w, http.StatusInternalServerError, "the answer could not be written as JSON")
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
		return nil, query.Bad("the query cannot be read: %w", err)
	}
	for name, values := range q {
		switch {
		case !slices.Contains(may, name):
			return nil, query.Bad("there is no parameter %q; known are: %s", name, strings.Join(may, ", "))
		case len(values) > 1:
			return nil, query.Bad("%s is given %d times", name, len(values))
		case len(values[0]) > LongestValue:
			return nil, query.Bad("%s has %d bytes; at most %d are taken", name, len(values[0]), LongestValue)
		case !utf8.ValidString(values[0]):
			return nil, query.Bad("%s is not UTF-8", name)
		}
	}
	return q, nil
}

// beginRejudge takes a job in. It changes what is stored, so only the local socket may: who
// can open it may do everything.
func (h handler) beginRejudge(a *query.Service) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if door := callerOf(r).Door; door == "page" || a.Rejudges == nil {
			Plain(w, http.StatusForbidden, "judging again is asked for on the server's machine: run retrial rejudge there, without --server")
			return
		}
		q, err := parameters(r, []string{"cluster", "from", "to", "where", "dryRun"})
		var job verdict.RejudgeJob
		if err == nil {
			job, err = a.AskRejudge(r.Context(), q)
		}
		if err != nil {
			h.fail(w, r, "rejudge", err)
			return
		}
		Respond(w, query.RejudgeOf(&job))
	}
}
