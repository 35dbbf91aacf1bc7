package storage_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage/storagetest"
)

// TestLastGroups compares with the recording: a subject's last request carries the groups.
func TestLastGroups(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	type seen struct {
		groups []string
		at     time.Time
		sets   int
	}
	want := map[string]*seen{}
	for _, r := range in {
		if r.Verdict == nil {
			continue
		}
		who := r.Event.EffectiveUser()
		groups := slices.Compact(slices.Sorted(slices.Values(who.Groups)))
		w := want[who.Username]
		if w == nil {
			w = &seen{}
			want[who.Username] = w
		}
		if !slices.Equal(w.groups, groups) {
			w.sets++
		}
		if at := r.Event.RequestReceivedTimestamp; !at.Before(w.at) {
			w.groups, w.at = groups, at
		}
	}
	var first string
	for name, w := range want {
		if w.sets == 1 {
			first = name
		}
		got, at, _, err := s.LastGroups(ctx, "c", name, time.Time{})
		if err != nil || !slices.Equal(got, w.groups) && w.sets == 1 || !at.Equal(w.at.Truncate(time.Microsecond)) {
			t.Errorf("%s: %q at %s, %v; want %q at %s", name, got, at, err, w.groups, w.at)
		}
	}
	if first == "" {
		t.Fatal("every subject changes its groups")
	}
	for _, c := range []struct {
		name, cluster, subject string
		until                  time.Time
	}{
		{"before everything", "c", first, time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"another cluster", "d", first, time.Time{}},
		{"nobody", "c", "x' OR 1 --\t\\", time.Time{}},
	} {
		if got, at, _, err := s.LastGroups(ctx, c.cluster, c.subject, c.until); err != nil || len(got) != 0 || !at.IsZero() {
			t.Errorf("%s: %q at %s, %v", c.name, got, at, err)
		}
	}
}
