package storage_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// actedRow makes the row of a request that mallory made as somebody, with the check that lets him.
func actedRow(t testing.TB, n int, at time.Time, user string, groups ...string) verdict.Row {
	t.Helper()
	r := requestRow(t, n, at, "mallory", "allow", "get", "/api/v1/namespaces/n/pods/x")
	r.Event.User.Groups = []string{"system:authenticated"}
	r.Event.ImpersonatedUser = &event.User{Username: user, Groups: groups}
	r.Verdict.Implied = []verdict.Implied{
		{Check: verdict.CheckImpersonation, Replayed: verdict.DecisionAllow, Recorded: verdict.DecisionAllow,
			Attributes: verdict.Attributes{Verb: "impersonate", Resource: "users", ResourceRequest: true}},
		{Check: verdict.CheckWebsocket, Replayed: verdict.DecisionAllow,
			Attributes: verdict.Attributes{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "n", ResourceRequest: true}},
	}
	return r
}

// TestGroupsOfADay: whoever acts as others makes up subjects and their groups. Beyond those of a
// subject's day sets of groups are not told apart, beyond those of a cluster's nor are subjects; a
// new process, recovery and corrections change nothing of that, and questions say what is not told.
func TestGroupsOfADay(t *testing.T) {
	dir := t.TempDir()
	s, stop := storagetest.Start(t, dir)
	defer func() { stop() }()
	limit := func(s *storage.Store) { s.FoldGroupsBeyond(12, 5, 30) }
	limit(s)
	ctx, at := context.Background(), time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	var in []verdict.Row
	add := func(r verdict.Row) { in = append(in, r) }
	bob := requestRow(t, 0, at, "bob", "allow", "get", "/api/v1/namespaces/n/pods/x")
	bob.Event.User.Groups = []string{"staff", "system:authenticated"}
	add(bob)
	for i := range 40 { // one subject, ever other groups
		add(actedRow(t, len(in), at.Add(time.Duration(len(in))*time.Second), "victim", "system:authenticated", fmt.Sprint("made-up-", i)))
	}
	for i := range 40 { // ever other subjects
		add(actedRow(t, len(in), at.Add(time.Duration(len(in))*time.Second), fmt.Sprint("nobody-", i), "system:authenticated"))
	}
	late := requestRow(t, len(in), at.Add(time.Duration(len(in))*time.Second), "victim", "allow", "get", "/api/v1/namespaces/n/pods/x")
	late.Event.User.Groups = []string{"victims"}
	add(late)
	carol := requestRow(t, len(in), at.Add(time.Duration(len(in))*time.Second), "carol", "allow", "get", "/api/v1/namespaces/n/pods/x")
	carol.Event.User.Groups = []string{"staff"}
	add(carol)
	insert(t, s, "a", in[:50])
	insert(t, s, "b", in[50:])
	check := func(when string) {
		t.Helper()
		// Of victim 5 sets somebody made up, one that it came with, and the others.
		if n := s.Strings(t, "SELECT DISTINCT toString(group_set) FROM retrial.accesses WHERE subject = 'victim'"); len(n) != 7 {
			t.Fatalf("%s: %d sets of groups of a subject: %q", when, len(n), n)
		}
		if n := s.Strings(t, "SELECT DISTINCT toString(subject) FROM retrial.accesses WHERE subject != '(other)'"); len(n) != 12+1 {
			t.Fatalf("%s: subjects %q, want 12 and one that came itself", when, n)
		}
		if n := s.Strings(t, "SELECT DISTINCT concat(toString(subject), ' ', toString(sum(count))) FROM retrial.activity "+
			"WHERE subject = '(other)' AND 1 GROUP BY subject HAVING 1"); !slices.Equal(n, []string{"(other) 31"}) {
			t.Fatalf("%s: activity of others %q", when, n)
		}
		if n := s.Strings(t, "SELECT DISTINCT arrayStringConcat(groups, ' ') FROM retrial.group_sets "+
			"WHERE group_set >= 18446744073709551614"); !slices.Equal(n, []string{codec.Other}) {
			t.Fatalf("%s: sets that are not told apart are %q", when, n)
		}
		v := consistent(t, s)
		if err := s.Recover(ctx, 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		if again := consistent(t, s); again != v {
			t.Fatalf("%s: recovery changed the rollups\n was %+v\n is  %+v", when, v, again)
		}
		u, err := s.SubjectUsage(ctx, "c", "victim", time.Time{}, time.Time{}, 100)
		if err != nil || u.Requests != 41 || u.OtherGroups != 35 || len(u.Groups) != 6 || u.Untold != 31 {
			t.Fatalf("%s: %d requests, %d with other groups, %d sets, %d of nobody told: %v", when, u.Requests, u.OtherGroups,
				len(u.Groups), u.Untold, err)
		}
		for _, set := range u.Groups {
			if slices.Contains(set, codec.Other) {
				t.Fatalf("%s: %q is told as a group", when, set)
			}
		}
	}
	check("inserted")
	groups := func(s *storage.Store, subject string, until time.Time, told bool, want ...string) {
		t.Helper()
		if got, last, ok, err := s.LastGroups(ctx, "c", subject, until); err != nil || ok != told || !slices.Equal(got, want) ||
			(len(want) > 0) == last.IsZero() {
			t.Fatalf("groups of %s are %q at %s, told %v: %v; want %q, %v", subject, got, last, ok, err, want, told)
		}
	}
	groups(s, "victim", time.Time{}, true, "victims")
	groups(s, "nobody-39", time.Time{}, true, "system:authenticated") // not told apart: its event tells
	groups(s, "nobody-40", time.Time{}, true)
	groups(s, "carol", time.Time{}, true, "staff")

	stop()
	s, stop = storagetest.Start(t, dir)
	limit(s)
	check("after a restart")
	insert(t, s, "c",
		[]verdict.Row{actedRow(t, 1000, at.Add(time.Hour), "victim", "more"), actedRow(t, 1001, at.Add(time.Hour), "nobody-more")})
	groups(s, "victim", time.Time{}, true, "more")
	s.Exec(t, "ALTER TABLE retrial.events DELETE WHERE subject IN ('victim', 'nobody-more') SETTINGS mutations_sync = 2")
	if got, _, told, err := s.LastGroups(ctx, "c", "victim", time.Time{}); err != nil || told || len(got) > 0 {
		t.Fatalf("groups %q of events that are gone, told %v: %v", got, told, err)
	}
}

// TestGroupsAreCorrected: what a row is counted for it is counted for when its verdict is corrected, though
// there is room by then.
func TestGroupsAreCorrected(t *testing.T) {
	s := storagetest.Open(t)
	s.FoldGroupsBeyond(10, 3, 30)
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	var in []verdict.Row
	for i := range 20 {
		in = append(in, actedRow(t, 2*i, at, "victim", fmt.Sprint("made-up-", i)), actedRow(t, 2*i+1, at, fmt.Sprint("nobody-", i), "g"))
	}
	insert(t, s, "a", in)
	sets := "SELECT DISTINCT concat(toString(subject), ' ', toString(group_set)) FROM retrial.accesses WHERE 1"
	was, usage := s.Strings(t, sets), consistent(t, s)
	var pairs []verdict.Row
	for _, r := range everything(t, s, in) {
		old, v := r, *r.Verdict
		old.Sign = -1
		v.Outcome, v.Class = verdict.OutcomeDrift, "unexplained"
		r.Verdict, r.Revision = &v, r.Revision+1
		pairs = append(pairs, old, r)
	}
	s.FoldGroupsBeyond(1000, 1000, 1000)
	insert(t, s, "fix", pairs)
	slices.Sort(was)
	is := s.Strings(t, sets)
	slices.Sort(is)
	if !slices.Equal(was, is) {
		t.Errorf("corrected:\n was %q\n is  %q", was, is)
	}
	v := consistent(t, s)
	if v.Accesses != usage.Accesses || v.GroupSets != usage.GroupSets {
		t.Errorf("%d accesses and %d sets, were %d and %d", v.Accesses, v.GroupSets, usage.Accesses, usage.GroupSets)
	}
	if err := s.Recover(context.Background(), 0, 1, nil); err != nil {
		t.Fatal(err)
	}
	if again := consistent(t, s); again != v {
		t.Fatalf("recovery changed the rollups\n was %+v\n is  %+v", v, again)
	}
}
