package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/retrial-io/retrial/analysis/lineage"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// JudgedRequest is one request with everything known about it.
type JudgedRequest struct {
	Cluster   string          `json:"cluster"`
	Request   string          `json:"request"` // identity of the request
	APIServer string          `json:"apiserver,omitempty"`
	Source    string          `json:"source"`  // how the event came first: webhook, log, import
	Stages    []Stage         `json:"stages"`  // recorded ones, in order
	Event     json.RawMessage `json:"event"`   // of the last stage, as stored
	Verdict   *verdict.Line   `json:"verdict"` // null when no stage was judged
	// Chain has each authorizer's answer in the replay.
	Chain []verdict.ChainStep `json:"chain,omitempty"`
	// Issue says how the credential was made, if a recorded request shows it.
	Issue *Issue `json:"issue,omitempty"`
	// Authenticators has what each configured authenticator says of the identity, in the order they are asked; only if the apiserver's
	// configuration is known.
	Authenticators []authn.Answer `json:"authenticators,omitempty"`
	// Twin is the same request as another server of the cluster recorded it: that of an
	// aggregated API server, or of the kube-apiserver in front of it. It names that server.
	Twin string `json:"twin,omitempty"`
	// At is the answer at another time, if that was asked for.
	At *DecisionAt `json:"at,omitempty"`

	last *event.Event // that Event is the JSON of
}

// DecisionAt is a request decided by the policy of another time.
type DecisionAt struct {
	Time          time.Time                  `json:"time"`
	Replayed      string                     `json:"replayed"` // decision of the replica; none: not known
	Authorizer    string                     `json:"authorizer"`
	Grants        []verdict.GrantLine        `json:"grants"`
	Errors        []string                   `json:"errors,omitempty"`
	Missing       []string                   `json:"missing,omitempty"`
	Impersonation *verdict.ImpersonationLine `json:"impersonation,omitempty"` // where there is one
}

// decideAt decides the requests anew, by what is known of their clusters at a time.
func (a *Service) decideAt(ctx context.Context, w *WhyAnswer, at time.Time) (err error) {
	states := map[string]*state.State{} // nil: nothing is known, and that is the answer
	for i := range w.Requests {
		r := &w.Requests[i]
		e := *r.last
		e.Server = r.APIServer
		if _, ok := states[r.Cluster]; !ok {
			if states[r.Cluster], err = a.stateOf(ctx, r.Cluster, at); err != nil {
				return err
			}
		}
		v := a.engine().DecideAt(&e, states[r.Cluster], at)
		line := v.Line(&e)
		r.At = &DecisionAt{at, line.Replayed, line.Authorizer, line.Grants, line.Errors, line.Missing, line.Impersonation}
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
	Requests []JudgedRequest `json:"requests"`
	// Truncated says that the ID has more requests than one answer holds.
	Truncated bool `json:"truncated,omitempty"`
	// Like are requests whose audit IDs begin with the one asked about, where none has it: one of each ID, six at most.
	Like []LikeRequest `json:"like,omitempty"`
}

// LikeRequest is a request whose audit ID begins with the one asked about.
type LikeRequest struct {
	Cluster string `json:"cluster"`
	Event
}

// LeastPrefix is how many letters the beginning of an audit ID has at least: less begins too many.
const LeastPrefix = 4

// mostLike is how many of the IDs that begin with one are named.
const mostLike = 6

// like returns requests of the audit IDs that begin with one.
func (a *Service) like(ctx context.Context, cluster, prefix string) (out []LikeRequest, err error) {
	if len(prefix) < LeastPrefix {
		return nil, nil
	}
	ids, err := a.Store.AuditIDs(ctx, cluster, prefix, mostLike)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		err := a.Store.VisitWhy(ctx, cluster, id, func(row verdict.Row) error {
			out = append(out, LikeRequest{row.Cluster, eventLine(&row)})
			return ErrEnough
		})
		if err != nil && !errors.Is(err, ErrEnough) {
			return nil, err
		}
	}
	return out, nil
}

// WhyBytes bounds the bytes of events in an answer.
const WhyBytes = 16 << 20

// ErrEnough ends the reading of an audit ID with more requests than an answer holds.
var ErrEnough = errors.New("enough")

