// Package api serves the questions of package query over HTTP: it reads parameters strictly, bounds answers in time and number, and records
// who asked what.
package api

import (
	"bytes"
	"context"
	_ "embed" // for the document
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/params"
	"github.com/retrial-io/retrial/query"
)

// handler serves questions over HTTP. The page, the commands and other clients use it. docs/api.md describes its members, parameters and
// errors; names are part of the interface: new ones may be added, none changes.
type handler struct {
	asking  *QueryLog // nil: nothing is recorded
	log     *zap.Logger
	store   *queue // of who asks the store
	history *queue // of who reads a whole history, one after the other
	pages   *shared
	longest time.Duration // that a query may take
}

// Bounds of the API. A page asks two or three queries at a time, each well below a second: whoever meets these bounds asks for too much, or
// too many clients ask.
const (
	// QueriesAtOnce is how many questions ask the store at a time, of all callers; one caller alone has at most half of them.
	QueriesAtOnce = 8
	// mostWaiting is how many more wait for their turn, mostOfCaller how many of one caller.
	mostWaiting, mostOfCaller = 256, 64
	// LongestQuery is how long one may take.
	LongestQuery = 30 * time.Second
	// longestBody bounds the bytes of an action's request, longestPosted those of a question that is too long for a URL.
	longestBody, longestPosted = 64 << 10, 4 << 20
)

// historyTimes is how many times as long a query that reads a whole history may take.
const historyTimes = 20

var (
	errTooLong = errors.New("the store took too long; ask for a shorter range of time")
	errBusy    = errors.New("too many questions at once; try again in a moment")
	errMany    = fmt.Errorf("you have %d questions waiting already; ask more when they are answered", mostOfCaller)
)

// New serves questions, each at its name: those that change something by POST and on the machine itself alone, long ones by POST, all
// others by GET.
func New(questions []query.Question, asking *QueryLog, log *zap.Logger, longest time.Duration) http.Handler {
	h := handler{asking: asking, log: log.Named("api"), store: newQueue(QueriesAtOnce, mostWaiting), history: newQueue(1, mostWaiting),
		pages: newShared(), longest: longest}
	mux := http.NewServeMux()
	for i := range questions {
		q := &questions[i]
		method := "GET "
		if q.Action || q.Posted {
			method = "POST "
		}
		mux.HandleFunc(method+"/api/v1/"+q.Name, h.asked(q.Name, h.ask(q)))
		if q.Posted {
			mux.HandleFunc("/api/v1/"+q.Name, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Allow", "POST")
				Plain(w, http.StatusMethodNotAllowed, q.Name+" is asked by POST, with a JSON object; see docs/api.md")
			})
		}
	}
	mux.HandleFunc("GET /api/v1/openapi.json", serveOpenAPI)
	mux.HandleFunc("/api/v1/", func(w http.ResponseWriter, r *http.Request) {
		status, text := http.StatusNotFound, "there is no "+strconv.Quote(r.URL.Path)+" in the API; see docs/api.md"
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			status, text = http.StatusMethodNotAllowed, "the API answers GET, and POST where docs/api.md says so"
		}
		Plain(w, status, text)
	})
	return compressed(mux)
}

// ask serves a question. Only the local socket may ask for an action: whoever can open it may do everything.
func (h handler) ask(q *query.Question) http.HandlerFunc {
	answer := h.bounded(q)
	return func(w http.ResponseWriter, r *http.Request) {
		var v any
		request, err := q.NewRequest(), query.ErrRefused
		if !q.Action || callerOf(r).Door != "page" {
			err = read(w, r, request)
		}
		long := &stream{w: w}
		if err == nil {
			v, err = answer(query.WithSink(r.Context(), long), askerOf(r), request)
		}
		if err == nil && long.begun {
			err = long.end()
		}
		switch {
		case err != nil && long.sent:
			h.log.Warn("an answer was cut off", zap.String("path", q.Name), zap.Error(err))
			long.cut()
		case err != nil:
			h.fail(w, r, q.Name, err)
		case !long.begun:
			Respond(w, v)
		}
	}
}

