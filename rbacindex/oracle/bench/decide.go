package main

import (
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/retrial-io/retrial/rbacindex"
)

// slow measures an authorizer that scans, over as many requests as take a while.
func slow(decide func(authorizer.Attributes), p *policy, kind string) cost {
	pool := records(p.requests(kind, rounds+2, 20_000))
	began, n := cpu(), 0
	for ; n < len(pool) && cpu()-began < 250*time.Millisecond; n++ {
		decide(pool[n])
	}
	return measure(rounds, n, nil, func() {
		for _, r := range pool[:n] {
			decide(r)
		}
	})
}

// known measures requests of known subjects: seen for the first time, and then a few again
// and again. It returns the grants per decision as well.
func known(s *rbacindex.Snapshot, p *policy, kind string) (first, again cost, grants float64) {
	buf := make([]rbacindex.Grant, 0, 512)
	var requests []rbacindex.Attributes
	found := 0
	first = measure(rounds, shapes, func(round int) {
		requests = p.requests(kind, round, shapes)
		for i := range requests { // the subjects become known, by requests of another shape
			a := requests[i]
			a.Verb, a.Name = "know", ""
			s.Authorize(&a, buf)
		}
	}, func() {
		for i := range requests {
			found += len(s.Authorize(&requests[i], buf).Grants)
		}
	})
	few := requests[:16]
	again = measure(rounds, shapes, nil, func() {
		for range shapes / len(few) {
			for i := range few {
				s.Authorize(&few[i], buf)
			}
		}
	})
	return first, again, float64(found) / float64(rounds*shapes)
}

// coldSubjects measures requests of subjects never seen before: each has a group of its own.
func coldSubjects(s *rbacindex.Snapshot, p *policy, kind string) cost {
	const count = 4_000
	buf := make([]rbacindex.Grant, 0, 512)
	var requests []rbacindex.Attributes
	return measure(rounds, count, func(round int) {
		requests = p.requests(kind, rounds+3+round, count)
		for i := range requests {
			g := requests[i].Groups
			requests[i].Groups = append(g[:len(g):len(g)], fmt.Sprintf("only-%d-%d", round, i))
		}
	}, func() {
		for i := range requests {
			s.Authorize(&requests[i], buf)
		}
	})
}
