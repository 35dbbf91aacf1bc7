package apiserver

import (
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/product"
)

// reachable is the part of the product's answer that is compared.
type reachable struct {
	Paths, Reaches []struct {
		Text  string
		To    struct{ Kind, Name string }
		Steps []struct {
			Edge     string
			Requests []struct {
				Grants []struct{ Binding string }
			}
		}
	}
}

func (r *reachable) String() string {
	var lines []string
	for _, p := range slices.Concat(r.Paths, r.Reaches) {
		lines = append(lines, p.Text)
	}
	return strings.Join(lines[:min(len(lines), 5)], "\n")
}

// compare asks the product, which follows the cluster, before anything is attacked what each
// attacker can become: it names the edge, with the bindings that give it, to those who hold
// all grants, and does not to those who lack one, nor to the former once a grant is taken from
// them.
func (s *scene) compare(t *testing.T, all []escalation, attackers [][]*attacker) {
	t.Helper()
	in := product.New(t)
	newWriter(t, s.Admin(t)).mustPut(t, decodeFile(t, filepath.Join("..", "..", "deploy", "watch-rbac.yaml")))
	kubeconfig := filepath.Join(in.Dir, clusterName+".kubeconfig")
	controlplane.Kubeconfig(t, kubeconfig, s.ServiceAccount(t, s.admin, "retrial", "retrial-watch"))
	server := in.Serve(t, "127.0.0.1:0", "--watch-clusters", clusterName+"="+kubeconfig)
	listed(t, server)
	in.Drained(t)
	named, other := 0, 0
	for i, e := range all {
		for _, a := range attackers[i] {
			// The groups are given: of somebody whom no binding names, no request is known that would carry them.
			text := in.Do(t, "escalations", a.name, "--group", user.AllAuthenticated, "--cluster", clusterName, "--limit", "20",
				"-o", "json").Out
			var answer reachable
			if err := json.Unmarshal([]byte(text), &answer); err != nil {
				t.Fatal(err)
			}
			switch spare := slices.Contains(e.spare, a.without); {
			case e.none || a.without >= 0 && !spare:
				other++
				if len(answer.Paths)+len(answer.Reaches) > 0 {
					t.Errorf("%s: the product names what it cannot do:\n%v", a.name, &answer)
				}
			case e.unnamed != "":
				t.Logf("%s: %s", a.name, e.unnamed)
			default:
				named++
				e.named(t, a, &answer)
			}
		}
	}
	t.Logf("asked before anything was done, the product names the edge to %d attackers, and nothing to %d others", named, other)

	// A grant is taken from everybody, and given back afterwards.
	for i, e := range all {
		attackers[i][0].unbind(t, e.needed())
	}
	for i, e := range all {
		controlplane.Poll(t, "the product to know that "+e.name()+" lost its grant", func(context.Context) (bool, string) {
			var answer reachable
			in.Ask(t, "escalations", url.Values{"cluster": {clusterName}, "subject": {e.name()}, "group": {user.AllAuthenticated}}, &answer)
			return len(answer.Paths)+len(answer.Reaches) == 0, answer.String()
		})
		attackers[i][0].bind(t, e.needed())
	}
}

// needed returns the index of a grant without which the edge is gone.
func (e escalation) needed() int {
	i := 0
	for slices.Contains(e.spare, i) {
		i++
	}
	return i
}

// named compares what the product says of somebody who can go the way.
func (e escalation) named(t *testing.T, a *attacker, answer *reachable) {
	t.Helper()
	bindings, goal := answer.first(e.edge)
	var want []string
	for i := range a.grants {
		if !e.other || !slices.Contains(e.spare, i) {
			want = append(want, a.object(i))
		}
	}
	if a.without < 0 && !slices.Equal(bindings, want) || len(bindings) == 0 {
		t.Errorf("%s: the product names %s by %q, want %q:\n%v", a.name, e.edge, bindings, want, answer)
	}
	if goal == e.namespaced {
		t.Errorf("%s: the product says that %s leads to a goal: %v:\n%v", a.name, e.edge, goal, answer)
	}
	if e.path == nil {
		return
	}
	var path []string
	if len(answer.Paths) > 0 {
		for _, step := range answer.Paths[0].Steps {
			path = append(path, step.Edge)
		}
	}
	if !slices.EqualFunc(path, e.path, func(got, want string) bool { return slices.Contains(strings.Split(want, "|"), got) }) {
		t.Errorf("%s: the product's path is %q, want %q:\n%v", a.name, path, e.path, answer)
	}
}

// first returns the bindings, sorted, that allow a first step of an edge, and whether a path of
// which it is the first leads to a goal.
func (r *reachable) first(edge string) (bindings []string, goal bool) {
	for _, p := range slices.Concat(r.Paths, r.Reaches) {
		if len(p.Steps) == 0 || p.Steps[0].Edge != edge {
			continue
		}
		goal = goal || p.To.Kind == "Goal"
		for _, q := range p.Steps[0].Requests {
			for _, g := range q.Grants {
				bindings = append(bindings, g.Binding[strings.LastIndexByte(g.Binding, '/')+1:])
			}
		}
	}
	slices.Sort(bindings)
	return slices.Compact(bindings), goal
}
