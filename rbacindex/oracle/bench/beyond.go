package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// beyond prints what is measured beside decisions.
func beyond(base []any) error {
	fmt.Println("\n| bindings (and as many RoleBindings) | rebuild ms | one RoleBinding µs | a binding to everybody µs | the role most " +
		"name µs | ÷ rebuild | bytes a binding | who can, one namespace µs | results | who can approve CSRs µs | results |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, n := range []int{1_000, 10_000, 50_000} {
		p := newPolicy(fmt.Sprint(n), n, base)
		if err := changes(p); err != nil {
			return fmt.Errorf("bindings=%d: %w", n, err)
		}
	}
	p := newPolicy("10k", 10_000, base)
	s, err := rbacindex.New(p.objects...)
	if err != nil {
		return err
	}
	scaling(s, p)
	return flood(p)
}

// changes measures building and changing a policy, what it holds, and who can.
func changes(p *policy) error {
	var s *rbacindex.Snapshot
	var failed error
	rebuild := measure(rounds, 1, func(int) { s = nil }, func() { s, failed = rbacindex.New(p.objects...) })
	if failed != nil {
		return failed
	}
	s = nil
	before := heap()
	if s, failed = rbacindex.New(p.objects...); failed != nil {
		return failed
	}
	held := float64(heap()-before) / float64(2*p.n)

	a := rbacindex.Attributes{User: "user-6", Groups: groups(), ResourceRequest: true, Verb: "get", Resource: "pods", Namespace: "ns-6"}
	buf := make([]rbacindex.Grant, 0, 64)
	edit, _ := s.Get(rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "edit"})
	other := edit.(*rbacv1.ClusterRole).DeepCopy()
	other.Rules = other.Rules[:len(other.Rules)/2]
	view := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	var costs []float64
	worst := 0.0
	for _, c := range []struct{ there, then any }{
		{&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns-1", Name: "one"}, RoleRef: view,
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "user-7"}}}, nil},
		{&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "everybody"}, RoleRef: view,
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}}, nil},
		{other, edit},
	} {
		const count = 2_000
		k, err := rbacindex.KeyOf(c.there)
		if err != nil {
			return err
		}
		one := measure(rounds, count, nil, func() {
			for i := range count {
				ch := rbacindex.Change{Key: k, Object: c.there}
				if i%2 == 1 {
					ch.Object = c.then
				}
				next, err := s.Apply(ch)
				if err != nil {
					failed = err
					return
				}
				s = next
				s.Authorize(&a, buf) // so that nothing put off is left out
			}
		})
		costs = append(costs, one.ns)
		worst = max(worst, one.ns)
	}
	if failed != nil {
		return failed
	}
	const questions = 300
	many := rbacindex.Attributes{ResourceRequest: true, Verb: "create", Resource: "persistentvolumeclaims", Namespace: "ns-0"}
	few := rbacindex.Attributes{ResourceRequest: true, Verb: "approve", APIGroup: "certificates.k8s.io",
		Resource: "certificatesigningrequests"}
	manyResults, fewResults := len(s.WhoCan(&many, false)), len(s.WhoCan(&few, false)) // the first question turns the roles round
	whoMany := measure(rounds, questions, nil, func() {
		for i := range questions {
			many.Namespace = fmt.Sprintf("ns-%d", i%p.namespaces)
			s.WhoCan(&many, false)
		}
	})
	whoFew := measure(rounds, questions, nil, func() {
		for i := range questions {
			few.Name = fmt.Sprintf("csr-%d", i)
			s.WhoCan(&few, false)
		}
	})
	fmt.Printf("| %s | %.0f | %.1f | %.1f | %.1f | 1/%.0f | %.0f | %.0f | %d | %.1f | %d |\n", p.name, rebuild.ns/1e6,
		costs[0]/1e3, costs[1]/1e3, costs[2]/1e3, rebuild.ns/worst, held, whoMany.ns/1e3, manyResults, whoFew.ns/1e3, fewResults)
	return nil
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// scaling asks from one and from two processors. CPU per decision that stays the same means
// that nobody waits for another; the rate depends on what else the machine does.
func scaling(s *rbacindex.Snapshot, p *policy) {
	fmt.Println("\n| GOMAXPROCS | readers | CPU ns a decision | decisions/s (wall) |")
	fmt.Println("| --- | --- | --- | --- |")
	requests := p.requests("namespaced", 0, shapes)
	for _, procs := range []int{1, 2} {
		runtime.GOMAXPROCS(procs)
		var wall []float64
		c := measure(rounds, procs*shapes, nil, func() {
			began := time.Now()
			var wg sync.WaitGroup
			for range procs {
				wg.Go(func() {
					buf := make([]rbacindex.Grant, 0, 16)
					for i := range requests {
						s.Authorize(&requests[i], buf)
					}
				})
			}
			wg.Wait()
			wall = append(wall, float64(procs*shapes)/time.Since(began).Seconds())
		})
		fmt.Printf("| %d | %d | %.0f | %.0f |\n", procs, procs, c.ns, median(wall))
	}
	runtime.GOMAXPROCS(1)
}

