// Package query answers questions about what was done on clusters, what made it possible and
// what is too much: one question a file, each a method of Service. It knows nothing of HTTP, of
// flags and of where answers are shown; package cmd/retrial serves it.
//
//	parameters ─▶ Question.Answer ─┬─▶ Store   (rows, rollups, findings)
//	                               └─▶ Replay  (what is known of a cluster, and when)
package query

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/completeness"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// Service answers questions. Everything but the store and the replay may be left out.
type Service struct {
	Store    Store
	Replay   Replay
	Rejudges Rejudger // nil: nobody judges
	// Apiserver returns a cluster's apiserver configuration over time; nil for none.
	Apiserver func(cluster, server string) *config.History
	Scraped   func(cluster string) []string // the apiservers of a cluster whose metrics are read
	Spooled   func(context.Context) error   // waits until nothing is spooled; nil: nothing is here
	Now       func() time.Time              // nil: no moment is known
	Version   string                        // of the replica that answers
	Offline   bool                          // answers from a log: questions about the policy alone
}

// Store is what questions ask the store.
type Store interface {
	accessQueries
	subjectQueries
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

// Replay is what questions ask the runner.
type Replay interface {
	Lag() verdict.Backlog
	WaitDrained(ctx context.Context) error
	// State is what is known of a cluster's objects, false when that is nothing. It is only read.
	State(cluster string) (*state.State, bool)
	// Clusters are those anything is known of, or was asked about while judging, sorted.
	Clusters() []string
}

// Cost is what a question may take of the store.
type Cost uint8

const (
	CostQuery   Cost = iota // one of the slots there are, and the usual time
	CostNothing             // it asks the store nothing
	CostHistory             // it reads a whole history: many times as long, one at a time
)

// Question is one question.
type Question struct {
	Path       string   // below /api/v1/
	Parameters []string // parameters; anything else is an error of the caller
	Cost       Cost
	Answer     func(context.Context, url.Values) (any, error)
}

// Questions are all questions; each group stands with its answers.
func (a *Service) Questions() []Question {
	if a.Offline {
		return slices.Concat([]Question{{"clusters", nil, CostQuery, a.clusters}}, a.accessRoutes(), a.escalationRoutes(), a.changeRoutes())
	}
	return slices.Concat([]Question{
		{"clusters", nil, CostQuery, a.clusters},
		{"overview", []string{"cluster", "from", "to"}, CostQuery, a.overview},
		{"events", []string{"cluster", "from", "to", "user", "verb", "resource", "decision", "outcome", "class", "before", "limit"}, CostQuery, a.events},
		{"why", []string{"auditID", "cluster", "at"}, CostQuery, a.why},
		{"classes", nil, CostNothing, classes},
		{"status", nil, CostNothing, a.status},
		{"drained", nil, CostNothing, a.drained},
		{"query-log", []string{"before", "limit"}, CostQuery, a.queryLog},
		{"rejudge", []string{"cluster", "id"}, CostQuery, a.rejudgeJobs},
	}, a.accessRoutes(), a.suggestRoutes(), a.findingRoutes(), a.escalationRoutes(), a.changeRoutes(), a.driftRoutes(), a.lineageRoutes(), a.explainRoutes(), a.completenessRoutes(), a.questionRoutes())
}

// Bounds of answers.
const (
	usualEvents = 50       // in one answer, unless asked
	mostEvents  = 500      // in one answer
	WhyBytes    = 16 << 20 // of events in one answer
)

// time is the moment it is.
func (a *Service) time() time.Time {
	if a.Now == nil {
		return time.Time{}
	}
	return a.Now()
}

// BadRequest is an error of the caller.
type BadRequest struct{ error }

// Bad returns an error of the caller.
func Bad(format string, args ...any) error { return BadRequest{fmt.Errorf(format, args...)} }

// NotFound is the answer to a question about what is not there.
type NotFound struct{ error }

func none(format string, args ...any) error { return NotFound{fmt.Errorf(format, args...)} }

// window reads cluster, from and to.
func window(q url.Values) (cluster string, from, to time.Time, err error) {
	if cluster = q.Get("cluster"); cluster == "" {
		return cluster, from, to, Bad("cluster is missing")
	}
	if from, err = Instant(q, "from"); err != nil {
		return cluster, from, to, err
	}
	if to, err = Instant(q, "to"); err != nil {
		return cluster, from, to, err
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		err = Bad("from %s is not before to %s", from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano))
	}
	return cluster, from, to, err
}

// Instant reads a time; those the store's columns do not hold are refused.
func Instant(q url.Values, name string) (time.Time, error) {
	s := q.Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, Bad("%s: %q is no RFC 3339 time, such as 2026-11-20T11:36:00Z", name, s)
	}
	if t.Unix() < 0 || t.Unix() > 1<<32-1 {
		return t, Bad("%s: %q is not between 1970 and 2106", name, s)
	}
	return t.UTC(), nil
}

// oneOf reads a parameter of a closed set; empty is none.
func oneOf(q url.Values, name string, set ...string) (string, error) {
	s := q.Get(name)
	if s != "" && !slices.Contains(set, s) {
		return "", Bad("%s: %q is none of %s", name, s, strings.Join(set, ", "))
	}
	return s, nil
}

// Outcomes of verdicts, as they are stored and printed.
var Outcomes = []string{"match", "drift", "ambiguous", "indeterminate", "not_judged"}

// Cluster is a cluster there are events of.
type Cluster struct {
	Name   string    `json:"name"`
	Events int64     `json:"events"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

// ClustersAnswer are the clusters anything is known of.
type ClustersAnswer struct {
	Clusters []Cluster `json:"clusters"`
	// Quiet are clusters whose objects are known and of which there is no event.
	Quiet []string `json:"quiet,omitempty"`
}

func (a *Service) clusters(ctx context.Context, _ url.Values) (any, error) {
	list, err := a.Store.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	out := ClustersAnswer{Clusters: []Cluster{}}
	seen := make(map[string]bool, len(list))
	for _, c := range list {
		// The store knows whole minutes; the last one has not ended where its events have.
		out.Clusters = append(out.Clusters, Cluster{c.Name, c.Events, c.First, c.Last.Add(time.Minute)})
		seen[c.Name] = true
	}
	for _, name := range a.Replay.Clusters() {
		if !seen[name] {
			out.Quiet = append(out.Quiet, name)
		}
	}
	return out, nil
}

// OutcomeMeaning says what an outcome of a verdict means.
type OutcomeMeaning struct {
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
		Outcomes []OutcomeMeaning `json:"outcomes"`
		Classes  []class          `json:"classes"`
	}{Outcomes: []OutcomeMeaning{
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

func (a *Service) status(context.Context, url.Values) (any, error) {
	lag, lags := a.Replay.Lag(), []replay.Lag{}
	if learnt, ok := a.Replay.(interface{ Lags() []replay.Lag }); ok {
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
	}{a.Version, lag.Events, lag.Policy, lag.DeadLetters, lag.Corrections, lags}, nil
}

// settled waits until what was accepted is stored: it may be in the spool, too.
func (a *Service) settled(ctx context.Context) error {
	if a.Spooled != nil {
		if err := a.Spooled(ctx); err != nil {
			return err
		}
	}
	return a.Replay.WaitDrained(ctx)
}

func (a *Service) drained(ctx context.Context, _ url.Values) (any, error) {
	return struct{}{}, a.settled(ctx)
}
