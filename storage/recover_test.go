package storage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// consistent fails unless every rollup's sum equals its events'.
func consistent(t testing.TB, s *storage.Store) queries.Totals {
	t.Helper()
	v := totals(t, s)
	if v.Volume != v.Events || v.Usage != v.Judged || v.Activity != v.Judged || v.ImpliedUsage != v.Implied || v.Grants != v.GrantRows ||
		v.Rows != v.Events {
		t.Fatalf("rollups differ from events: %+v", v)
	}
	return v
}

// views feed the rollups.
var views = []string{"accesses_mv", "group_sets_mv", "access_usage_mv", "grant_usage_mv", "volume_mv", "activity_mv",
	"accesses_implied_mv", "access_usage_implied_mv", "grant_usage_implied_mv", "group_sets_implied_mv"}

// TestInterruptedInsert simulates an insert whose block reached events but not (all)
// rollups: the views are not there while it runs. So are rollups made where others write too. Whatever is missing, Recover makes the
// store equal to one that was never interrupted, and running it again changes nothing.
func TestInterruptedInsert(t *testing.T) {
	ctx := context.Background()
	in := rows(t, "c", 0)
	half := len(in) / 2
	var want queries.Totals
	t.Run("never interrupted", func(t *testing.T) {
		s := storagetest.Open(t)
		insert(t, s, "a", in[:half])
		insert(t, s, "b", in[half:])
		if want = consistent(t, s); want.Implied == 0 || want.Grants == 0 {
			t.Fatalf("nothing to lose: %+v", want)
		}
	})
	for _, missing := range [][]string{{"access_usage_mv"}, {"grant_usage_mv", "volume_mv"}, {"accesses_mv", "group_sets_mv"},
		{"accesses_implied_mv", "group_sets_implied_mv"}, {"access_usage_implied_mv", "grant_usage_implied_mv"}, views} {
		for _, resend := range []bool{false, true} {
			t.Run(fmt.Sprintf("without %v, resent %v", missing, resend), func(t *testing.T) {
				s := storagetest.OpenShared(t)
				insert(t, s, "a", in[:half])
				for _, v := range missing {
					s.Exec(t, "DETACH TABLE retrial."+v)
				}
				insert(t, s, "b", in[half:])
				for _, v := range missing {
					s.Exec(t, "ATTACH TABLE retrial."+v)
				}
				if resend {
					insert(t, s, "b", in[half:])
				}
				for range 2 {
					if err := s.Recover(ctx, 0, 1, days(in)); err != nil {
						t.Fatal(err)
					}
					if got := consistent(t, s); got != want {
						t.Fatalf("did not converge\n want %+v\n is   %+v", want, got)
					}
				}
			})
		}
	}
	t.Run("rollups ahead of events", func(t *testing.T) {
		s := storagetest.Open(t)
		insert(t, s, "a", in)
		s.Exec(t, "TRUNCATE TABLE retrial.events")
		if err := s.Recover(ctx, 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		if got := consistent(t, s); got.Events != 0 || got.Usage != 0 {
			t.Fatalf("rollups keep what events lost: %+v", got)
		}
		// The log of tokens still says the block is there.
		insert(t, s, "a", in)
		if err := s.Recover(ctx, 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		if got := consistent(t, s); got != want {
			t.Fatalf("the block did not come back\n want %+v\n is   %+v", want, got)
		}
	})
	for _, lost := range []int{0, half, len(in) - 1} {
		t.Run(fmt.Sprint("without row ", lost), func(t *testing.T) {
			s := storagetest.Open(t)
			insert(t, s, "a", in)
			s.Exec(t,
				fmt.Sprintf("ALTER TABLE retrial.events DELETE WHERE koffset = %d SETTINGS mutations_sync = 1", in[lost].Position.Offset))
			if got := totals(t, s).Events; got != int64(len(in))-1 {
				t.Fatalf("%d of %d rows are left", got, len(in))
			}
			insert(t, s, "a", in)
			if err := s.Recover(ctx, 0, 1, nil); err != nil {
				t.Fatal(err)
			}
			if got := consistent(t, s); got != want {
				t.Fatalf("it did not come back\n want %+v\n is   %+v", want, got)
			}
		})
	}
	t.Run("another partition's rows are left alone where another process writes them", func(t *testing.T) {
		s := storagetest.OpenShared(t)
		insert(t, s, "a", rows(t, "c", 5))
		s.Exec(t, "TRUNCATE TABLE retrial.access_usage")
		if err := s.Recover(ctx, 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		if got := totals(t, s); got.Usage != 0 {
			t.Fatalf("recovery of partition 0 wrote usage of partition 5: %+v", got)
		}
	})
}

// TestLostPart takes the part of a block away while the store is down, as a crash does
// between the log of tokens and the data: the store still takes the block for known. Sent
// again under its token it must come back.
func TestLostPart(t *testing.T) {
	dir := t.TempDir()
	in := rows(t, "c", 0)
	s, closeStore := storagetest.Start(t, dir)
	insert(t, s, "a", in[:100])
	insert(t, s, "b", in[100:])
	want := consistent(t, s)
	paths := s.Strings(t, "SELECT path FROM system.parts WHERE active AND database = 'retrial' AND table = 'events' AND rows = "+
		fmt.Sprint(len(in)-100))
	closeStore()
	if len(paths) != 1 {
		t.Fatalf("%d parts hold the block: %q", len(paths), paths)
	}
	if err := os.RemoveAll(paths[0]); err != nil {
		t.Fatal(err)
	}
	s = storagetest.OpenAt(t, dir)
	if got := totals(t, s).Events; got != 100 {
		t.Fatalf("%d rows left, want 100", got)
	}
	insert(t, s, "b", in[100:])
	if err := s.Recover(context.Background(), 0, 1, days(in)); err != nil {
		t.Fatal(err)
	}
	if got := consistent(t, s); got != want {
		t.Fatalf("the block did not come back\n want %+v\n is   %+v", want, got)
	}
}

// TestForgottenToken inserts more blocks than the store remembers tokens of: Known still
// finds the first block's rows, which is why they are not sent again.
func TestForgottenToken(t *testing.T) {
	dir := t.TempDir()
	s, closeStore := storagetest.Start(t, dir)
	in := rows(t, "c", 0)
	s.Exec(t, "ALTER TABLE retrial.events MODIFY SETTING non_replicated_deduplication_window = 3")
	insert(t, s, "first", in)
	one := rows(t, "d", 1)[:1]
	for i := range 6 {
		one[0].Position.Offset = int64(i)
		one[0].Event.StageTimestamp = one[0].Event.StageTimestamp.Add(time.Microsecond)
		insert(t, s, fmt.Sprint("t", i), one)
	}
	before := consistent(t, s)
	closeStore() // what this process sent it looks up
	s = storagetest.OpenAt(t, dir)
	insert(t, s, "first", in)
	if totals(t, s) == before {
		t.Fatal("the store still remembered the token: the test shows nothing")
	}
	known, err := s.Known(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(known) != len(in) {
		t.Fatalf("knows %d of %d rows", len(known), len(in))
	}
}

// TestCorrection takes every second verdict back and gives another: lists and sums show
// the new one alone, at any state of merging, and the result equals a store that had the
// new verdicts from the start.
func TestCorrection(t *testing.T) {
	ctx := context.Background()
	in := rows(t, "c", 0)
	var want queries.Totals
	t.Run("from scratch", func(t *testing.T) {
		s := storagetest.Open(t)
		final := make([]verdict.Row, len(in))
		for i, r := range in {
			final[i] = r
			if corrected(i, r) {
				final[i] = correct(r)
			}
		}
		insert(t, s, "a", final)
		want = consistent(t, s)
	})
	s := storagetest.Open(t)
	insert(t, s, "a", in)
	byKey := map[event.Hash128]int{}
	for i, r := range in {
		byKey[r.EventKey] = i
	}
	var block []verdict.Row
	err := s.Affected(ctx, verdict.AffectedFilter{Cluster: "c", Partitions: []int32{0}}, func(r verdict.Row) error {
		i := byKey[r.EventKey]
		if !corrected(i, in[i]) {
			return nil
		}
		old := r
		old.Sign = -1
		block = append(block, old, correct(r))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(block) == 0 {
		t.Fatal("nothing to correct")
	}
	check := func(when string) {
		t.Helper()
		got := consistent(t, s)
		want.Accesses, want.GroupSets = got.Accesses, got.GroupSets // taken back ones may stay
		if got != want {
			t.Fatalf("%s\n want %+v\n is   %+v", when, want, got)
		}
	}
	if err := s.Recover(ctx, 0, 1, days(in)); err != nil { // puts the next inserts in doubt
		t.Fatal(err)
	}
	insert(t, s, "fix", block)
	check("after the correction")
	s.Exec(t, "OPTIMIZE TABLE retrial.events FINAL") // no −1 is left to be found
	insert(t, s, "fix", block)
	check("after the correction was sent again")
	s.Exec(t, "OPTIMIZE TABLE retrial.events FINAL")
	check("after merging")
	if err := s.Recover(ctx, 0, 1, days(in)); err != nil {
		t.Fatal(err)
	}
	check("after recovery")
	for key, r := range everything(t, s, in) {
		i := byKey[key]
		wantClass := ""
		if in[i].Verdict != nil {
			wantClass = in[i].Verdict.Class
		}
		if corrected(i, in[i]) {
			wantClass = "recorded-allow/replayed-forbid"
		}
		if r.Verdict != nil && r.Verdict.Class != wantClass {
			t.Fatalf("row %d has class %q, want %q", i, r.Verdict.Class, wantClass)
		}
	}
}

func corrected(i int, r verdict.Row) bool { return i%2 == 0 && r.Verdict != nil }

func correct(r verdict.Row) verdict.Row {
	v := *r.Verdict
	v.Outcome, v.Class, v.Replayed, v.Grants, v.Revision = verdict.OutcomeDrift, "recorded-allow/replayed-forbid", verdict.DecisionForbid,
		nil, 2
	r.Verdict, r.Sign, r.Revision = &v, 1, 2
	return r
}

func TestAffected(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := append(rows(t, "c", 0), rows(t, "c2", 1)...)
	insert(t, s, "a", in[:len(in)/2])
	insert(t, s, "b", in[len(in)/2:])
	hostileUser := "it's\t\\\n"
	h := hostileRow(t, hostileUser)
	insert(t, s, "h", []verdict.Row{h})
	reviews := []verdict.Row{reviewRow(t, 0, "carol", "team:catalog"), reviewRow(t, 1, hostileUser, "team:shop")}
	insert(t, s, "r", reviews)
	// u and g ask the requestor and whom it impersonates.
	anyUser := func(r verdict.Row, ask func(*event.User) bool) bool {
		return ask(&r.Event.User) || r.Event.ImpersonatedUser != nil && ask(r.Event.ImpersonatedUser)
	}
	u := func(r verdict.Row, name string) bool {
		return anyUser(r, func(u *event.User) bool { return u.Username == name })
	}
	g := func(r verdict.Row, group string) bool {
		return anyUser(r, func(u *event.User) bool { return slices.Contains(u.Groups, group) })
	}
	mid := in[len(in)/4].Event.RequestReceivedTimestamp
	for _, tc := range []struct {
		name   string
		filter verdict.AffectedFilter
		want   func(verdict.Row) bool
	}{
		{"partition and cluster", verdict.AffectedFilter{Cluster: "c", Partitions: []int32{0}},
			func(r verdict.Row) bool { return r.Cluster == "c" && r.Position.Partition == 0 }},
		{"no rows in another's partition", verdict.AffectedFilter{Cluster: "c", Partitions: []int32{1}},
			func(verdict.Row) bool { return false }},
		{"from", verdict.AffectedFilter{Cluster: "c", Partitions: []int32{0}, From: mid}, func(r verdict.Row) bool {
			return r.Cluster == "c" && r.Position.Partition == 0 && !r.Event.RequestReceivedTimestamp.Before(mid)
		}},
		{"to", verdict.AffectedFilter{Cluster: "c", Partitions: []int32{0}, To: mid}, func(r verdict.Row) bool {
			return r.Cluster == "c" && r.Position.Partition == 0 && !r.Event.RequestReceivedTimestamp.After(mid)
		}},
		{"ended", verdict.AffectedFilter{Cluster: "c", Partitions: []int32{0}, Ended: mid}, func(r verdict.Row) bool {
			return r.Cluster == "c" && r.Position.Partition == 0 &&
				(!r.Event.StageTimestamp.Before(mid) || !r.Event.RequestReceivedTimestamp.Before(mid))
		}},
		{"a group or a user", verdict.AffectedFilter{Cluster: "c", Partitions: []int32{0}, Groups: []string{"system:nodes"},
			Users: []string{"system:kube-scheduler"}}, func(r verdict.Row) bool {
			return r.Cluster == "c" && r.Position.Partition == 0 && (u(r, "system:kube-scheduler") || g(r, "system:nodes"))
		}},
		{"who impersonates, and who is impersonated", verdict.AffectedFilter{Cluster: "c", Partitions: []int32{0},
			Users: []string{"kubernetes-admin", "alice"}}, func(r verdict.Row) bool {
			return r.Cluster == "c" && r.Position.Partition == 0 && (u(r, "kubernetes-admin") || u(r, "alice"))
		}},
		{"namespaces", verdict.AffectedFilter{Cluster: "c2", Partitions: []int32{0, 1}, Namespaces: []string{"kube-system"}},
			func(r verdict.Row) bool {
				return r.Cluster == "c2" && (r.Verdict.Attributes.Namespace == "kube-system" || r.Event.ImpersonatedUser != nil)
			}},
		{"who was asked about in a review", verdict.AffectedFilter{Cluster: "r", Partitions: []int32{8}, Users: []string{hostileUser},
			Namespaces: []string{"far"}}, func(r verdict.Row) bool {
			return r.Cluster == "r" && r.Verdict.Review.User == hostileUser
		}},
		{"a group that was asked about in a review", verdict.AffectedFilter{Cluster: "r", Partitions: []int32{8},
			Groups: []string{"team:catalog"}, Namespaces: []string{"far"}}, func(r verdict.Row) bool {
			return r.Cluster == "r" && r.Verdict.Review.User == "carol"
		}},
		{"whoever was asked about", verdict.AffectedFilter{Cluster: "r", Partitions: []int32{8}, Namespaces: []string{"far"}},
			func(r verdict.Row) bool { return r.Cluster == "r" }},
		{"nobody who was asked about", verdict.AffectedFilter{Cluster: "r", Partitions: []int32{8}, Users: []string{"team:catalog"},
			Groups: []string{"carol"}}, func(verdict.Row) bool { return false }},
		{"a hostile name", verdict.AffectedFilter{Cluster: "h", Partitions: []int32{7}, Users: []string{"x", hostileUser}},
			func(r verdict.Row) bool { return r.Cluster == "h" }},
		{"a hostile group", verdict.AffectedFilter{Cluster: "h", Partitions: []int32{7}, Groups: []string{hostileUser}},
			func(r verdict.Row) bool { return r.Cluster == "h" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := map[event.Hash128]bool{}
			for _, r := range append(append(in[:len(in):len(in)], h), reviews...) {
				if r.Verdict != nil && tc.want(r) {
					want[r.EventKey] = true
				}
			}
			n := 0
			err := s.Affected(ctx, tc.filter, func(r verdict.Row) error {
				if !want[r.EventKey] || r.Verdict == nil {
					return fmt.Errorf("unexpected row %+v", r.Event)
				}
				n++
				return nil
			})
			if err != nil || n != len(want) {
				t.Fatalf("%d rows, %v; want %d", n, err, len(want))
			}
		})
	}
	t.Run("the visitor's error ends the visit", func(t *testing.T) {
		stop := errors.New("stop")
		if err := s.Affected(ctx, verdict.AffectedFilter{Cluster: "c", Partitions: []int32{0}},
			func(verdict.Row) error { return stop }); !errors.Is(err, stop) {
			t.Fatalf("got %v", err)
		}
	})
}

// reviewRow is a request of somebody in no namespace that asks about a user.
func reviewRow(t testing.TB, i int, user string, groups ...string) verdict.Row {
	t.Helper()
	r, err := storagetest.Row("r", lines(t)[i], event.Position{Epoch: 1, Partition: 8, Offset: int64(i)}, received)
	if err != nil {
		t.Fatal(err)
	}
	r.Event.User.Username, r.Event.User.Groups, r.Event.ImpersonatedUser = "asks", nil, nil
	r.Request = event.RequestKey("r", r.Event)
	r.EventKey = event.EventKey(r.Request, r.Event)
	storagetest.Verdict(&r)
	r.Verdict.Review = &verdict.ReviewCheck{Kind: "SubjectAccessReview", User: user, Groups: groups}
	return r
}

func hostileRow(t testing.TB, user string) verdict.Row {
	t.Helper()
	r, err := storagetest.Row("h", lines(t)[0], event.Position{Epoch: 1, Partition: 7}, received)
	if err != nil {
		t.Fatal(err)
	}
	r.Event.User.Username, r.Event.User.Groups, r.Event.ImpersonatedUser = user, []string{user}, nil
	r.Request = event.RequestKey("h", r.Event)
	r.EventKey = event.EventKey(r.Request, r.Event)
	storagetest.Verdict(&r)
	return r
}

func insert(t testing.TB, s *storage.Store, token string, rows []verdict.Row) {
	t.Helper()
	if err := s.Insert(context.Background(), token, rows); err != nil {
		t.Fatal(err)
	}
}

// days returns the days of the rows' requests.
func days(rows []verdict.Row) []time.Time {
	seen := map[time.Time]bool{}
	var out []time.Time
	for _, r := range rows {
		d := r.Event.RequestReceivedTimestamp.Truncate(24 * time.Hour)
		if !seen[d] {
			seen[d] = true
			out = append(out, d)
		}
	}
	return out
}

// TestAffectedAfterCorrections: a row that was replaced is not selected by what it said, however
// often that happened, merged or not.
func TestAffectedAfterCorrections(t *testing.T) {
	s := storagetest.Open(t)
	row := rows(t, "c", 3)[0]
	as := func(r verdict.Row, o verdict.Outcome, namespace string, sign int8) verdict.Row {
		v := *r.Verdict
		v.Outcome, v.Class, v.Attributes.Namespace = o, "", namespace
		r.Verdict, r.Sign = &v, sign
		return r
	}
	outcomes := []verdict.Outcome{verdict.OutcomeMatch, verdict.OutcomeDrift, verdict.OutcomeMatch, verdict.OutcomeIndeterminate}
	row = as(row, outcomes[0], "n0", 1)
	insert(t, s, "0", []verdict.Row{row})
	for i, o := range outcomes[1:] {
		old := row
		old.Sign = -1
		row = as(row, o, fmt.Sprint("n", i+1), 1)
		row.Revision++
		insert(t, s, fmt.Sprint(i+1), []verdict.Row{old, row})
		for _, other := range []verdict.Outcome{verdict.OutcomeMatch, verdict.OutcomeDrift, verdict.OutcomeIndeterminate} {
			for n := range outcomes {
				want := 0
				if other == o && n == i+1 {
					want = 1
				}
				got := 0
				if err := s.Affected(t.Context(), verdict.AffectedFilter{Cluster: "c", Partitions: []int32{row.Position.Partition},
					Only: verdict.Selection{Outcomes: []string{other.String()}, Namespaces: []string{fmt.Sprint("n", n)}}},
					func(r verdict.Row) error {
						if got++; r.Revision != row.Revision {
							t.Errorf("revision %d is visited, %d stands", r.Revision, row.Revision)
						}
						return nil
					}); err != nil {
					t.Fatal(err)
				}
				if got != want {
					t.Errorf("after %d corrections: %d rows are %s in n%d, want %d", i+1, got, other, n, want)
				}
			}
		}
	}
}