// flood sends a million strangers, names and paths through one policy, with sixteen regular
// subjects among them.
func flood(p *policy) error {
	const million, chunk = 1_000_000, 50_000
	fmt.Println("\n| a million distinct | ns each, median | ns each, slowest 50,000 | heap after the first 250,000, MB | after a " +
		"million, MB | regulars meanwhile, ns |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	regulars := p.requests("namespaced", 0, 16)
	for _, of := range []string{"users", "users in a namespace", "names", "paths"} {
		s, err := rbacindex.New(p.objects...)
		if err != nil {
			return err
		}
		buf := make([]rbacindex.Grant, 0, 64)
		made := make([]rbacindex.Attributes, chunk)
		before := heap()
		var each, regular []float64
		var early, late int64
		for done := 0; done < million; done += chunk {
			for i := range made {
				made[i] = distinct(of, done+i)
			}
			took := measure(1, chunk, nil, func() {
				for i := range made {
					if i%500 == 0 { // the regulars come by, so that the flood is not all there is
						for j := range regulars {
							s.Authorize(&regulars[j], buf)
						}
					}
					s.Authorize(&made[i], buf)
				}
			})
			began := cpu()
			for range 1000 {
				for j := range regulars {
					s.Authorize(&regulars[j], buf)
				}
			}
			asked := cpu() - began
			each, regular = append(each, took.ns), append(regular, float64(asked)/float64(1000*len(regulars)))
			if done+chunk == million/4 {
				clear(made)
				early = heap() - before
			}
		}
		clear(made)
		late = heap() - before
		slowest := 0.0
		for _, v := range each {
			slowest = max(slowest, v)
		}
		fmt.Printf("| %s | %.0f | %.0f | %.1f | %.1f | %.0f |\n", of, median(each), slowest, float64(early)/1e6, float64(late)/1e6,
			median(regular))
		runtime.KeepAlive(s)
		runtime.KeepAlive(made)
	}
	return nil
}

// distinct makes the request of number i of a flood.
func distinct(of string, i int) rbacindex.Attributes {
	a := rbacindex.Attributes{User: "user-0", Groups: groups(), ResourceRequest: true, Verb: "get", Resource: "pods"}
	switch of {
	case "users":
		a.User = fmt.Sprintf("stranger-%d", i)
	case "users in a namespace":
		a.User, a.Namespace, a.Groups = fmt.Sprintf("stranger-%d", i), fmt.Sprintf("ns-%d", i%1000), groups("tenant-2")
	case "names":
		a.Namespace, a.Name = "ns-0", fmt.Sprintf("object-%d", i)
	case "paths":
		a.ResourceRequest, a.Resource, a.Path = false, "", fmt.Sprintf("/healthz/%d", i)
	}
	return a
}