// read fills a request from the parameters of the URL, or an action's from its body, which is then recorded.
func read(w http.ResponseWriter, r *http.Request, request any) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query.Bad("the query cannot be read: %w", err)
	}
	var old map[string]string
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") && r.Method == http.MethodPost {
		var body []byte
		most := int64(longestBody)
		if query.IsPosted(request) {
			most = longestPosted
		}
		if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most)); err != nil {
			return query.Bad("the body cannot be read, or has more than %d bytes: %w", most, err)
		}
		if len(q) > 0 {
			return query.Bad("parameters are either in the URL or in the body")
		}
		if old, err = params.ReadJSON(request, body); err == nil {
			r.URL.RawQuery = recorded(params.Write(request)).Encode()
		}
	} else {
		old, err = params.Read(request, q)
	}
	if err != nil {
		return query.BadRequest{Err: err}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		w.Header().Add("Warning", fmt.Sprintf("299 - \"the parameter %s is called %s now\"", name, old[name]))
	}
	return nil
}

// recorded are the parameters of a body as the query log has them: of a long one how long it is.
func recorded(q url.Values) url.Values {
	for name := range q {
		if n := len(q.Get(name)); n > params.MaxValue {
			q.Set(name, fmt.Sprintf("(%d bytes)", n))
		}
	}
	return q
}

type answering func(ctx context.Context, who asker, request any) (any, error)

func (h handler) bounded(q *query.Question) answering {
	answer := func(ctx context.Context, _ asker, request any) (any, error) { return q.Ask(ctx, request) }
	switch {
	case q.Action || q.Cost == query.CostNothing:
		return answer
	case q.Cost == query.CostHistory:
		// A caller that waits for its turn holds no place of other questions.
		return h.inTurn(h.history, h.inTurn(h.store, answer, historyTimes*h.longest), historyTimes*h.longest)
	}
	inTurn := func(answer answering) answering { return h.inTurn(h.store, answer, h.longest) }
	if q.Cost == query.CostPage {
		return h.pages.forAll(q.Name, h.longest, answer, inTurn)
	}
	return inTurn(answer)
}

// inTurn bounds an answer that asks the store: it waits for its turn no longer than a query may take, and is ended after the longest time,
// or when the caller goes away.
func (h handler) inTurn(q *queue, answer answering, longest time.Duration) answering {
	return func(ctx context.Context, who asker, request any) (any, error) {
		waiting, stop := context.WithTimeout(ctx, h.longest)
		leave, err := q.enter(waiting, who)
		stop()
		if err != nil {
			return nil, err
		}
		defer leave()
		ctx, cancel := context.WithTimeoutCause(ctx, longest, errTooLong)
		defer cancel()
		v, err := answer(ctx, who, request)
		if err != nil && errors.Is(context.Cause(ctx), errTooLong) {
			err = errTooLong
		}
		return v, err
	}
}

func (h handler) fail(w http.ResponseWriter, r *http.Request, path string, err error) {
	var callers query.BadRequest
	var missing query.NotFound
	switch {
	case errors.Is(err, query.ErrRefused):
		Plain(w, http.StatusForbidden, path+" changes what is stored: run retrial "+path+" on the server's machine, without --server")
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
	case errors.Is(err, errMany):
		w.Header().Set("Retry-After", "1")
		Plain(w, http.StatusTooManyRequests, err.Error())
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

// Respond answers with v as JSON. It encodes the whole answer before sending, so that an error does not leave half of one; the client must
// read it within a minute.
func Respond(w http.ResponseWriter, v any) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(v); err != nil {
		Plain(w, http.StatusInternalServerError, "the answer could not be written as JSON")
		return
	}
	private(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	// Not every ResponseWriter can; one that cannot has no connection to hold open.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
	_, _ = body.WriteTo(w) // the caller is gone when this fails
}

// private keeps answers out of caches and out of other sites' documents.
func private(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// openAPI describes every question, its parameters and its answer (OpenAPI 3.1). It is generated from
// the types of requests and answers, and from their comments: `make golden`.
//
//go:embed openapi.json
var openAPI []byte

func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	private(w.Header())
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // the caller is gone when this fails
}
