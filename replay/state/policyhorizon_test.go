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

// A state that forgot old policy, once or on its way, answers everything about its horizon and later as one that forgot nothing, and of
// accounts, pods and credentials everything: whatever else comes that was observed since. And what comes has the same effects.
//
//	all        ──o──o──o──o──┊──o──o──o──  asked from here on
//	some       ──o──o──┊──o──┊──o──o──o──  what comes after a horizon was done after it, in any order
func TestPrunePolicy(t *testing.T) {
	dropped, after, effects := 0, 0, 0
	day := clock(t, "12:00:00")
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 71))
		obs := slices.Concat(partialHistory(t, rnd), randomPods(t, rnd))
		if seed%4 == 0 {
			obs = trueHistory(t, rnd)
		}
		rnd.Shuffle(len(obs), func(i, j int) { obs[i], obs[j] = obs[j], obs[i] })
		all, some := state.New("c"), state.New("c")
		horizon := time.Time{}
		for rest := obs; ; {
			if next := day.Add(time.Duration(rnd.IntN(70)) * time.Second); next.After(horizon) {
				horizon = next
			}
			var later []observe.Observation
			for _, o := range rest {
				if !o.NotBefore.Before(horizon) && rnd.IntN(3) > 0 {
					later = append(later, o)
					continue
				}
				want, got := sinceOf(all.Apply(o), some.Horizon()), sinceOf(some.Apply(o), some.Horizon())
				if !slices.Equal(want, got) {
					t.Errorf("seed %d: %s has other effects since %s:\n%s\nwant\n%s", seed, o.Append(nil), some.Horizon(), got, want)
				}
				effects += len(want)
			}
			dropped += some.PrunePolicy(horizon)
			if rest = later; len(rest) == 0 {
				break
			}
			after += len(rest)
		}
		var times, ever []time.Time
		for i := range 40 {
			times = append(times, horizon.Add(time.Duration(i)*2*time.Second+150*time.Millisecond))
			ever = append(ever, day.Add(time.Duration(i)*3*time.Second))
		}
		for _, c := range [][2][]string{{ask(all, times), ask(some, times)}, {askPods(all, ever, true), askPods(some, ever, true)},
			{askAccounts(all, ever), askAccounts(some, ever)}} {
			slices.Sort(c[0])
			slices.Sort(c[1])
			if d := diff(c[0], c[1]); d != "" {
				t.Errorf("seed %d: answers after %s differ:\n%s\n%s", seed, horizon, cut(d), dump(obs))
			}
		}
		for i := range 20 {
			from := times[i]
			to := from.Add(time.Duration(rnd.IntN(40)) * time.Second)
			if want, got := changed(all.Changes(from, to)), changed(some.Changes(from, to)); !slices.Equal(want, got) {
				t.Errorf("seed %d: changes from %s to %s differ:\n%s\n%s", seed, from, to, want, got)
			}
		}
	}
	t.Logf("%d dropped, %d came after that, %d effects", dropped, after, effects)
	if dropped == 0 || after == 0 || effects == 0 {
		t.Fatalf("%d dropped, %d came after that, %d effects: all must be", dropped, after, effects)
	}
}

// sinceOf returns what effects concern, from the horizon on.
func sinceOf(effects []state.Effect, horizon time.Time) (out []string) {
	for _, e := range effects {
		if !e.To.IsZero() && !horizon.IsZero() && e.To.Before(horizon) {
			continue
		}
		from := e.From
		if from.Before(horizon) {
			from = horizon
		}
		out = append(out, fmt.Sprint(e.Resource, e.Namespace, e.Name, from, e.To, e.Subjects()))
	}
	slices.Sort(out)
	return out
}

func changed(c state.Changes) (out []string) {
	for _, k := range c.Keys {
		out = append(out, fmt.Sprint(k, c.Versions(k)))
	}
	return out
}

func askAccounts(s *state.State, times []time.Time) (out []string) {
	for _, name := range []string{"x", "y"} {
		for i, v := range s.History(kept.ServiceAccounts, "a", name) {
			out = append(out, fmt.Sprintf("%s %d %+v", name, i, v))
		}
		for _, at := range times {
			uid, known := s.ServiceAccount("a", name, at)
			out = append(out, fmt.Sprint(name, at, uid, known))
		}
	}
	return out
}

