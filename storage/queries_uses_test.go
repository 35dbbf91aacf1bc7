package storage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// useKey is what uses are counted by, without whether grants were found: that is told of all of an access together.
func useKey(u *verdict.Use) (access, key string) {
	groups := slices.Compact(slices.Sorted(slices.Values(u.Groups)))
	a := &u.Attributes
	if !u.Told {
		return "untold", fmt.Sprint(u.Check, u.Recorded, u.Replayed, u.Outcome, u.Class)
	}
	access = fmt.Sprintf("%s %q %q %s %s %s %s %s %q %q %v", u.Check, u.Subject, groups, a.Verb, a.APIGroup, a.Resource, a.Subresource,
		a.Namespace, a.Name, a.Path, a.ResourceRequest)
	return access, fmt.Sprint(access, u.Recorded, u.Replayed, u.Outcome, u.Class, u.Covered)
}

// usesOf sums up uses by key, and the keys of accesses that grants were found for.
type usesOf struct {
	requests map[string]int64
	first    map[string]time.Time
	last     map[string]time.Time
	granted  map[string]bool
}

func newUses() *usesOf {
	return &usesOf{map[string]int64{}, map[string]time.Time{}, map[string]time.Time{}, map[string]bool{}}
}

func (s *usesOf) add(u *verdict.Use) {
	access, key := useKey(u)
	s.requests[key] += u.Requests
	if first, ok := s.first[key]; !ok || u.First.Before(first) {
		s.first[key] = u.First
	}
	if u.Last.After(s.last[key]) {
		s.last[key] = u.Last
	}
	if u.Granted && u.Told {
		s.granted[access] = true
	}
}

