package state_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// Whatever is asked of a moment before the horizon, nothing is known of it any more; windows
// that begin before it say so in their first view and know the rest.
func TestBeforeTheHorizon(t *testing.T) {
	pruned := 0
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 61))
		s := state.New("c")
		s.Apply(randomObservations(t, rnd)...)
		s.Apply(randomPods(t, rnd)...)
		horizon := clock(t, "12:00:00").Add(time.Duration(10+rnd.IntN(50)) * time.Second)
		if _, kept := s.AsOf(horizon.Add(-time.Hour)); !kept || !s.Horizon().IsZero() {
			t.Fatal("nothing was forgotten, and something is said to be")
		}
		pruned += s.Prune(horizon)
		if !s.Horizon().Equal(horizon) {
			t.Fatalf("horizon %s, want %s", s.Horizon(), horizon)
		}
		for range 20 {
			at := horizon.Add(-time.Duration(1 + rnd.Int64N(int64(80*time.Second))))
			fail := func(what string, got any) {
				t.Helper()
				t.Errorf("seed %d: %s at %s, before the horizon %s: %v", seed, what, at, horizon, got)
			}
			if of, kept := s.AsOf(at); kept || of == s || of.Cluster() != s.Cluster() {
				fail("AsOf", kept)
			}
			if v := s.RBAC(at); anyRole(v.RBAC) || len(v.UnknownKinds) != 4 {
				fail("RBAC", v)
			}
			views := s.RBACWindow(at, horizon.Add(5*time.Second))
			if len(views) < 2 || len(views[0].UnknownKinds) != 4 || len(views[1].Changed) != 1 || views[1].RBAC != s.RBAC(horizon).RBAC {
				fail("RBACWindow", views)
			}
			if views = s.RBACWindow(at, at); len(views) != 1 || len(views[0].UnknownKinds) != 4 {
				fail("RBACWindow", views)
			}
			if c := s.Changes(at, horizon.Add(time.Minute)); len(c.From.UnknownKinds) != 4 ||
				len(c.To.UnknownKinds) != len(s.RBAC(horizon.Add(time.Minute)).UnknownKinds) {
				fail("Changes", c)
			}
			if c := s.Changes(at, at); len(c.Keys) != 0 || len(c.To.UnknownKinds) != 4 {
				fail("Changes", c)
			}
			if r := s.Reason(rbacindex.Key{Kind: rbacindex.KindRole, Namespace: "a", Name: "x"},
				at); r != "it is older than the kept history" {
				fail("Reason", r)
			}
			if n := s.Namespace("a", at, horizon.Add(time.Hour)); n != state.NamespaceUnknown {
				fail("Namespace", n)
			}
			if there, complete := s.ServiceAccounts(at); len(there) != 0 || complete {
				fail("ServiceAccounts", there)
			}
			if r := s.RelatedWithin(at, horizon.Add(time.Second), "n0", "", "secrets", "a", "s"); !r.Has(graph.Unknown) {
				fail("RelatedWithin", r)
			}
			known := map[string]state.Known{"Related": s.Related(at, "n0", "", "secrets", "a", "s")}
			_, known["ServiceAccount"] = s.ServiceAccount("a", "x", at)
			_, known["Node"] = s.Node("n0", at)
			_, known["Secret"] = s.Secret("a", "s", at)
			_, known["Signer"] = s.Signer("s", at)
			_, known["Pod"] = s.Pod("a", "x", at)
			_, known["Version of a role"] = s.Version(kept.Roles, "a", "x", at)
			_, known["Version of a pod"] = s.Version(kept.Pods, "a", "x", at)
			for what, k := range known {
				if k != state.Unknown {
					fail(what, k)
				}
			}
		}
	}
	if pruned == 0 {
		t.Fatal("nothing was ever pruned")
	}
}

