// Command bench measures rbacindex beside the RBAC authorizer of k8s.io/kubernetes, in one
// process, by CPU time: decisions of every kind at four sizes, then updates, memory, who can,
// floods of strangers and scaling. Its last lines are the medians over the kinds, one a size.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/retrial-io/retrial/internal/linearscan"
	"github.com/retrial-io/retrial/rbacindex"
)

const (
	shapes = 1 << 17 // distinct requests of one round
	rounds = 5
)

func main() {
	file := flag.String("bootstrap", "../testdata/bootstrap.json", "the RBAC objects of a freshly started apiserver")
	only := flag.Int("bindings", -1, "measure decisions at this one size only")
	kind := flag.String("request", "", "measure this one kind of request only")
	flag.Parse()
	if *kind != "" {
		kinds = []string{*kind}
	}
	if err := run(*file, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(file string, only int) error {
	runtime.GOMAXPROCS(1)
	base, err := bootstrap(file)
	if err != nil {
		return err
	}
	fmt.Printf("CPU of the process per decision, GOMAXPROCS=1, medians of %d rounds of %d requests never seen before, strings of their "+
		"own\n\n", rounds, shapes)
	fmt.Println("| bindings | request | Kubernetes ns | allocs | bytes | internal/linearscan ns | ours, first seen ns | grants | warm ns " +
		"| cold subject ns | allocs | ratio |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	var lines []string
	for _, size := range []struct {
		name string
		n    int
	}{{"bootstrap", 0}, {"1k", 1_000}, {"10k", 10_000}, {"50k", 50_000}} {
		if only >= 0 && only != size.n {
			continue
		}
		line, err := decisions(newPolicy(size.name, size.n, base))
		if err != nil {
			return fmt.Errorf("bindings=%s: %w", size.name, err)
		}
		lines = append(lines, line)
	}
	if only < 0 {
		if err := beyond(base); err != nil {
			return err
		}
	}
	fmt.Println()
	for _, l := range lines {
		fmt.Println(l)
	}
	return nil
}

// decisions prints a row for every kind of request and returns the line of medians.
func decisions(p *policy) (string, error) {
	real, err := upstream(p.objects)
	if err != nil {
		return "", err
	}
	scan, err := linearscan.New(p.objects)
	if err != nil {
		return "", err
	}
	s, err := rbacindex.New(p.objects...)
	if err != nil {
		return "", err
	}
	var theirs, ours, warm, cold, allocs []float64
	for _, kind := range kinds {
		sample := p.requests(kind, rounds+1, 20)
		if err := agree(real, scan, s, sample); err != nil {
			return "", err
		}
		up := slow(func(a authorizer.Attributes) { _, _, _ = real.Authorize(context.Background(), a) }, p, kind)
		scanned := slow(func(a authorizer.Attributes) { _, _ = scan.Allows(a) }, p, kind)
		first, again, grants := known(s, p, kind)
		strange := coldSubjects(s, p, kind)
		fmt.Printf("| %s | %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f | %.0f | %.0f | %.2f | %.0f× |\n", p.name, kind,
			up.ns, up.allocs, up.bytes, scanned.ns, first.ns, grants, again.ns, strange.ns, first.allocs, up.ns/first.ns)
		theirs, ours, warm = append(theirs, up.ns), append(ours, first.ns), append(warm, again.ns)
		cold, allocs = append(cold, strange.ns), append(allocs, first.allocs)
	}
	return fmt.Sprintf("ratio bindings=%s upstream_ns=%.0f ours_ns=%.0f warm_ns=%.0f cold_subject_ns=%.0f allocs=%.0f ratio=%.0f", p.name,
		median(theirs), median(ours), median(warm), median(cold), median(allocs), median(theirs)/median(ours)), nil
}
