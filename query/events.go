package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// Event is a request with its verdict in a line.
type Event struct {
	AuditID    string    `json:"auditID"`
	Request    string    `json:"request"` // identity of the request: audit IDs may be used again
	Time       time.Time `json:"time"`
	User       string    `json:"user"`
	Verb       string    `json:"verb"`
	RequestURI string    `json:"requestURI"`
	Stage      string    `json:"stage"`
	Code       int32     `json:"code"`
	Recorded   string    `json:"recorded"`
	Replayed   string    `json:"replayed"`
	Outcome    string    `json:"outcome"`
	Class      string    `json:"class"`
	Cause      string    `json:"cause"`
	Grants     int       `json:"grants"`
	Authorizer string    `json:"authorizer"`
}

func (a *Service) events(ctx context.Context, q url.Values) (any, error) {
	f, err := eventFilter(q)
	if err != nil {
		return nil, err
	}
	limit := f.Limit
	f.Limit++ // one more, to know whether there are older ones
	rows, err := a.Store.Events(ctx, f)
	if err != nil {
		return nil, err
	}
	out := struct {
		Events []Event `json:"events"`
		Older  string  `json:"older,omitempty"` // what before= continues with
	}{Events: []Event{}}
	for i := range rows[:min(len(rows), limit)] {
		out.Events = append(out.Events, eventLine(&rows[i]))
	}
	if len(rows) > limit {
		out.Older = formatCursor(storage.CursorOf(&rows[limit-1]))
	}
	return out, nil
}

func eventFilter(q url.Values) (f storage.EventFilter, err error) {
	f = storage.EventFilter{Subject: q.Get("user"), Verb: q.Get("verb"), Resource: q.Get("resource"), Judged: true}
	if f.Cluster, f.From, f.To, err = window(q); err != nil {
		return f, err
	}
	if f.Outcome, err = oneOf(q, "outcome", Outcomes...); err != nil {
		return f, err
	}
	if f.Recorded, err = oneOf(q, "decision", "allow", "forbid", "none"); err != nil {
		return f, err
	}
	if f.Class = q.Get("class"); f.Class != "" && verdict.Explain(f.Class) == "" {
		return f, Bad("class: there is no class %q; api/v1/classes lists them", f.Class)
	}
	if f.Limit, err = limitOf(q, usualEvents, mostEvents); err != nil {
		return f, err
	}
	if s := q.Get("before"); s != "" {
		if f.Before, err = parseCursor(s); err != nil {
			return f, err
		}
	}
	return f, nil
}

// limitOf reads how many items are wanted, at most so many; usual when nothing is said.
func limitOf(q url.Values, usual, most int) (int, error) {
	s := q.Get("limit")
	if s == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, Bad("limit: %q is no number from 1 to %d", s, most)
	}
	return n, nil
}

func eventLine(r *verdict.Row) Event {
	e := r.Event
	line := Event{AuditID: e.AuditID, Request: r.Request.String(), Time: e.RequestReceivedTimestamp, User: e.EffectiveUser().Username, Verb: e.Verb,
		RequestURI: e.RequestURI, Stage: string(e.Stage), Code: e.Code()}
	if v := r.Verdict; v != nil {
		line.Recorded, line.Replayed, line.Outcome = v.Recorded.String(), v.Replayed.String(), v.Outcome.String()
		line.Class, line.Cause, line.Grants, line.Authorizer = v.Class, v.Cause, len(v.Grants), v.Authorizer
	}
	return line
}

func formatCursor(c storage.Cursor) string { return strconv.FormatInt(c.Received, 10) + "." + c.Key }

func parseCursor(s string) (storage.Cursor, error) {
	at, key, ok := strings.Cut(s, ".")
	n, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || key == "" {
		return storage.Cursor{}, Bad("before: %q is no place in a list of events", s)
	}
	return storage.Cursor{Received: n, Key: key}, nil
}

// Request is one request with everything known about it.
type Request struct {
	Cluster   string          `json:"cluster"`
	Request   string          `json:"request"` // identity of the request
	APIServer string          `json:"apiserver,omitempty"`
	Source    string          `json:"source"`
	Stages    []Stage         `json:"stages"`
	Event     json.RawMessage `json:"event"`   // of the last stage, as stored
	Verdict   *verdict.Line   `json:"verdict"` // null when no stage was judged
	// Chain is what each authorizer answered in the replay.
	Chain []verdict.ChainStep `json:"chain,omitempty"`
	// Issue is how the credential came to be, when a recorded request shows it.
	Issue *Issue `json:"issue,omitempty"`
	// Authenticators is what each of the configured authenticators says of the identity, in
	// the order they are asked; only when the apiserver's configuration is known.
	Authenticators []authn.Answer `json:"authenticators,omitempty"`
	// Twin is the same request as another server of the cluster recorded it: that of an
	// aggregated API server, or of the kube-apiserver in front of it. It names that server.
	Twin string `json:"twin,omitempty"`
	// At is what the answer would be at another time; only when that was asked for.
	At *atJSON `json:"at,omitempty"`
}

