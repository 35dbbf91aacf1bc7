package server

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
)

// TestLogStoreGroups: the groups of a subject are those of its last request up to a moment, in
// whatever order requests come.
func TestLogStoreGroups(t *testing.T) {
	l := &logStore{worn: map[string][]wornGroups{}}
	at := func(minute int) time.Time { return time.Date(2026, 5, 4, 10, minute, 0, 0, time.UTC) }
	request := func(minute int, groups ...string) {
		e := &event.Event{AuditID: "a", Verb: "list", RequestReceivedTimestamp: at(minute)}
		e.User.Username, e.User.Groups = "alice", groups
		l.observe(e)
	}
	request(10, "a", "b")
	request(12, "b", "a")
	request(20, "c")
	request(11, "a", "b")
	request(30, "d")
	request(25, "d")
	for _, tc := range []struct {
		until time.Time
		want  string
		seen  time.Time
	}{
		{time.Time{}, "d", at(30)}, {at(40), "d", at(30)}, {at(29), "d", at(25)}, {at(24), "c", at(20)},
		{at(19), "a b", at(12)}, {at(10), "a b", at(10)}, {at(9), "", time.Time{}},
	} {
		groups, seen, err := l.LastGroups(context.Background(), "", "alice", tc.until)
		if got := strings.Join(groups, " "); err != nil || got != tc.want || !seen.Equal(tc.seen) {
			t.Errorf("until %s: %q, seen %s, %v; want %q, %s", tc.until, got, seen, err, tc.want, tc.seen)
		}
	}
	clusters, _ := l.Clusters(context.Background())
	if want := []storage.Cluster{{Events: 6, First: at(10), Last: at(30)}}; !slices.Equal(clusters, want) {
		t.Errorf("%+v, want %+v", clusters, want)
	}
}
