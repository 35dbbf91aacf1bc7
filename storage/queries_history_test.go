package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// identity is what requests that are put together have to agree in.
func identity(e *event.Event, v *verdict.Verdict) string {
	who := e.EffectiveUser()
	s := fmt.Sprint(e.User.Username, e.User.Groups, who.Username, who.Groups, v.Outcome, v.Class, v.Recorded, v.Replayed, v.Authorizer)
	if v.Outcome == verdict.OutcomeMatch || v.Outcome == verdict.OutcomeAmbiguous {
		a := v.Attributes
		s += fmt.Sprint(a.Verb, a.APIGroup, a.Resource, a.Subresource, a.Namespace, a.Name, a.Path, a.ResourceRequest,
			fmt.Sprintf("%+v", v.Implied))
	}
	return s
}

// TestHistory: put together or not, requests are as many, in each group and as a whole.
func TestHistory(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	in = append(in, hostile(t)[0])
	for i := range in {
		in[i].Cluster, in[i].Position.Partition = "c", 0
	}
	insert(t, s, "a", in)
	insert(t, s, "other", rows(t, "another", 1)[:50])
	insert(t, s, "fix", revised(in, 7))

	type sum struct {
		requests    int64
		first, last time.Time
	}
	want := map[string]sum{}
	var all, writes int64
	var begin, end time.Time
	bodies := map[string]int{}
	add := func(to map[string]sum, e *event.Event, v *verdict.Verdict, n int64, first, last time.Time) {
		k := identity(e, v)
		w := to[k]
		w.requests += n
		if w.first.IsZero() || first.Before(w.first) {
			w.first = first
		}
		if last.After(w.last) {
			w.last = last
		}
		to[k] = w
	}
	isWrite := func(v *verdict.Verdict) bool {
		a := v.Attributes
		return a.ResourceRequest && a.APIGroup == "certificates.k8s.io" &&
			(a.Verb == "create" || a.Verb == "update" || a.Verb == "patch") && v.Recorded == verdict.DecisionAllow &&
			v.Outcome == verdict.OutcomeMatch
	}
	for _, r := range in {
		if r.Verdict == nil {
			continue
		}
		at := r.Event.RequestReceivedTimestamp
		add(want, r.Event, r.Verdict, 1, at, at)
		all++
		if begin.IsZero() || at.Before(begin) {
			begin = at
		}
		if at.After(end) {
			end = at
		}
		if isWrite(r.Verdict) {
			writes++
			bodies[string(r.Event.RequestObject)+"\n"+string(r.Event.ResponseObject)]++
		}
	}
	visited := 0
	collectAll := func(from, to time.Time, subjects ...string) map[string]sum {
		t.Helper()
		out := map[string]sum{}
		visited = 0
		if err := s.History(ctx, "c", from, to, subjects, func(a codec.Alike) error {
			visited++
			add(out, a.Event, a.Verdict, a.Requests, a.First, a.Last)
			if isWrite(a.Verdict) {
				writes -= a.Requests
				bodies[string(a.Event.RequestObject)+"\n"+string(a.Event.ResponseObject)] -= int(a.Requests)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := collectAll(time.Time{}, time.Time{})
	t.Logf("%d requests in %d groups", all, visited)
	for k, w := range want {
		// Rows that were taken back may widen the times.
		if g := got[k]; g.requests != w.requests || g.first.After(w.first) || g.last.Before(w.last) {
			t.Errorf("%s: %+v, want %+v", k, g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d kinds of requests, want %d", len(got), len(want))
	}
	for b, n := range bodies {
		if n != 0 {
			t.Errorf("%d policy writes differ in %.200s", n, b)
		}
	}
	if writes != 0 {
		t.Errorf("%d policy writes are missing or too many", writes)
	}

	t.Run("a range", func(t *testing.T) {
		middle := begin.Add(end.Sub(begin) / 2).Truncate(time.Minute)
		n := int64(0)
		for _, part := range []map[string]sum{collectAll(time.Time{}, middle), collectAll(middle, time.Time{})} {
			if len(part) == 0 {
				t.Error("half of the range is empty")
			}
			for _, w := range part {
				n += w.requests
			}
		}
		if n != all {
			t.Errorf("%d requests before and after %s, want %d", n, middle, all)
		}
	})
	t.Run("one subject", func(t *testing.T) {
		const name = "system:kube-controller-manager"
		got := collectAll(time.Time{}, time.Time{}, name)
		n := int64(0)
		for k, w := range want {
			if g := got[k]; strings.HasPrefix(k, name) && g.requests != w.requests {
				t.Errorf("%s: %+v, want %+v", k, g, w)
			}
			n++
		}
		if len(got) == 0 || int64(len(got)) >= n {
			t.Errorf("%d kinds of requests of %d", len(got), n)
		}
	})
	t.Run("recording", func(t *testing.T) {
		r, err := s.Recording(ctx, "c", time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, c := range r.Classes {
			sum += c.Requests
		}
		if r.Requests != all || sum != all || !r.First.Equal(begin) || !r.Last.Equal(end) || r.Dropped != 0 || r.DeadLetters != 0 {
			t.Errorf("%+v, want %d requests from %s to %s", r, all, begin, end)
		}
		if r, err := s.Recording(ctx, "nobody's", time.Time{}, time.Time{}); err != nil || r.Requests != 0 || !r.First.IsZero() {
			t.Errorf("%+v, %v of a cluster that is not there", r, err)
		}
	})
	t.Run("an error ends it", func(t *testing.T) {
		stop := errors.New("stop")
		if err := s.History(ctx, "c", time.Time{}, time.Time{}, nil, func(codec.Alike) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%v", err)
		}
	})
}

// TestNewestPolicy: of each object the newest content, also when it has been deleted since.
func TestNewestPolicy(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	var in []verdict.PolicyVersion
	add := func(name, rv, object string, deleted bool) {
		o := observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoles, Name: name, UID: "u", ResourceVersion: rv,
			Deleted: deleted, Object: []byte(object)}
		in = append(in, verdict.PolicyVersion{Cluster: "c", Resource: o.Resource, Name: name, UID: "u", ResourceVersion: rv,
			Deleted: deleted, Observation: o.Append(nil),
			Position: event.Position{Offset: int64(len(in))}})
	}
	add("a", "9", `{"n":9}`, false)
	add("a", "10", `{"n":10}`, false)
	add("a", "11", ``, true)
	add("b", "3", `{"n":3}`, false)
	add("b", "4", ``, false) // content not logged
	if err := s.SavePolicy(ctx, in); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := s.NewestPolicy(ctx, "c", []string{kept.ClusterRoles}, func(text []byte) error {
		o, err := observe.Decode(text)
		got[o.Name] = string(o.Object)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got["a"] != `{"n":10}` || got["b"] != `{"n":3}` {
		t.Errorf("got %v", got)
	}
	for name, want := range got {
		text, err := s.NewestObject(ctx, "c", kept.ClusterRoles, "", name)
		if o, bad := observe.Decode(text); err != nil || bad != nil || string(o.Object) != want {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	if text, err := s.NewestObject(ctx, "c", kept.ClusterRoles, "", "absent"); text != nil || err != nil {
		t.Errorf("of what is not there: %s, %v", text, err)
	}
}
