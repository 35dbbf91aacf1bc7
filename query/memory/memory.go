// Package memory answers what questions ask of single requests (query.Rows) from a log that was replayed, without a store.
//
//	replay/evaluate ─▶ Add, Policy ─▶ Store ─▶ rows, findings, groups, uses … ─▶ query.Service
//
// It keeps the rows while they take little room. Those of a longer log are not kept: each question replays the log and keeps only what its
// answer needs. It answers what package storage answers from the same rows; both widen ranges to whole minutes.
package memory

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// MostBytes is how much room the rows that are kept may take.
const MostBytes = 256 << 20

// rowBytes is what a row takes beside its event's bytes.
const rowBytes = 2 << 10

// Store is a log. It is filled from one goroutine, and asked from any number after that.
type Store struct {
	cluster queries.Cluster
	rules   *detect.Set
	again   Replay
	room    int // that is left for rows; below 0: they are not kept

	rows    []verdict.Row
	groups  map[string][]wornGroups // by subject, as they come
	objects map[object]newest

	malformed int64 // lines

	mu       sync.Mutex
	findings []verdict.StoredFinding
	detected *detect.Stats // nil: nothing was asked about findings
}

// Replay replays the log and visits every row.
type Replay func(ctx context.Context, visit Visit) error

// Visit takes a row; an error ends the visits.
type Visit = func(verdict.Row) error

type object struct{ resource, namespace, name string }

// newest is the content of an object's newest version.
type newest struct {
	version     uint64
	observation []byte
}

// New returns a store of a cluster's log in which rules look for findings. again replays a log whose rows exceed the room.
func New(cluster string, rules *detect.Set, room int, again Replay) *Store {
	return &Store{cluster: queries.Cluster{Name: cluster}, rules: rules, again: again, room: room,
		groups: map[string][]wornGroups{}, objects: map[object]newest{}}
}

// Add adds a row, in the order of the log.
func (s *Store) Add(row verdict.Row) error {
	at := row.Event.RequestReceivedTimestamp
	if minute := at.Truncate(time.Minute); !at.IsZero() {
		if s.cluster.First.IsZero() {
			s.cluster.First = minute
		}
		widen(&s.cluster.First, &s.cluster.Last, minute)
	}
	s.cluster.Events++
	if row.Verdict != nil {
		s.wear(row.Event.EffectiveUser(), at)
	}
	if s.room < 0 {
		return nil
	}
	if s.room -= row.Size + rowBytes; s.room < 0 {
		s.rows = nil
		return nil
	}
	s.rows = append(s.rows, row)
	return nil
}

// Policy adds what events and listings tell of the policy.
func (s *Store) Policy(obs []observe.Observation, _ bool) {
	for i := range obs {
		o := &obs[i]
		if kept.ResourceOf(o.Resource).RBACKind() == 0 || o.Deleted || len(o.Object) == 0 {
			continue
		}
		version, _ := strconv.ParseUint(o.ResourceVersion, 10, 64) // 0: it has none
		k := object{o.Resource, o.Namespace, o.Name}
		if have, ok := s.objects[k]; ok && have.version > version {
			continue
		}
		s.objects[object{strings.Clone(k.resource), strings.Clone(k.namespace), strings.Clone(k.name)}] = newest{version, o.Append(nil)}
	}
}

