package state_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// day makes the policy writes of a busy cluster's day, in order: applications that are
// deployed again and again (roles and bindings rewritten, often with the same meaning),
// namespaces that come with their bindings and service accounts and go, people who are given
// a role and lose it.
type day struct {
	*rand.Rand
	at   time.Time
	step time.Duration
	rv   int
	uids int
	live []string // namespaces of previews
	uid  map[string]string
	out  []observe.Observation
}

func newDay(seed uint64, step time.Duration) *day {
	return &day{Rand: rand.New(rand.NewPCG(seed, 11)), at: benchStart, step: step, rv: 1000, uid: map[string]string{}}
}

func (d *day) write(resource, kind, ns, name, rest string) {
	k := resource + "/" + ns + "/" + name
	if d.uid[k] == "" {
		d.uids++
		d.uid[k] = fmt.Sprintf("6c31089b-aea6-4adc-97c8-%012d", d.uids)
	}
	d.rv++
	d.at = d.at.Add(d.step)
	scope := ""
	if ns != "" {
		scope = fmt.Sprintf(`"namespace":%q,`, ns)
	}
	group := `"rbac.authorization.k8s.io/v1"`
	if resource == kept.Namespaces || resource == kept.ServiceAccounts {
		group = `"v1"`
	}
	rv := fmt.Sprint(d.rv)
	d.out = append(d.out, observe.Observation{
		Source: observe.SourceAudit, Resource: resource, Namespace: ns, Name: name, UID: d.uid[k], ResourceVersion: rv, NotBefore: d.at,
		NotAfter: d.at.Add(4 * time.Millisecond),
		Object: fmt.Appendf(nil, `{"apiVersion":%s,"kind":%q,"metadata":{%s"name":%q,"uid":%q,"resourceVersion":%q}%s}`, group, kind,
			scope, name, d.uid[k], rv, rest),
	})
}

func (d *day) remove(resource, ns, name string) {
	k := resource + "/" + ns + "/" + name
	d.at = d.at.Add(d.step)
	d.out = append(d.out, observe.Observation{Source: observe.SourceAudit, Resource: resource, Namespace: ns, Name: name, UID: d.uid[k],
		Deleted: true, NotBefore: d.at, NotAfter: d.at.Add(4 * time.Millisecond)})
	delete(d.uid, k)
}

func (d *day) binding(resource, kind, ns, name, role, subject string) {
	d.write(resource, kind, ns, name, fmt.Sprintf(`,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},`+
		`"subjects":[%s]`, role, subject))
}

func account(ns, name string) string {
	return fmt.Sprintf(`{"kind":"ServiceAccount","name":%q,"namespace":%q}`, name, ns)
}

