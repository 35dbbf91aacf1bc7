package life

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/product"
)

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// connected returns a running product and a cluster that posts to it, connected as `retrial
// connect` says.
func connected(t *testing.T) (*product.Install, *Cluster) {
	t.Helper()
	in := product.New(t)
	config := filepath.Join(in.Dir, "config")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	told := append(Flags(), "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction")
	if err := os.WriteFile(filepath.Join(config, "kube-apiserver.flags"), []byte(strings.Join(told, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	server := in.Serve(t, "127.0.0.1:0", "--apiserver-config", product.Cluster+"="+config)
	return in, Start(t, in.Connect(t, server)...)
}

// judged ends the cluster and judges all of its log: every request is stored and judged once,
// live as from the log; no decision differs from the apiserver's, next to none is left open,
// and nobody is accused. At most so many of a thousand may be ambiguous. RETRIAL_LIFE_KEEP names a
// folder for the recording.
func judged(t *testing.T, in *product.Install, c *Cluster, ambiguous int) {
	t.Helper()
	dir := c.Record(t)
	verdicts := Judge(t, in, dir)
	report := Report(verdicts)
	t.Log(report)
	if keep := os.Getenv("RETRIAL_LIFE_KEEP"); keep != "" {
		keep = filepath.Join(keep, t.Name())
		if err := errors.Join(os.CopyFS(keep, os.DirFS(dir)), os.WriteFile(filepath.Join(keep, "report.txt"), []byte(report),
			0o644)); err != nil {
			t.Error(err)
		}
	}
	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if logged := Requests(t, log); len(logged) != len(verdicts) {
		t.Errorf("%d requests are in the log, %d were judged", len(logged), len(verdicts))
	}
	bounds(t, verdicts, ambiguous)
	if found := Accusations(t, in, dir); len(found) > 0 {
		t.Errorf("accused without cause: %v", found)
	}
	same(t, in, verdicts)
}

// TestLife: namespaces with nodes' pods come and go. RETRIAL_LIFE_MINUTES lets it go on,
// RETRIAL_LIFE_SEED makes it another life, RETRIAL_LIFE_EVERY is how many seconds lie between the
// beginnings of two namespaces.
func TestLife(t *testing.T) {
	seed, minutes := setting(t, "RETRIAL_LIFE_SEED", 1), setting(t, "RETRIAL_LIFE_MINUTES", 0)
	every := time.Duration(setting(t, "RETRIAL_LIFE_EVERY", 0)) * time.Second
	in, c := connected(t)
	guests := c.Guests(t)
	lived := c.Churn(t, Plan{Seed: uint64(seed), Namespaces: 6, Until: time.Now().Add(time.Duration(minutes) * time.Minute), Every: every})
	t.Logf("%s, seed %d: %d namespaces gone with %d running pods; %v", c.Version(t), seed, lived.Namespaces, lived.Running, lived.Scenes)
	for _, g := range guests {
		if g.Ended() {
			t.Error("a controller has ended")
		}
	}
	if n := c.evicted(t); len(guests) > 0 && minutes > 0 && n == 0 {
		t.Error("the descheduler has evicted nothing")
	}
	ambiguous := 3
	if every >= 30*time.Second && !strings.HasPrefix(c.Version(t), "v1.28.") { // whose kubelets ask soonest
		ambiguous = 1
	}
	judged(t, in, c, ambiguous)
}

// TestSuite: Kubernetes' own end-to-end suite runs, as far as it needs no containers, for
// RETRIAL_LIFE_MINUTES at the most.
func TestSuite(t *testing.T) {
	minutes := setting(t, "RETRIAL_LIFE_MINUTES", 0)
	if minutes == 0 {
		t.Skip("NOT RUN: long: make test-e2e runs it")
	}
	in, c := connected(t)
	if passed, want := c.Suite(t, time.Duration(minutes)*time.Minute), min(50, 5*minutes); passed < want {
		t.Errorf("%d specs passed, want at least %d", passed, want)
	}
	judged(t, in, c, 3)
}

// bounds holds how many verdicts are not a match against what is allowed: no drift, and few that
// are left open. Where pods come fast, on a busy machine, nodes ask for what a pod mounts before
// the node authorizer has seen the binding, which no log tells: so many in a thousand may be
// ambiguous, each with its cause. One in two thousand may be indeterminate: a kubelet asks some
// ten times for a pod of which the log does not say whether it is gone, so a short life may have
// one such pod.
func bounds(t *testing.T, verdicts map[string]*Verdict, ambiguous int) {
	t.Helper()
	n := map[string]int{}
	for id, v := range verdicts {
		n[v.Verdict]++
		if v.Verdict == "ambiguous" && v.Cause == "" {
			t.Errorf("%s is ambiguous, and nothing says why", id)
		}
	}
	for verdict, most := range map[string]int{"drift": 0, "ambiguous": max(30, ambiguous*len(verdicts)/1000), "indeterminate": max(12,
		len(verdicts)/2000)} {
		if n[verdict] > most {
			t.Errorf("%d requests of %d are %s, want at most %d", n[verdict], len(verdicts), verdict, most)
		}
	}
}

// same: the running server has every request once and says of it what the log says.
func same(t *testing.T, in *product.Install, offline map[string]*Verdict) {
	t.Helper()
	var live map[string][]string
	controlplane.Poll(t, "all requests to arrive", func(context.Context) (bool, string) {
		live = stored(t, in)
		return len(live) >= len(offline), fmt.Sprintf("%d of %d", len(live), len(offline))
	})
	wrong := 0
	for id, v := range offline {
		if got := live[id]; !slices.Equal(got, []string{v.Outcome()}) {
			if wrong++; wrong <= 10 {
				t.Errorf("%s %s by %s: live %q, from the log %q", v.Verb, v.RequestURI, v.User, got, v.Outcome())
			}
		}
	}
	if wrong > 10 || len(live) != len(offline) {
		t.Errorf("%d requests of %d differ between live and the log; %d are stored", wrong, len(offline), len(live))
	}
}

// stored returns the outcomes of all requests of the cluster, by audit ID.
func stored(t *testing.T, in *product.Install) map[string][]string {
	t.Helper()
	in.Drained(t)
	got := map[string][]string{}
	for query := (url.Values{"cluster": {product.Cluster}, "limit": {"500"}}); ; {
		var page struct {
			Events []struct{ AuditID, Outcome, Class string }
			Older  string
		}
		in.Ask(t, "events", query, &page)
		for _, e := range page.Events {
			v := Verdict{Verdict: e.Outcome, Class: e.Class}
			got[e.AuditID] = append(got[e.AuditID], v.Outcome())
		}
		if page.Older == "" {
			return got
		}
		query.Set("before", page.Older)
	}
}