// atJSON is a request decided by the policy of another time than its own.
type atJSON struct {
	Time          time.Time                  `json:"time"`
	Replayed      string                     `json:"replayed"`
	Authorizer    string                     `json:"authorizer"`
	Grants        []verdict.GrantLine        `json:"grants"`
	Errors        []string                   `json:"errors,omitempty"`
	Missing       []string                   `json:"missing,omitempty"`
	Impersonation *verdict.ImpersonationLine `json:"impersonation,omitempty"`
}

// decideAt decides the requests anew, by what is known of their clusters at a time.
func (a *Service) decideAt(ctx context.Context, w *WhyAnswer, at time.Time) error {
	engine := replay.New(replay.Config{Version: a.Version, Apiserver: a.Apiserver})
	states := map[string]*state.State{} // nil: nothing is known, and that is the answer
	for i := range w.Requests {
		r := &w.Requests[i]
		e, err := event.Decode(r.Event)
		if err != nil {
			return fmt.Errorf("stored event of cluster %q: %w", r.Cluster, err)
		}
		e.Server = r.APIServer
		if _, ok := states[r.Cluster]; !ok {
			states[r.Cluster], _ = a.stateOf(ctx, r.Cluster)
		}
		v := engine.DecideAt(e, states[r.Cluster], at)
		line := v.Line(e)
		r.At = &atJSON{at, line.Replayed, line.Authorizer, line.Grants, line.Errors, line.Missing, line.Impersonation}
	}
	return nil
}

// Stage is one recorded stage of a request.
type Stage struct {
	Stage string    `json:"stage"`
	Time  time.Time `json:"time"`
	Code  int32     `json:"code"`
}

// WhyAnswer is everything about the requests of an audit ID.
type WhyAnswer struct {
	Requests []Request `json:"requests"`
	// Truncated says that the ID has more requests than one answer holds.
	Truncated bool `json:"truncated,omitempty"`
}

// ErrEnough ends the reading of an audit ID that has more than an answer holds.
var ErrEnough = errors.New("enough")

func (a *Service) why(ctx context.Context, q url.Values) (any, error) {
	id := q.Get("auditID")
	if id == "" {
		return nil, Bad("auditID is missing")
	}
	at, err := Instant(q, "at")
	if err != nil {
		return nil, err
	}
	out := WhyAnswer{Requests: []Request{}}
	var last event.Hash128
	size := 0
	err = a.Store.VisitWhy(ctx, q.Get("cluster"), id, func(row verdict.Row) error {
		// Clients choose audit IDs: nobody but they bounds how much has the same one.
		if size += row.Size; size > WhyBytes && len(out.Requests) > 0 {
			out.Truncated = true
			return ErrEnough
		}
		out.add(&row, &last)
		return nil
	})
	if err != nil && !errors.Is(err, ErrEnough) {
		return nil, err
	}
	if err := a.identities(&out); err != nil {
		return nil, err
	}
	a.twins(&out)
	if !at.IsZero() {
		if err := a.decideAt(ctx, &out, at); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// identities adds how the credentials of requests came to be, and what each authenticator says
// Of who it was.
func (a *Service) identities(w *WhyAnswer) error {
	engine := replay.New(replay.Config{Version: a.Version, Apiserver: a.Apiserver})
	for i := range w.Requests {
		r := &w.Requests[i]
		st, known := a.Replay.State(r.Cluster)
		if r.Verdict != nil && r.Verdict.Credential != "" {
			r.Issue = IssueOf(st, r.Verdict.Credential)
		}
		if a.Apiserver == nil {
			continue
		}
		e, err := event.Decode(r.Event)
		if err != nil {
			return fmt.Errorf("stored event of cluster %q: %w", r.Cluster, err)
		}
		cfg := a.Apiserver(r.Cluster, r.APIServer).At(e.RequestReceivedTimestamp)
		if cfg == nil || e.User.Username == "" {
			continue
		}
		var s authn.State
		if known {
			s = st
		}
		r.Authenticators = engine.Authn().Answers(e, cfg, s)
	}
	return nil
}

// Add adds a row; last is the request of the one before.
func (w *WhyAnswer) add(row *verdict.Row, last *event.Hash128) {
	n := len(w.Requests)
	if n == 0 || *last != row.Request || w.Requests[n-1].Cluster != row.Cluster {
		w.Requests = append(w.Requests, Request{Cluster: row.Cluster, Request: row.Request.String(), APIServer: row.APIServer, Source: row.Source})
		*last = row.Request
		n++
	}
	req := &w.Requests[n-1]
	req.Stages = append(req.Stages, Stage{string(row.Event.Stage), row.Event.StageTimestamp, row.Event.Code()})
	req.Event = event.AppendJSON(nil, row.Event)
	if row.Verdict != nil {
		line := row.Verdict.Line(row.Event)
		req.Verdict, req.Chain = &line, row.Verdict.Chain
	}
}