// partialHistory returns what is observed of a cluster in which roles, bindings and accounts come, change and go: some of it in full, some
// by halves, some with an outcome that nobody knows, and some not at all.
func partialHistory(t *testing.T, rnd *rand.Rand) (obs []observe.Observation) {
	t.Helper()
	day := clock(t, "12:00:00")
	resources := []string{kept.RoleBindings, kept.Roles, kept.ServiceAccounts}
	type life struct {
		uid, created string
		rv           int
	}
	lives := map[[2]string]life{}
	object := func(k [2]string, l life) *fields {
		f := newFields(t, k[0], "a/"+k[1], nil)
		f.opt["rv"], f.opt["uid"] = strconv.Itoa(l.rv), l.uid
		f.opt["user"], f.opt["verbs"] = fmt.Sprintf("user%d", l.rv%5), []string{"get", "list"}[l.rv%2]
		if l.created != "" {
			f.opt["created"] = l.created
		}
		return f
	}
	listing := func(res string, at time.Time) {
		snap := observe.Snapshot{Began: at, Ended: at.Add(100 * time.Millisecond), Kinds: []string{res}}
		for k, l := range lives {
			if k[0] == res {
				snap.Objects = append(snap.Objects, observe.Observation{Resource: res, Namespace: "a", Name: k[1], UID: l.uid,
					ResourceVersion: strconv.Itoa(l.rv), Object: object(k, l).object(true)})
			}
		}
		obs = append(obs, snap.Observations()...)
	}
	for _, res := range resources {
		if rnd.IntN(3) > 0 {
			listing(res, day)
		}
	}
	certain := rnd.IntN(3) // of the seeds, one sees everything
	for i := 1; i < 70; i++ {
		at := day.Add(time.Duration(i) * time.Second)
		k := [2]string{resources[rnd.IntN(3)], []string{"x", "y"}[rnd.IntN(2)]}
		l, there := lives[k]
		o := observe.Observation{Source: observe.SourceAudit, Resource: k[0], Namespace: "a", Name: k[1], NotBefore: at,
			NotAfter: at.Add(time.Duration(rnd.IntN(2500)) * time.Millisecond)}
		if at.Sub(o.NotAfter) == 0 || rnd.IntN(2) == 0 {
			o.NotAfter = at.Add(50 * time.Millisecond)
		}
		if rnd.IntN(20) == 0 {
			listing(k[0], at)
			continue
		}
		happens := certain == 0 || rnd.IntN(8) > 0
		f := object(k, l)
		switch {
		case there && rnd.IntN(3) == 0:
			if happens {
				delete(lives, k)
			}
			if o.Deleted, o.UID = true, l.uid; !happens {
				o.Unknown, o.UID = true, ""
			} else if certain > 0 && rnd.IntN(4) == 0 {
				o.UID = ""
			}
		default:
			if !there {
				l.uid, l.created = fmt.Sprintf("%su%d", k[1], i), ""
				if rnd.IntN(2) == 0 {
					l.created = at.Format(time.RFC3339)
				}
			}
			l.rv = i
			if happens {
				lives[k] = l
			}
			f = object(k, l)
			o.UID, o.ResourceVersion, o.Object = l.uid, strconv.Itoa(l.rv), f.object(true)
			if !happens {
				o.UID, o.ResourceVersion, o.Object, o.Unknown, o.Created = "", "", f.object(false), true, !there
			}
		}
		if certain > 0 {
			switch rnd.IntN(12) {
			case 0, 1:
				continue // nobody saw it
			case 2:
				if !o.Deleted {
					o.UID, o.ResourceVersion, o.Object, o.Unknown, o.Created = "", "", f.object(false), false, !there
					o.Update = there
				}
			case 3:
				if !o.Deleted {
					o.UID, o.ResourceVersion, o.Object, o.Unknown = "", "", nil, true
				}
			case 4:
				if o.UID != "" {
					o.Source = observe.SourceWatch
				}
			case 5:
				obs = append(obs, o)
			case 6:
				if _, is := lives[k]; !is {
					obs = append(obs, observe.Observation{Source: observe.SourceAudit, Resource: k[0], Namespace: "a", Name: k[1],
						Deleted: true, Complete: true, NotBefore: at.Add(800 * time.Millisecond), NotAfter: at.Add(900 * time.Millisecond)})
				}
			}
		}
		obs = append(obs, o)
	}
	return obs
}
