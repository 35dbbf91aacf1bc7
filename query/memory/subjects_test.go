package memory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// TestLastGroups: the groups of a subject are those of its last request up to a moment, in
// whatever order requests come.
func TestLastGroups(t *testing.T) {
	s := New("c", nil, MostBytes, nil)
	at := func(minute int) time.Time { return time.Date(2026, 5, 4, 10, minute, 0, 0, time.UTC) }
	request := func(minute int, groups ...string) {
		e := &event.Event{AuditID: "a", Verb: "list", RequestReceivedTimestamp: at(minute)}
		e.User.Username, e.User.Groups = "alice", groups
		if err := s.Add(verdict.Row{Event: e, Verdict: &verdict.Verdict{}}); err != nil {
			t.Fatal(err)
		}
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
		groups, seen, _, err := s.LastGroups(context.Background(), "", "alice", tc.until)
		if got := strings.Join(groups, " "); err != nil || got != tc.want || !seen.Equal(tc.seen) {
			t.Errorf("until %s: %q, seen %s, %v; want %q, %s", tc.until, got, seen, err, tc.want, tc.seen)
		}
	}
	clusters, _ := s.Clusters(context.Background())
	if want := []queries.Cluster{{Name: "c", Events: 6, First: at(10), Last: at(30)}}; !slices.Equal(clusters, want) {
		t.Errorf("%+v, want %+v", clusters, want)
	}
}

// TestLongLog: of a log whose rows take too much room none is kept, and it is read again.
func TestLongLog(t *testing.T) {
	rows := make([]verdict.Row, 3)
	for i := range rows {
		rows[i] = verdict.Row{
			Size: 100, Event: &event.Event{AuditID: "a"}, Request: event.Hash128{Lo: uint64(i)},
			Verdict: &verdict.Verdict{Outcome: verdict.OutcomeMatch},
		}
	}
	broken := errors.New("the log is gone")
	for _, tc := range []struct {
		name          string
		room, replays int
	}{{"short", 3 * (100 + rowBytes), 0}, {"long", 3*(100+rowBytes) - 1, 2}} {
		t.Run(tc.name, func(t *testing.T) {
			replays := 0
			var fails error
			s := New("c", nil, tc.room, func(_ context.Context, visit Visit) error {
				replays++
				for _, row := range rows {
					if err := visit(row); err != nil {
						return err
					}
				}
				return fails
			})
			for _, row := range rows {
				if err := s.Add(row); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			if err := s.VisitWhy(context.Background(), "c", "a", func(verdict.Row) error { n++; return nil }); err != nil || n != 3 {
				t.Errorf("%d rows, %v", n, err)
			}
			requests, judged, err := s.Judged(context.Background(), "c", time.Time{}, time.Time{})
			if err != nil || requests != 3 || judged != 3 {
				t.Errorf("%d requests, %d judged, %v", requests, judged, err)
			}
			if replays != tc.replays || tc.replays > 0 && s.rows != nil {
				t.Errorf("%d replays, %d rows kept", replays, len(s.rows))
			}
			if fails = broken; tc.replays > 0 {
				if _, _, err := s.Judged(context.Background(), "c", time.Time{}, time.Time{}); !errors.Is(err, broken) {
					t.Errorf("error %v", err)
				}
			}
		})
	}
}