// What comes after the horizon has moved past it makes no answer wrong: each is as it would be
// had all been known before, or not known.
//
//	forgotten  .................| horizon
//	comes late      |-| write of an object that is not kept: unknown since the horizon
//	comes late      |-| end of one that is there: its end
func TestLateBehindTheHorizon(t *testing.T) {
	withheld, same, unknown := 0, 0, 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 67))
		obs := trueHistory(t, rnd)
		horizon := clock(t, "12:00:00").Add(time.Duration(20+rnd.IntN(40)) * time.Second)
		all, late := state.New("c"), state.New("c")
		all.Apply(obs...)
		var held []observe.Observation
		listings := map[string]bool{} // a listing is held back as a whole
		for _, o := range obs {
			hold := rnd.IntN(4) == 0
			if o.Source == observe.SourceSnapshot {
				listing := fmt.Sprint(o.Resource, o.NotBefore, o.NotAfter)
				if was, ok := listings[listing]; ok {
					hold = was
				}
				listings[listing] = hold
			}
			if o.NotAfter.Before(horizon) && hold {
				held = append(held, o)
				continue
			}
			late.Apply(o)
		}
		late.Prune(horizon)
		late.Apply(held...)
		withheld += len(held)
		for i := range 30 {
			at := horizon.Add(time.Duration(i) * 2 * time.Second)
			compare := func(what string, before, known state.Known, want, got string) {
				t.Helper()
				switch {
				case known == state.Unknown:
					unknown++
				case before != known || want != got:
					t.Errorf("seed %d: %s at %s: %s %s, want %s %s\nheld back: %s\nall: %s", seed, what, at, known, got, before, want,
						dump(held), dump(obs))
				default:
					same++
				}
			}
			for _, name := range []string{"x", "y"} {
				a, k := all.Version(kept.RoleBindings, "a", name, at)
				b, l := late.Version(kept.RoleBindings, "a", name, at)
				compare("binding "+name, k, l, a.UID, b.UID)
				p, k := all.Pod("a", name, at)
				q, l := late.Pod("a", name, at)
				compare("pod "+name, k, l, p.UID, q.UID)
			}
		}
		if t.Failed() {
			return
		}
	}
	if withheld == 0 || same == 0 || unknown == 0 {
		t.Fatalf("%d withheld, %d answers as before, %d unknown: all must be seen", withheld, same, unknown)
	}
}

// trueHistory returns what is observed of a cluster in which bindings and pods come, change and
// go, one a second, with listings now and then.
func trueHistory(t *testing.T, rnd *rand.Rand) []observe.Observation {
	t.Helper()
	day := clock(t, "12:00:00")
	type life struct {
		uid string
		rv  int
	}
	lives := map[[2]string]life{}
	listing := func(at time.Time) (obs []observe.Observation) {
		snap := observe.Snapshot{Began: at, Ended: at, Kinds: []string{kept.RoleBindings, kept.Pods}}
		for k, l := range lives {
			f := newFields(t, k[0], "a/"+k[1], nil)
			f.opt["uid"], f.opt["rv"] = l.uid, strconv.Itoa(l.rv)
			snap.Objects = append(snap.Objects, observe.Observation{Resource: k[0], Namespace: "a", Name: k[1], UID: l.uid,
				ResourceVersion: strconv.Itoa(l.rv), Object: historyObject(f, k[0], k[1])})
		}
		return snap.Observations()
	}
	obs := listing(day)
	for i := 1; i < 60; i++ {
		at := day.Add(time.Duration(i) * time.Second)
		if rnd.IntN(12) == 0 {
			obs = append(obs, listing(at)...)
			continue
		}
		k := [2]string{[]string{kept.RoleBindings, kept.Pods}[rnd.IntN(2)], []string{"x", "y", "z"}[rnd.IntN(3)]}
		l, there := lives[k]
		o := observe.Observation{Source: observe.SourceAudit, Resource: k[0], Namespace: "a", Name: k[1], NotBefore: at,
			NotAfter: at.Add(100 * time.Millisecond)}
		switch {
		case there && rnd.IntN(2) == 0:
			delete(lives, k)
			o.Deleted, o.UID = true, l.uid
		case there && k[0] == kept.Pods:
			continue // only its making and its end are told
		default:
			if !there {
				l.uid = fmt.Sprintf("u%d", i)
			}
			l.rv = i
			lives[k] = l
			f := newFields(t, k[0], "a/"+k[1], nil)
			f.opt["uid"], f.opt["rv"] = l.uid, strconv.Itoa(l.rv)
			o.UID, o.ResourceVersion, o.Object = l.uid, strconv.Itoa(l.rv), historyObject(f, k[0], k[1])
		}
		obs = append(obs, o)
	}
	return obs
}

func historyObject(f *fields, resource, name string) []byte {
	if resource == kept.Pods {
		return []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + name +
			`","namespace":"a"},"spec":{"serviceAccountName":"sa"}}`)
	}
	return f.object(true)
}

// anyRole reports whether an index holds any of the names that observations are made of.
func anyRole(s *rbacindex.Snapshot) bool {
	for _, kind := range []rbacindex.Kind{rbacindex.KindRole, rbacindex.KindRoleBinding} {
		for _, name := range []string{"x", "y"} {
			if _, found := s.Get(rbacindex.Key{Kind: kind, Namespace: "a", Name: name}); found {
				return true
			}
		}
	}
	return false
}
