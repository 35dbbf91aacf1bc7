package server

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// logStore answers what questions about a policy ask a store, from a log that was replayed:
// who made requests, with which groups, and who wrote roles and bindings.
//
//	--events, --state ─▶ replay/evaluate ─┬─▶ state ──┐
//	                                      └─▶ logStore ┴─▶ the API's questions about a policy
type logStore struct {
	doctor.Store // nil: of anything else the API is not asked, see policyOnly
	cluster      storage.Cluster
	worn         map[string][]wornGroups // by subject, as they come
	writes       []verdict.Row           // of roles and bindings, as they come
}

// wornGroups are groups a subject's requests carried for a while.
type wornGroups struct {
	groups      []string // sorted
	first, last time.Time
}

// observe takes a judged request; nothing of it is kept that is not cloned.
func (l *logStore) observe(e *event.Event) {
	at := e.RequestReceivedTimestamp
	if minute := at.Truncate(time.Minute); !at.IsZero() {
		if l.cluster.First.IsZero() || minute.Before(l.cluster.First) {
			l.cluster.First = minute
		}
		if minute.After(l.cluster.Last) {
			l.cluster.Last = minute
		}
	}
	l.cluster.Events++
	l.wear(e.EffectiveUser(), at)
	if ref := e.ObjectRef; ref != nil && ref.APIGroup == "rbac.authorization.k8s.io" && writes(e.Verb) {
		kept := &event.Event{
			AuditID: strings.Clone(e.AuditID), Stage: e.Stage, Verb: strings.Clone(e.Verb), StageTimestamp: e.StageTimestamp, RequestReceivedTimestamp: at,
			ObjectRef: &event.ObjectRef{Resource: strings.Clone(ref.Resource), APIGroup: strings.Clone(ref.APIGroup), Namespace: strings.Clone(ref.Namespace), Name: strings.Clone(ref.Name)},
		}
		kept.User.Username = strings.Clone(e.User.Username)
		l.writes = append(l.writes, verdict.Row{Cluster: l.cluster.Name, Event: kept})
	}
}

// writes tells whether a verb changes objects.
func writes(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
}

func (l *logStore) wear(u *event.User, at time.Time) {
	runs := l.worn[u.Username]
	if n := len(runs); n > 0 && sameGroups(runs[n-1].groups, u.Groups) {
		last := &runs[n-1]
		if at.Before(last.first) {
			last.first = at
		}
		if at.After(last.last) {
			last.last = at
		}
		return
	}
	groups := make([]string, len(u.Groups))
	for i, g := range u.Groups {
		groups[i] = strings.Clone(g)
	}
	slices.Sort(groups)
	l.worn[strings.Clone(u.Username)] = append(runs, wornGroups{groups, at, at})
}

// sameGroups compares sorted groups with some in any order.
func sameGroups(sorted, groups []string) bool {
	if slices.Equal(sorted, groups) {
		return true
	}
	if len(sorted) != len(groups) {
		return false
	}
	groups = slices.Clone(groups)
	slices.Sort(groups)
	return slices.Equal(sorted, groups)
}

// Clusters is the cluster of the log.
func (l *logStore) Clusters(context.Context) ([]storage.Cluster, error) {
	return []storage.Cluster{l.cluster}, nil
}

// LastGroups returns the groups a subject's requests carried the last time up to a moment, zero
// for the end of the log. Of a while that goes on beyond the moment its begin counts.
func (l *logStore) LastGroups(_ context.Context, _, subject string, until time.Time) (groups []string, seen time.Time, err error) {
	for _, w := range l.worn[subject] {
		at := w.last
		if !until.IsZero() && at.After(until) {
			at = w.first
		}
		if at.After(seen) && (until.IsZero() || !at.After(until)) {
			groups, seen = w.groups, at
		}
	}
	return slices.Clone(groups), seen, nil
}

// NearSubjects returns subjects that contain a name, are contained in it, or are spelt much like it.
func (l *logStore) NearSubjects(_ context.Context, _, name string, limit int) ([]string, error) {
	var near, all []string
	for known := range l.worn {
		all = append(all, known)
		if known != "" && (strings.Contains(known, name) || strings.Contains(name, known)) {
			near = append(near, known)
		}
	}
	slices.Sort(near)
	slices.Sort(all)
	for _, known := range query.Nearest(name, all, limit) {
		if !slices.Contains(near, known) {
			near = append(near, known)
		}
	}
	return near[:min(limit, len(near))], nil
}

// Events returns the writes of roles and bindings of a time, newest first.
func (l *logStore) Events(_ context.Context, f storage.EventFilter) ([]verdict.Row, error) {
	var out []verdict.Row
	for _, row := range l.writes {
		if at := row.Event.RequestReceivedTimestamp; !at.Before(f.From) && at.Before(f.To) {
			out = append(out, row)
		}
	}
	slices.SortStableFunc(out, func(a, b verdict.Row) int {
		return cmp.Compare(b.Event.RequestReceivedTimestamp.UnixNano(), a.Event.RequestReceivedTimestamp.UnixNano())
	})
	return out[:min(f.Limit, len(out))], nil
}

// Client replays the log and returns a client of the API that answers from it.
func (l Log) Client(ctx context.Context) (*apiclient.Client, error) {
	st := state.New(l.name())
	store := &logStore{cluster: storage.Cluster{Name: l.name()}, worn: map[string][]wornGroups{}}
	l.Apiservers = nil // what is asked is about the policy
	_, err := l.Replay(ctx, replay.DefaultLag, evaluate.Options{State: st, Sink: func(e *event.Event, _ *verdict.Verdict) error {
		store.observe(e)
		return nil
	}})
	if err != nil {
		return nil, err
	}
	handler := apiHandler(store, storedStates{l.name(): st}, nil, zap.NewNop(), api.LongestQuery, policyOnly)
	return apiclient.InProcess(handler), nil
}
