package state_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// randomPods makes a history of two pod names from every shape of observation, consistent or
// not.
func randomPods(t *testing.T, rnd *rand.Rand) []observe.Observation {
	day := clock(t, "12:00:00")
	var obs []observe.Observation
	for range 3 + rnd.IntN(18) {
		o := observe.Observation{Source: observe.SourceAudit, Resource: kept.Pods, Namespace: "a", Name: []string{"x", "y"}[rnd.IntN(2)]}
		o.NotBefore = day.Add(time.Duration(rnd.IntN(60)) * time.Second)
		o.NotAfter = o.NotBefore.Add(time.Duration(rnd.IntN(8)) * time.Second)
		rv := 1 + rnd.IntN(40)
		uid := fmt.Sprintf("%s%d", o.Name, rv/10)
		body := func() []byte {
			more, meta := "", ""
			if rnd.IntN(2) == 0 {
				more = fmt.Sprintf(`,"nodeName":"n%d"`, rv/20)
			}
			if rnd.IntN(3) == 0 {
				more += `,"ephemeralContainers":[{"name":"e","envFrom":[{"secretRef":{"name":"s2"}}]}]`
			}
			if rnd.IntN(4) > 0 {
				meta = `,"creationTimestamp":"` + day.Add(time.Duration(rv/10*15)*time.Second).Format(time.RFC3339) + `"`
			}
			if rnd.IntN(6) == 0 {
				meta += `,"finalizers":["x"]`
			}
			if rnd.IntN(4) == 0 {
				meta += `,"deletionGracePeriodSeconds":30,"deletionTimestamp":"` +
					day.Add(time.Duration(30+rnd.IntN(40))*time.Second).Format(time.RFC3339) + `"`
			}
			return fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"a"%s},"spec":{`+
				`"serviceAccountName":"sa%d","terminationGracePeriodSeconds":5,"containers":[{"name":"c","envFrom":[{"secretRef":{`+
				`"name":"s"}}]}]%s}}`,
				o.Name, meta, rv/30, more)
		}
		switch rnd.IntN(17) {
		case 0, 1, 2:
			o.UID, o.ResourceVersion, o.Object, o.Created = uid, fmt.Sprint(rv), body(), rnd.IntN(4) == 0
			if rnd.IntN(3) == 0 {
				o.Source = observe.SourceWatch
			}
		case 3:
			o.UID, o.Deleted = uid, true
			if rnd.IntN(2) == 0 {
				o.Object = body()
			}
		case 4:
			o.Unknown = true
		case 5:
			o.Object = body()
		case 6:
			o.Name, o.AllOf = "", true
			o.Deleted, o.Unknown = rnd.IntN(2) == 0, true
			if rnd.IntN(3) == 0 {
				o.Namespace = ""
			}
		case 7:
			snap := observe.Snapshot{Began: o.NotBefore, Ended: o.NotAfter, Kinds: []string{kept.Pods}}
			for _, name := range []string{"x", "y"} {
				if o.Name = name; rnd.IntN(2) == 0 {
					snap.Objects = append(snap.Objects, observe.Observation{
						Resource: kept.Pods, Namespace: "a", Name: name, UID: fmt.Sprintf("%s%d", name,
							rv/10), ResourceVersion: fmt.Sprint(rv), Object: body(),
					})
				}
			}
			obs = append(obs, snap.Observations()...)
			continue
		case 8:
			o.Object = fmt.Appendf(nil, `{"kind":"Binding","metadata":{},"target":{"kind":"Node","name":"n%d"}}`, rv/20)
			if rnd.IntN(2) == 0 {
				o.UID = uid
			}
		case 9:
			options := []string{``, `"told":true`, `"told":true,"grace":0`, `"told":true,"grace":0`, `"told":true,"grace":0,"holds":true`}
			o.Object = []byte(`{"kind":"Eviction","metadata":{},"reduced":{` + options[rnd.IntN(len(options))] + `}}`)
			if rnd.IntN(2) == 0 {
				o.UID = uid
			}
		case 10:
			o.Object = []byte(`{"kind":"Pod","metadata":{},"reduced":{"bare":true,"anyRefs":true}}`)
		case 11:
			o.Object = []byte(`{"kind":"Pod","metadata":{},"reduced":{"bare":true}}`)
		case 12:
			o.Deleted, o.Complete = true, true
		case 13:
			o.Deleted, o.Unknown = true, true
		case 14:
			o.Unchanged, o.Update = true, true
		case 16:
			o.UID = uid
			o.Object = fmt.Appendf(nil, `{"kind":"Pod","metadata":{"deletionTimestamp":%q,"deletionGracePeriodSeconds":0,`+
				`"finalizers":["x"]},"reduced":{"account":"sa0","read":%d}}`,
				day.Add(time.Duration(30+rnd.IntN(40))*time.Second).Format(time.RFC3339), rv)
		case 15:
			o.UID, o.ResourceVersion, o.Unchanged = uid, fmt.Sprint(rv), true
			o.Object = fmt.Appendf(nil, `{"kind":"Pod","metadata":{"deletionTimestamp":%q,"finalizers":["x"]},"reduced":{"bare":true}}`,
				day.Add(time.Duration(30+rnd.IntN(40))*time.Second).Format(time.RFC3339))
		}
		obs = append(obs, o)
	}
	return obs
}

// askPods renders everything a State says of the pods of randomPods at some times.
func askPods(s *state.State, times []time.Time, whole bool) []string {
	var out []string
	for i, at := range times {
		for _, name := range []string{"x", "y"} {
			p, known := s.Pod("a", name, at)
			out = append(out, fmt.Sprintf("%d %s %s %+v", i, name, known, p))
		}
		for _, node := range []string{"n0", "n1", "n2"} {
			for _, what := range []string{"s", "s2"} {
				out = append(out, fmt.Sprintf("%d %s %s %s %b", i, node, what, s.Related(at, node, "", "secrets", "a", what),
					s.RelatedWithin(at, at.Add(2*time.Second), node, "", "secrets", "a", what)))
			}
			out = append(out, fmt.Sprintf("%d %s pod %s", i, node, s.Related(at, node, "", "pods", "a", "x")))
		}
	}
	if !whole {
		return out
	}
	for _, name := range []string{"x", "y"} {
		for i := range 5 {
			p, known := s.PodByUID(fmt.Sprintf("%s%d", name, i))
			out = append(out, fmt.Sprintf("%s%d %s %+v", name, i, known, p))
		}
		for i, v := range s.History(kept.Pods, "a", name) {
			out = append(out, fmt.Sprintf("%s %d %+v", name, i, v))
		}
	}
	return out
}

// Any set of observations of pods has one answer, whatever their order and however often they
// come, and every change of an answer has an effect that covers it.
func TestAnyOrderOfPods(t *testing.T) {
	var times []time.Time
	for i := range 75 {
		times = append(times, clock(t, "12:00:00").Add(time.Duration(i)*time.Second-300*time.Millisecond))
	}
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 17))
		obs := randomPods(t, rnd)
		once := state.New("c")
		once.Apply(obs...)
		want := askPods(once, times, true)
		for _, v := range append(once.History(kept.Pods, "a", "x"), once.History(kept.Pods, "a", "y")...) {
			if v.NotBefore.After(v.NotAfter) {
				t.Fatalf("seed %d: %+v ends before it begins\n%s", seed, v, dump(obs))
			}
		}
		for range 4 {
			rnd.Shuffle(len(obs), func(i, j int) { obs[i], obs[j] = obs[j], obs[i] })
			s := state.New("c")
			before := askPods(s, times, false)
			for _, o := range obs {
				d, err := observe.Decode(o.Append(nil))
				if err != nil {
					t.Fatal(err)
				}
				effects := s.Apply(d)
				now := askPods(s, times, false)
				for i, line := range now {
					at := times[i/(len(now)/len(times))]
					if line != before[i] && !slices.ContainsFunc(effects, func(e state.Effect) bool {
						// A window looks two seconds ahead.
						return !at.Add(2*time.Second).Before(e.From) && (e.To.IsZero() || !at.After(e.To))
					}) {
						t.Fatalf("seed %d: late %s\nchanged an answer at %s outside of all effects %+v:\n%s\n%s\n%v\n%s", seed,
							o.Append(nil), at, effects, before[i], line, s.History(kept.Pods, "a", "x"), dump(obs))
					}
				}
				before = now
			}
			got := askPods(s, times, true)
			for i := range want {
				if want[i] != got[i] {
					t.Fatalf("seed %d: answers differ:\n%s\n%s\nobservations:\n%s", seed, want[i], got[i], dump(obs))
				}
			}
			if effects := s.Apply(obs...); len(effects) != 0 {
				t.Fatalf("seed %d: applying everything again had effects %+v\n%s", seed, effects, dump(obs))
			}
		}
	}
}

// Pruning changes no answer about its moment or a later one.
func TestPrunePods(t *testing.T) {
	dropped := 0
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 23))
		s := state.New("c")
		obs := randomPods(t, rnd)
		s.Apply(obs...)
		horizon := clock(t, "12:00:00").Add(time.Duration(rnd.IntN(70)) * time.Second)
		var times []time.Time
		for i := range 40 {
			times = append(times, horizon.Add(time.Duration(i)*2*time.Second+150*time.Millisecond))
		}
		for round := range 2 {
			want, size := askPods(s, times, false), s.Stats().Versions
			n := s.Prune(horizon)
			if got := s.Stats().Versions; got != size-n {
				t.Fatalf("seed %d: %d versions, pruned %d, left %d", seed, size, n, got)
			}
			dropped += n
			got := askPods(s, times, false)
			for i := range want {
				if want[i] != got[i] {
					t.Fatalf("seed %d round %d: answers after %s differ:\n%s\n%s\n%s", seed, round, horizon, want[i], got[i], dump(obs))
				}
			}
		}
	}
	if dropped == 0 {
		t.Fatal("nothing was ever pruned")
	}
}