// TestUses: what rollups count is what the requests used, after corrections too; what they do not tell is read from events.
func TestUses(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	in = append(in, hostile(t)[0])
	acted := false
	for i := range in {
		in[i].Cluster, in[i].Position.Partition = "c", 0
		if v := in[i].Verdict; !acted && v != nil && v.Outcome == verdict.OutcomeMatch && v.Recorded == verdict.DecisionForbid {
			e, w := *in[i].Event, *v // refused to another whom somebody acted as
			e.ImpersonatedUser = &event.User{Username: "somebody else", Groups: []string{"devs"}}
			w.Impersonation = &verdict.ImpersonationCheck{Replayed: verdict.DecisionAllow, Recorded: verdict.DecisionAllow, Mode: "legacy"}
			in[i].Event, in[i].Verdict, acted = &e, &w, true
		}
	}
	insert(t, s, "a", in)
	insert(t, s, "other", rows(t, "another", 1)[:50])
	insert(t, s, "fix", revised(in, 7))

	want, untold := newUses(), map[string]int64{}
	for i := range in {
		if in[i].Verdict == nil {
			continue
		}
		for u := range codec.UsesOf(&in[i]) {
			u.Granted = u.Granted && (u.Check != "" || len(in[i].Verdict.Grants) > 0)
			want.add(&u)
		}
		if in[i].Verdict.Untold() {
			untold[identity(in[i].Event, in[i].Verdict)]++
		}
	}
	got := newUses()
	visit := func(to *usesOf) func(verdict.Use) error { return func(u verdict.Use) error { to.add(&u); return nil } }
	if err := s.Uses(ctx, "c", nil, visit(got)); err != nil {
		t.Fatal(err)
	}
	for key, n := range want.requests {
		if got.requests[key] != n || got.first[key].After(want.first[key]) || got.last[key].Before(want.last[key]) {
			t.Errorf("%s: %d from %s to %s, want %d from %s to %s", key, got.requests[key], got.first[key], got.last[key], n,
				want.first[key], want.last[key])
		}
	}
	if len(got.requests) != len(want.requests) || len(want.requests) < 300 {
		t.Errorf("%d kinds of uses, want %d", len(got.requests), len(want.requests))
	}
	for access := range want.granted {
		if !got.granted[access] {
			t.Errorf("%s: grants were found, and are not told", access)
		}
	}
	if len(got.granted) != len(want.granted) {
		t.Errorf("%d accesses with grants, want %d", len(got.granted), len(want.granted))
	}

	t.Run("of a subject", func(t *testing.T) {
		const name = "system:kube-controller-manager"
		one := newUses()
		if err := s.Uses(ctx, "c", []string{name}, func(u verdict.Use) error {
			if u.Subject != name {
				t.Errorf("a use of %q", u.Subject)
			}
			return visit(one)(u)
		}); err != nil {
			t.Fatal(err)
		}
		all := newUses()
		if err := s.Uses(ctx, "c", nil, func(u verdict.Use) error {
			if u.Subject == name {
				all.add(&u)
			}
			return nil
		}); err != nil || fmt.Sprint(one) != fmt.Sprint(all) || len(one.requests) == 0 {
			t.Errorf("%d kinds alone, %d among all, %v", len(one.requests), len(all.requests), err)
		}
	})
	t.Run("untold", func(t *testing.T) {
		if err := s.Untold(ctx, "c", nil, false, func(a codec.Alike) error {
			if a.Verdict.Recorded != verdict.DecisionForbid {
				t.Errorf("%s is a write", identity(a.Event, a.Verdict))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.Untold(ctx, "c", nil, true, func(a codec.Alike) error {
			if !a.Verdict.Untold() {
				t.Errorf("%s needed nothing that is not counted", identity(a.Event, a.Verdict))
			}
			untold[identity(a.Event, a.Verdict)] -= a.Requests
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(in, func(r verdict.Row) bool {
			return r.Verdict != nil && r.Verdict.Recorded == verdict.DecisionForbid && r.Verdict.Untold()
		}); i < 0 {
			t.Error("nobody acted as another who was refused")
		} else {
			name, found := in[i].Event.User.Username, int64(0)
			err := s.Untold(ctx, "c", []string{name}, false, func(a codec.Alike) error {
				if a.Event.User.Username != name {
					t.Errorf("%s asked, not %s", a.Event.User.Username, name)
				}
				found += a.Requests
				return nil
			})
			if err != nil || found == 0 {
				t.Errorf("%d requests of %s as another who was refused, %v", found, name, err)
			}
		}
		if len(untold) < 10 {
			t.Errorf("%d kinds, want the recording's", len(untold))
		}
		for key, n := range untold {
			if n != 0 {
				t.Errorf("%s: %d too few", key, n)
			}
		}
	})
	t.Run("counted", func(t *testing.T) {
		have, since, err := s.Counted(ctx, "c")
		events, err2 := s.Recording(ctx, "c", time.Time{}, time.Time{})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if fmt.Sprint(have) != fmt.Sprint(events) || !since.Equal(events.First.Truncate(time.Minute)) {
			t.Errorf("%+v since %s, want %+v", have, since, events)
		}
		if r, _, err := s.Counted(ctx, "nobody's"); err != nil || r.Requests != 0 || !r.First.IsZero() {
			t.Errorf("%+v, %v of a cluster that is not there", r, err)
		}
	})
	t.Run("an error of the visitor", func(t *testing.T) {
		stop := errors.New("enough")
		if err := s.Uses(ctx, "c", nil, func(verdict.Use) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	})
}

// TestFoldedUses: what a cap folded is told to be.
func TestFoldedUses(t *testing.T) {
	for _, name := range []string{codec.Other, "web-*", "*"} {
		if !verdict.Folded(name) {
			t.Errorf("%q is not folded", name)
		}
	}
	for _, name := range []string{"", "web", "*-web"} {
		if verdict.Folded(name) {
			t.Errorf("%q is folded", name)
		}
	}
	scan := codec.NewUseScan(map[uint64][]string{7: {"devs"}})
	for _, c := range []struct {
		set  uint64
		path string
		told bool
	}{{7, "", true}, {8, "", false}, {codec.OtherGroups, "", false}, {codec.OtherSubject, "", false}, {7, codec.Other, false},
		{7, "/healthz", true}} {
		to := scan.Targets()
		*to[1].(*uint64), *to[8].(*string), *to[12].(*string) = c.set, c.path, "match"
		if u := scan.Use(); u.Told != c.told || u.Outcome != verdict.OutcomeMatch || u.Attributes.ResourceRequest != (c.path == "") {
			t.Errorf("%+v: %+v", c, u)
		}
	}
}
