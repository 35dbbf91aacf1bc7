package workload

import (
	"bytes"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// Weeks are some weeks of a small cluster in which no day is like the one before, for what learns from the past: jobs that run every day,
// week, fortnight and month; controllers that list when they start, and those that only watch until they are restarted with another client;
// namespaces that a pipeline makes and deletes; teams, with namespaces of their own, that come later; people with habits who look at
// something new now and then. Roles grant much more than is used: everything is allowed by a grant to the one who asks. The same seed gives
// the same events.
type Weeks struct {
	Seed uint64
	Days int // 0: 35

	g        *Generator
	policy   policy
	day      time.Time
	accounts int
}

// asks is what an actor of Weeks may ask for.
type asks struct {
	verbs           []string
	group, resource string
}

// Make returns the policy, which does not change, and the events in order.
func (w Weeks) Make() (*observe.Snapshot, []*event.Event, error) {
	if w.Days == 0 {
		w.Days = 35
	}
	w.g = New(Config{Seed: w.Seed})
	start := w.g.cfg.Start
	actors := w.controllers()
	actors = append(actors, w.jobs()...)
	actors = append(actors, w.pipelines()...)
	actors = append(actors, w.apps()...)
	actors = append(actors, w.people()...)
	for d := range w.Days {
		w.day = start.Add(time.Duration(d) * 24 * time.Hour)
		for _, act := range actors {
			act(&w, d)
		}
	}
	events := make([]*event.Event, 0, len(w.g.wait))
	for len(w.g.wait) > 0 {
		events = append(events, heap.Pop(&w.g.wait).(ended).event)
	}
	var b bytes.Buffer
	b.WriteString(`{"apiVersion":"v1","kind":"List","metadata":{},"items":[` + strings.Join(w.policy.items, ",") + `]}`)
	snap, _, err := observe.ReadSnapshot(&b)
	if err != nil {
		return nil, nil, fmt.Errorf("read the made policy: %w", err)
	}
	snap.Since = start.Add(-time.Hour)
	snap.Began, snap.Ended = snap.Since, snap.Since
	return &snap, events, nil
}

// daily is what an actor does on a day.
type daily func(w *Weeks, day int)

// at moves the clock to some moment of the day's hours.
func (w *Weeks) at(from, to int) {
	w.g.now = w.day.Add(time.Duration(from)*time.Hour + time.Duration(w.g.rng.Int64N(int64(to-from)*int64(time.Hour))).Truncate(
		time.Microsecond))
}

// ask makes one request, at some moment of the day.
func (w *Weeks) ask(a *actor, verb, group, resource, namespace, name string) {
	w.at(0, 24)
	resource, sub, _ := strings.Cut(resource, "/")
	c := &call{verb: verb, group: group, version: "v1", resource: resource, sub: sub, namespace: namespace, name: name}
	if verb == "create" && sub == "" {
		c.created, c.name = name, ""
	}
	if verb == "watch" {
		c.query, c.long = "watch=true", 5*time.Minute
	}
	w.g.do(a, c)
}

// account makes a service account whose own role holds the rules, in a namespace, or everywhere if scope is "".
func (w *Weeks) account(namespace, name, scope, rules string) *actor {
	w.accounts++
	role, kind, place := namespace+"."+name, "Cluster", ""
	noted := role
	if scope != "" {
		kind, place, noted = "", fmt.Sprintf(`"namespace":%q,`, scope), role+"/"+scope
	}
	w.policy.add(`{"kind":"%sRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{%s"name":%q,"uid":"r-%d",`+
		`"resourceVersion":"10"},"rules":[%s]}`, kind, place, role, w.accounts, rules)
	w.bind(kind, place, role, kind, role, fmt.Sprintf(`{"kind":"ServiceAccount","name":%q,"namespace":%q}`, name, namespace))
	return w.g.serviceAccount(namespace, name, "", grantReason(kind+"RoleBinding", noted, kind+"Role", role, "ServiceAccount",
		name+"/"+namespace))
}

// bind makes a binding of a role, a ClusterRole if of says Cluster.
func (w *Weeks) bind(kind, place, name, of, role, subject string) {
	w.policy.add(`{"kind":"%sRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{%s"name":%q,"uid":"b-%d",`+
		`"resourceVersion":"10"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"%sRole","name":%q},"subjects":[%s]}`,
		kind, place, name, len(w.policy.items), of, role, subject)
}

// old are the namespaces there are from the beginning.
func old(i int) string { return areas[i%10] + "-prod" }

// controllers hold every verb on what they watch, and much besides. Half of them begin as clients that only watch.
func (w *Weeks) controllers() (out []daily) {
	kinds := []asks{{nil, "", "configmaps"}, {nil, "apps", "deployments"}, {nil, "", "services"}, {nil, "batch", "jobs"}, {nil, "", "pods"},
		{nil, "networking.k8s.io", "ingresses"}, {nil, "", "persistentvolumeclaims"}, {nil, "policy", "poddisruptionbudgets"}}
	for i := range 8 {
		name := controlLoops[i]
		a := w.account("platform", name, "", `{"apiGroups":["","apps","batch","networking.k8s.io","policy"],"resources":["*"],`+
			`"verbs":["*"]},{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["get","list","create","update","delete"]}`)
		own := kinds[i%4 : i%4+4]
		lists := w.Days*(5+i%4)/8 - i // the day from which it lists
		out = append(out, func(w *Weeks, day int) {
			if day == 0 || w.g.rng.IntN(9) == 0 {
				w.ask(a, "get", "coordination.k8s.io", "leases", "platform", name)
				if day == 0 {
					w.ask(a, "create", "coordination.k8s.io", "leases", "platform", name)
				}
				for _, k := range own {
					if i%2 == 0 || day >= lists {
						w.ask(a, "list", k.group, k.resource, "", "")
					}
				}
			}
			w.ask(a, "update", "coordination.k8s.io", "leases", "platform", name)
			for n, k := range own {
				w.ask(a, "watch", k.group, k.resource, "", "")
				for range w.g.rng.IntN(4) {
					w.ask(a, []string{"update", "patch"}[i%2], k.group, k.resource+"/status", w.somewhere(day), w.g.suffix(5))
				}
				if n == 0 {
					w.ask(a, "create", k.group, k.resource, w.somewhere(day), w.g.suffix(5))
				}
				if n == 1 && w.g.rng.IntN(6) == 0 {
					w.ask(a, "delete", k.group, k.resource, w.somewhere(day), w.g.suffix(5))
				}
			}
		})
	}
	return out
}

// jobs run in periods.
func (w *Weeks) jobs() (out []daily) {
	for i, period := range []int{1, 1, 1, 7, 7, 7, 14, 14, 28, 28} {
		a := w.account("jobs", fmt.Sprintf("job-%d", i), "", `{"apiGroups":["","apps"],"resources":["*"],"verbs":["*"]}`)
		does := []asks{{[]string{"list", "get"}, "", "secrets"}, {[]string{"list", "get", "patch"}, "apps", "deployments"},
			{[]string{"list", "delete"}, "", "pods"}, {[]string{"create", "delete"}, "", "configmaps"}}[i%4]
		out = append(out, func(w *Weeks, day int) {
			if (day+i)%period != 0 {
				return
			}
			for n := range 3 {
				for _, verb := range does.verbs {
					name := ""
					if verb != "list" {
						name = fmt.Sprintf("item-%d", n)
					}
					w.ask(a, verb, does.group, does.resource, old(i+n), name)
				}
			}
			if period > 1 && w.g.rng.IntN(4) == 0 { // sometimes there is more to do
				w.ask(a, "create", "", "events", old(i), w.g.suffix(5))
			}
		})
	}
	return out
}

// somewhere returns a namespace there is on a day: one of the beginning, of the pipeline's, or of a later team.
func (w *Weeks) somewhere(day int) string {
	switch n := w.g.rng.IntN(10); {
	case n < 3:
		return fmt.Sprintf("pr-%d", day)
	case n < 5 && day >= 4:
		return fmt.Sprintf("team-%d", w.g.rng.IntN(day/4))
	}
	return old(w.g.rng.IntN(10))
}

// pipelines make a namespace a day, fill it, and delete it two days later; what publishes certificates follows them.
func (w *Weeks) pipelines() []daily {
	a := w.account("ci", "pipeline", "", `{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}`)
	root := w.account("platform", "root-ca", "", `{"apiGroups":[""],"resources":["configmaps"],"verbs":["create","update","get"]}`)
	return []daily{func(w *Weeks, day int) {
		ns := fmt.Sprintf("pr-%d", day)
		w.ask(a, "create", "", "namespaces", "", ns)
		w.ask(root, "create", "", "configmaps", ns, "root-ca")
		for _, k := range []asks{{nil, "apps", "deployments"}, {nil, "", "services"}, {nil, "", "configmaps"}, {nil, "", "secrets"}} {
			w.ask(a, "create", k.group, k.resource, ns, "web")
			w.ask(a, "get", k.group, k.resource, ns, "web")
		}
		w.ask(a, "patch", "apps", "deployments", old(w.g.rng.IntN(10)), "web")
		if day%5 == 3 {
			w.ask(a, "create", "batch", "jobs", ns, "migrate")
		}
		if day >= 2 {
			w.ask(a, "delete", "", "namespaces", "", fmt.Sprintf("pr-%d", day-2))
		}
	}}
}

// apps hold a broad role in their namespaces; a team with one more comes every fourth day.
func (w *Weeks) apps() (out []daily) {
	for i := range 20 + w.Days/4 {
		ns, from := old(i), 0
		if i >= 20 {
			ns, from = fmt.Sprintf("team-%d", i-20), 4*(i-19)
		}
		name := trades[i%len(trades)]
		a := w.account(ns, name, ns, `{"apiGroups":["","coordination.k8s.io","apps"],"resources":["*"],"verbs":["*"]}`)
		out = append(out, func(w *Weeks, day int) {
			if day < from {
				return
			}
			if day == from || w.g.rng.IntN(8) == 0 {
				w.ask(a, "get", "", "secrets", ns, name+"-credentials")
				w.ask(a, "list", "", "configmaps", ns, "")
			}
			w.ask(a, "watch", "", "configmaps", ns, "")
			for range 2 {
				w.ask(a, "get", "", []string{"endpoints", "services", "pods"}[i%3], ns, fmt.Sprintf("%s-%s", name, w.g.suffix(5)))
			}
			w.ask(a, "update", "coordination.k8s.io", "leases", ns, name)
		})
	}
	return out
}

// people have habits, and a request in thirty is something their role has that they have not asked for so far.
func (w *Weeks) people() (out []daily) {
	kinds := []asks{{nil, "", "pods"}, {nil, "apps", "deployments"}, {nil, "", "services"}, {nil, "", "configmaps"}, {nil, "", "pods/log"},
		{nil, "batch", "jobs"}, {nil, "", "events"}, {nil, "networking.k8s.io", "ingresses"}}
	w.accounts++
	w.policy.add(`{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"developer","uid":"r-%d",`+
		`"resourceVersion":"10"},"rules":[{"apiGroups":["","apps","batch","networking.k8s.io"],"resources":["*"],"verbs":["*"]}]}`,
		w.accounts)
	for i := range 12 {
		name := givenNames[i] + "@example.com"
		home := []string{old(i), old(i + 1), old(i + 4)}
		for _, ns := range home {
			w.bind("", fmt.Sprintf(`"namespace":%q,`, ns), "developer-"+givenNames[i], "Cluster", "developer",
				fmt.Sprintf(`{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}`, name))
		}
		a := &actor{user: event.User{Username: name, Groups: []string{"system:authenticated"}}, name: name, agent: "kubectl/v1.36.1",
			ips: []string{fmt.Sprintf("10.128.0.%d", i)}}
		out = append(out, func(w *Weeks, day int) {
			if day%7 >= 5 {
				return
			}
			for range 4 + w.g.rng.IntN(10) {
				k, verb := kinds[(i+w.g.zipf(2.2, 3))%len(kinds)], []string{"get", "list", "get", "list"}[w.g.rng.IntN(4)]
				if w.g.rng.IntN(30) == 0 {
					k, verb = kinds[w.g.rng.IntN(len(kinds))], []string{"get", "list", "watch", "patch", "delete"}[w.g.rng.IntN(5)]
				}
				thing := ""
				if verb != "list" && verb != "watch" {
					thing = trades[w.g.rng.IntN(4)]
				}
				ns := home[w.g.zipf(1.5, 3)]
				a.reason = grantReason("RoleBinding", "developer-"+givenNames[i]+"/"+ns, "ClusterRole", "developer", "User", name)
				w.ask(a, verb, k.group, k.resource, ns, thing)
			}
		})
	}
	return slices.Clip(out)
}
