package state_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// randomObservations makes a history of a few names from every shape of observation,
// consistent or not: contradictions must not make the order matter either.
func randomObservations(t *testing.T, rnd *rand.Rand) []observe.Observation {
	day := clock(t, "12:00:00")
	var obs []observe.Observation
	bounds := func(o *observe.Observation) {
		o.NotBefore = day.Add(time.Duration(rnd.IntN(60)) * time.Second)
		o.NotAfter = o.NotBefore.Add(time.Duration(rnd.IntN(8)) * time.Second)
	}
	named := func() (string, *fields) {
		res := []string{kept.RoleBindings, kept.Roles, kept.ServiceAccounts}[rnd.IntN(3)]
		f := newFields(t, res, "a/"+[]string{"x", "y"}[rnd.IntN(2)], nil)
		rv := 1 + rnd.IntN(40)
		// A uid lives through a stretch of resourceVersions; the content belongs to the version.
		f.opt["rv"], f.opt["uid"] = strconv.Itoa(rv), fmt.Sprintf("u%d", rv/10)
		f.opt["user"], f.opt["verbs"] = fmt.Sprintf("user%d", rv%5), []string{"get", "list"}[rv%2]
		if rv%7 != 0 {
			f.opt["created"] = day.Add(time.Duration(rv/10*15) * time.Second).Format(time.RFC3339)
		}
		return res, f
	}
	for range 4 + rnd.IntN(25) {
		res, f := named()
		o := observe.Observation{Source: observe.SourceAudit, Resource: res, Namespace: f.namespace, Name: f.name}
		bounds(&o)
		switch rnd.IntN(11) {
		case 0, 1, 2:
			o.UID, o.ResourceVersion, o.Object = f.opt["uid"], f.opt["rv"], f.object(true)
			if rnd.IntN(3) == 0 {
				o.Source = observe.SourceWatch
			}
		case 3:
			o.UID, o.Deleted = f.opt["uid"], true
		case 4:
			if o.Unknown = true; rnd.IntN(2) == 0 {
				o.Object, o.Created = f.object(false), rnd.IntN(2) == 0
			}
		case 5:
			o.Object, o.Created = f.object(false), rnd.IntN(2) == 0
		case 6:
			o.Name, o.AllOf = "", true
			o.Deleted, o.Unknown = rnd.IntN(2) == 0, true
			if rnd.IntN(3) == 0 {
				o.Namespace = ""
			}
		case 7:
			snap := observe.Snapshot{Began: o.NotBefore, Ended: o.NotAfter, Kinds: []string{res}}
			for _, name := range []string{"x", "y"} {
				if rnd.IntN(2) == 0 {
					continue
				}
				_, g := named()
				snap.Objects = append(snap.Objects, observe.Observation{
					Resource: res, Namespace: "a", Name: name, UID: g.opt["uid"], ResourceVersion: g.opt["rv"],
					Object: (&fields{resource: res, namespace: "a", name: name, opt: g.opt}).object(true),
				})
			}
			obs = append(obs, snap.Observations()...)
			continue
		case 8:
			o.Deleted = true
			if o.Complete = rnd.IntN(2) == 0; !o.Complete {
				o.Unknown = true
			}
		case 9:
			o.Unchanged, o.Object = true, []byte(`{"metadata":{}}`)
			if rnd.IntN(3) == 0 {
				o.Object = []byte(`{"metadata":{"deletionTimestamp":"2026-01-02T12:00:30Z","finalizers":["x"]}}`)
			}
			if rnd.IntN(2) == 0 {
				o.UID, o.ResourceVersion = f.opt["uid"], f.opt["rv"]
			}
		case 10:
			if o.Update = true; rnd.IntN(2) == 0 {
				o.Unchanged = true
			} else {
				o.Object = f.object(false)
			}
		}
		obs = append(obs, o)
	}
	return obs
}

// Any set of observations, even one that contradicts itself, has one answer.
func TestAnyOrderOfAnything(t *testing.T) {
	var times []time.Time
	for i := range 70 {
		times = append(times, clock(t, "12:00:00").Add(time.Duration(i)*time.Second-300*time.Millisecond))
	}
	answers := func(s *state.State) []string {
		out := ask(s, times)
		for _, res := range []string{kept.RoleBindings, kept.Roles, kept.ServiceAccounts} {
			for _, name := range []string{"x", "y"} {
				for i, v := range s.History(res, "a", name) {
					out = append(out, fmt.Sprintf("%s %s %d %+v", res, name, i, v))
					if v.NotBefore.After(v.NotAfter) {
						t.Fatalf("%+v ends before it begins", v)
					}
				}
			}
		}
		slices.Sort(out)
		return out
	}
	for seed := range uint64(80) {
		rnd := rand.New(rand.NewPCG(seed, 99))
		obs := randomObservations(t, rnd)
		once := state.New("c")
		once.Apply(obs...)
		want := answers(once)
		for range 4 {
			rnd.Shuffle(len(obs), func(i, j int) { obs[i], obs[j] = obs[j], obs[i] })
			s := state.New("c")
			for i, o := range obs {
				s.Apply(o)
				s.RBAC(times[(i*7)%len(times)])
			}
			if d := diff(want, answers(s)); d != "" {
				t.Fatalf("seed %d: answers differ:\n%s\nobservations:\n%s", seed, cut(d), dump(obs))
			}
			// A stored and reread history is the same history.
			again := state.New("c")
			for _, o := range obs {
				d, err := observe.Decode(o.Append(nil))
				if err != nil {
					t.Fatal(err)
				}
				again.Apply(d)
			}
			if d := diff(want, answers(again)); d != "" {
				t.Fatalf("seed %d: answers differ after encoding:\n%s", seed, cut(d))
			}
		}
	}
}

// Pruning changes no answer about its moment or a later one.
func TestPrune(t *testing.T) {
	dropped := 0
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		s := state.New("c")
		for _, o := range randomObservations(t, rnd) {
			s.Apply(o)
		}
		horizon := clock(t, "12:00:00").Add(time.Duration(rnd.IntN(70)) * time.Second)
		var times []time.Time
		for i := range 40 {
			times = append(times, horizon.Add(time.Duration(i)*2*time.Second+150*time.Millisecond))
		}
		want := ask(s, times)
		revision, size := s.Revision(), s.Stats().Versions
		n := s.Prune(horizon)
		if got := s.Stats().Versions; got != size-n {
			t.Fatalf("seed %d: %d versions, pruned %d, left %d", seed, size, n, got)
		}
		dropped += n
		if s.Revision() != revision {
			t.Fatalf("seed %d: pruning changed the revision", seed)
		}
		if d := diff(want, ask(s, times)); d != "" {
			t.Fatalf("seed %d: answers after %s differ:\n%s", seed, horizon, cut(d))
		}
		s.Prune(horizon)
		if d := diff(want, ask(s, times)); d != "" {
			t.Fatalf("seed %d: answers after %s differ after pruning again:\n%s", seed, horizon, cut(d))
		}
	}
	if dropped == 0 {
		t.Fatal("nothing was ever pruned")
	}
}
