package memory

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/query"
)

// wornGroups are groups a subject's requests carried for a while.
type wornGroups struct {
	groups      []string // sorted
	first, last time.Time
}

// wear notes the groups of a request. Nothing of it is kept that is not cloned.
func (s *Store) wear(u *event.User, at time.Time) {
	runs := s.groups[u.Username]
	if n := len(runs); n > 0 && sameGroups(runs[n-1].groups, u.Groups) {
		widen(&runs[n-1].first, &runs[n-1].last, at)
		return
	}
	groups := make([]string, len(u.Groups))
	for i, g := range u.Groups {
		groups[i] = strings.Clone(g)
	}
	slices.Sort(groups)
	s.groups[strings.Clone(u.Username)] = append(runs, wornGroups{groups, at, at})
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

// LastGroups returns the groups of a subject's last request up to a moment, zero for the end of the log; they are always told. For groups
// worn from before the moment to after it, their start counts.
func (s *Store) LastGroups(_ context.Context, _, subject string, until time.Time) (groups []string, seen time.Time, told bool, err error) {
	for _, w := range s.groups[subject] {
		at := w.last
		if !until.IsZero() && at.After(until) {
			at = w.first
		}
		if at.After(seen) && (until.IsZero() || !at.After(until)) {
			groups, seen = w.groups, at
		}
	}
	return slices.Clone(groups), seen, true, nil
}

// NearSubjects returns subjects that are called much like a name.
func (s *Store) NearSubjects(_ context.Context, _, name string, limit int) ([]string, error) {
	return query.NearSubjects(name, slices.Collect(maps.Keys(s.groups)), limit), nil
}