// writes makes at least n of them and returns the first n.
func (d *day) writes(n int) []observe.Observation {
	for len(d.out) < n {
		switch p := d.IntN(100); {
		case p < 45: // an application is deployed
			ns, app := fmt.Sprint("team-", d.IntN(300)), fmt.Sprint("app-", d.IntN(6))
			verbs := `"get","list","watch"`
			if d.IntN(5) == 0 {
				verbs = `"get","list","watch","patch"`
			}
			d.write(kept.Roles, "Role", ns, app, fmt.Sprintf(`,"rules":[{"apiGroups":[""],"resources":["configmaps","secrets"],`+
				`"verbs":[%s]},{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["get","create","update"]}]`, verbs))
			d.binding(kept.RoleBindings, "RoleBinding", ns, app, "view", account(ns, app))
		case p < 75: // a preview comes
			ns := fmt.Sprint("preview-", d.uids)
			d.live = append(d.live, ns)
			d.write(kept.Namespaces, "Namespace", "", ns, "")
			d.write(kept.ServiceAccounts, "ServiceAccount", ns, "default", "")
			for _, app := range []string{"web", "worker"} {
				d.write(kept.ServiceAccounts, "ServiceAccount", ns, app, "")
				d.binding(kept.RoleBindings, "RoleBinding", ns, app, "edit", account(ns, app))
			}
		case p < 95 && len(d.live) > 40: // another goes
			i := d.IntN(len(d.live))
			ns := d.live[i]
			d.live = append(d.live[:i], d.live[i+1:]...)
			for _, app := range []string{"web", "worker"} {
				d.remove(kept.RoleBindings, ns, app)
				d.remove(kept.ServiceAccounts, ns, app)
			}
			d.remove(kept.ServiceAccounts, ns, "default")
			d.remove(kept.Namespaces, "", ns)
		default: // somebody gets a role, or has it taken away
			name := fmt.Sprint("on-call-", d.IntN(50))
			if d.uid[kept.ClusterRoleBindings+"//"+name] != "" {
				d.remove(kept.ClusterRoleBindings, "", name)
			} else {
				d.binding(kept.ClusterRoleBindings, "ClusterRoleBinding", "", name, "admin",
					fmt.Sprintf(`{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"person-%d"}`, d.IntN(400)))
			}
		}
	}
	return d.out[:n]
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The bounds that docs/bench.md states: what a State weighs for each version it keeps, and
// what all the views add that it keeps after every moment was asked about.
const (
	boundVersion = 1536     // bytes
	boundViews   = 96 << 20 // bytes, for any history of this size
)

// TestDayStaysWithinItsBytes applies the 100,000 writes of a day and asks for the policy after
// every tenth, in order and then anywhere.
func TestDayStaysWithinItsBytes(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 20_000
	}
	all := newDay(1, 24*time.Hour/time.Duration(n)).writes(n)
	obs := all
	before := heap()
	s := state.New("c")
	for len(obs) > 0 {
		s.Apply(obs[:min(len(obs), 100)]...)
		obs = obs[min(len(obs), 100):]
	}
	stored := heap()
	for i := range n / 10 {
		s.RBAC(benchStart.Add(time.Duration(i) * 24 * time.Hour / time.Duration(n/10)))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s.RBAC(benchStart.Add(time.Duration(rng.Int64N(int64(24 * time.Hour)))))
	}
	viewed := heap()
	st := s.Stats()
	t.Logf("%d writes: %d objects, %d versions, %d changes of RBAC; %.0f bytes a version, %.1f MB in all; views %.1f MB", n, st.Objects,
		st.Versions, st.Changes,
		float64(stored-before)/float64(n), float64(stored-before)/1e6, float64(viewed-stored)/1e6)
	if per := (stored - before) / int64(n); per > boundVersion {
		t.Errorf("%d bytes a version, the bound is %d", per, boundVersion)
	}
	if viewed-stored > boundViews {
		t.Errorf("%d bytes of views, the bound is %d", viewed-stored, boundViews)
	}
	had := st.Versions
	if dropped := s.Prune(benchStart.Add(12 * time.Hour)); dropped < had/4 {
		t.Errorf("half a day pruned: %d of %d versions went", dropped, had)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(all)
}

// BenchmarkAt looks a moment up that was asked about before, and one of which the policy must
// be worked out, in histories of many lengths.
func BenchmarkAt(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		var s *state.State
		span := 24 * time.Hour
		step := span / time.Duration(n)
		b.Run(fmt.Sprintf("versions=%d/warm", n), func(b *testing.B) {
			if s == nil {
				s = state.New("c")
				d := newDay(1, step)
				for i := 0; i < n; i += 1000 { // in pieces: the text of a million is large
					s.Apply(d.writes(1000)...)
					d.out = d.out[1000:]
				}
			}
			var at [64]time.Time
			for i := range at {
				at[i] = benchStart.Add(span * time.Duration(i) / 64)
				s.RBAC(at[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.RBAC(at[i&63])
			}
		})
		b.Run(fmt.Sprintf("versions=%d/anywhere", n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(3, 4))
			for i := range 4096 { // as a replay of the day would
				s.RBAC(benchStart.Add(span * time.Duration(i) / 4096))
			}
			for b.Loop() {
				s.RBAC(benchStart.Add(time.Duration(rng.Int64N(int64(span)))))
			}
		})
	}
}