// each visits all rows in the order of the log.
func (s *Store) each(ctx context.Context, visit func(*verdict.Row) error) error {
	if s.room < 0 {
		return s.again(ctx, func(row verdict.Row) error { return visit(&row) })
	}
	for i := range s.rows {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := visit(&s.rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// judged visits the rows with a verdict whose requests were received in a range.
func (s *Store) judged(ctx context.Context, from, to time.Time, visit func(*verdict.Row) error) error {
	first, last := codec.Minute(from), uint32(1<<32-1)
	if from.IsZero() {
		first = 0
	}
	if !to.IsZero() {
		last = codec.Minute(to.Add(-time.Microsecond))
	}
	return s.each(ctx, func(row *verdict.Row) error {
		if minute := codec.Minute(row.Event.RequestReceivedTimestamp); row.Verdict == nil || minute < first || minute > last {
			return nil
		}
		return visit(row)
	})
}

// widen makes a stretch of time reach to a moment.
func widen(first, last *time.Time, at time.Time) {
	if at.Before(*first) {
		*first = at
	}
	if at.After(*last) {
		*last = at
	}
}

// micro returns a time as it is stored.
func micro(t time.Time) time.Time { return codec.FromMicro(t.UnixMicro()) }

// ordered returns the values of groups in order, limit at most.
func ordered[K comparable, V any](groups map[K]*V, compare func(a, b V) int, limit int) []V {
	out := make([]V, 0, len(groups))
	for _, g := range groups {
		out = append(out, *g)
	}
	slices.SortFunc(out, compare)
	return out[:min(limit, len(out))]
}

// Last returns the minute of the last request.
func (s *Store) Last() time.Time { return s.cluster.Last }

// Clusters returns the cluster of the log.
func (s *Store) Clusters(context.Context) ([]queries.Cluster, error) {
	return []queries.Cluster{s.cluster}, nil
}

// VisitWhy visits the rows of an audit ID, oldest first, one request after the other; at most 1,000.
func (s *Store) VisitWhy(ctx context.Context, _, auditID string, visit func(verdict.Row) error) error {
	var rows []verdict.Row
	err := s.each(ctx, func(row *verdict.Row) error {
		if row.Event.AuditID == auditID {
			rows = append(rows, *row)
		}
		return nil
	})
	slices.SortStableFunc(rows, func(a, b verdict.Row) int {
		return cmp.Or(
			cmp.Compare(a.Event.RequestReceivedTimestamp.UnixMicro(), b.Event.RequestReceivedTimestamp.UnixMicro()),
			strings.Compare(a.Request.String(), b.Request.String()),
			cmp.Compare(a.Event.StageTimestamp.UnixMicro(), b.Event.StageTimestamp.UnixMicro()),
			strings.Compare(string(a.Event.Stage), string(b.Event.Stage)))
	})
	for i := 0; err == nil && i < min(len(rows), 1000); i++ {
		err = visit(rows[i])
	}
	return err
}

// AuditIDs returns audit IDs that begin with a prefix, sorted, at most limit.
func (s *Store) AuditIDs(ctx context.Context, _, prefix string, limit int) ([]string, error) {
	found := map[string]bool{}
	err := s.each(ctx, func(row *verdict.Row) error {
		if id := row.Event.AuditID; strings.HasPrefix(id, prefix) {
			found[strings.Clone(id)] = true
		}
		return nil
	})
	ids := slices.Sorted(maps.Keys(found))
	return ids[:min(len(ids), limit)], err
}

// Writes returns the ends of the requests that can have written objects, newest first.
func (s *Store) Writes(ctx context.Context, _ string, of []queries.Written) ([]verdict.Row, error) {
	var rows []verdict.Row
	err := s.each(ctx, func(row *verdict.Row) error {
		if slices.ContainsFunc(of, func(w queries.Written) bool { return w.By(row.Event) }) {
			rows = append(rows, *row)
		}
		return nil
	})
	slices.SortStableFunc(rows, func(a, b verdict.Row) int {
		return cmp.Or(
			cmp.Compare(b.Event.RequestReceivedTimestamp.UnixMicro(), a.Event.RequestReceivedTimestamp.UnixMicro()),
			strings.Compare(b.Request.String(), a.Request.String()))
	})
	return rows, err
}

// NewestObject returns the newest content of one object of the policy, nil for none.
func (s *Store) NewestObject(_ context.Context, _, resource, namespace, name string) ([]byte, error) {
	return bytes.Clone(s.objects[object{resource, namespace, name}].observation), nil
}

// NewestPolicy visits the newest content of every object of the given resources.
func (s *Store) NewestPolicy(_ context.Context, _ string, resources []string, visit func(observation []byte) error) error {
	for k, newest := range s.objects {
		if !slices.Contains(resources, k.resource) {
			continue
		}
		if err := visit(bytes.Clone(newest.observation)); err != nil {
			return err
		}
	}
	return nil
}