// WhyRequest asks for everything about the requests of an audit ID. Clients choose audit IDs and may
// use one again, so the answer is a list.
type WhyRequest struct {
	Asks[WhyAnswer] `question:"why"`
	AuditID         string    `json:"auditID" required:"true" help:"audit ID of the requests; where none has it, those that begin with it are named"`
	Cluster         string    `json:"cluster" help:"look in this cluster only: audit IDs are chosen by clients and may be reused"`
	At              time.Time `json:"at" help:"decide the request also by the policy of this time (RFC 3339)" flag:"decide the request also by the policy of this time"`
}

// Why answers with everything about the requests of an audit ID. It does not stream: WhyBytes bounds the answer, and what a request says of
// its twin is known when all are read.
func (a *Service) Why(ctx context.Context, q WhyRequest) (WhyAnswer, error) {
	out := WhyAnswer{Requests: []JudgedRequest{}}
	var last event.Hash128
	size := 0
	err := a.Store.VisitWhy(ctx, q.Cluster, q.AuditID, func(row verdict.Row) error {
		// Clients choose audit IDs: nothing else bounds how many events share one.
		if size += row.Size; size > WhyBytes && len(out.Requests) > 0 {
			out.Truncated = true
			return ErrEnough
		}
		out.add(&row, &last)
		return nil
	})
	if err != nil && !errors.Is(err, ErrEnough) {
		return out, err
	}
	if len(out.Requests) == 0 {
		out.Like, err = a.like(ctx, q.Cluster, q.AuditID)
		return out, err
	}
	if err := a.identities(ctx, &out); err != nil {
		return out, err
	}
	a.twins(&out)
	if !q.At.IsZero() {
		return out, a.decideAt(ctx, &out, q.At)
	}
	return out, nil
}

// identities adds how the credentials of requests were made, and what each authenticator says of the identity.
func (a *Service) identities(ctx context.Context, w *WhyAnswer) error {
	for i := range w.Requests {
		r := &w.Requests[i]
		st, err := a.Replay.State(ctx, r.Cluster, r.last.RequestReceivedTimestamp)
		if err != nil {
			return err
		}
		if r.Verdict != nil && r.Verdict.Credential != "" {
			r.Issue = issueOf(st, r.Verdict.Credential)
		}
		if a.Apiserver == nil {
			continue
		}
		cfg := a.Apiserver(r.Cluster, r.APIServer).At(r.last.RequestReceivedTimestamp)
		if cfg == nil || r.last.User.Username == "" {
			continue
		}
		var s authn.State
		if st != nil {
			s = st
		}
		r.Authenticators = a.engine().Authn().Answers(r.last, cfg, s)
	}
	return nil
}

// add adds a row; last is the request of the row before.
func (w *WhyAnswer) add(row *verdict.Row, last *event.Hash128) {
	n := len(w.Requests)
	if n == 0 || *last != row.Request || w.Requests[n-1].Cluster != row.Cluster {
		w.Requests = append(w.Requests,
			JudgedRequest{Cluster: row.Cluster, Request: row.Request.String(), APIServer: row.APIServer, Source: row.Source})
		*last = row.Request
		n++
	}
	req := &w.Requests[n-1]
	req.Stages = append(req.Stages, Stage{string(row.Event.Stage), row.Event.StageTimestamp, row.Event.Code()})
	req.Event, req.last = event.AppendJSON(nil, row.Event), row.Event
	if row.Verdict != nil {
		line := row.Verdict.Line(row.Event)
		req.Verdict, req.Chain = &line, row.Verdict.Chain
	}
}

// KubeAPIServer is what the kube-apiserver is called when its endpoint has no name for it.
const KubeAPIServer = "kube-apiserver"

// twins names, for a request that went through an aggregated API server, the server that recorded it too.
func (a *Service) twins(w *WhyAnswer) {
	if len(w.Requests) < 2 || a.Apiserver == nil {
		return
	}
	engine := a.engine()
	for i := range w.Requests {
		back := &w.Requests[i]
		if !engine.Aggregated(back.Cluster, back.APIServer) {
			continue
		}
		for j := range w.Requests {
			front := &w.Requests[j]
			if front.Cluster != back.Cluster || engine.Aggregated(front.Cluster, front.APIServer) ||
				!lineage.SameTarget(front.last.RequestURI, back.last.RequestURI) {
				continue
			}
			front.Twin, back.Twin = back.APIServer, front.APIServer
			back.Twin = cmp.Or(back.Twin, KubeAPIServer)
			break
		}
	}
}
