package leastpriv

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// observed is what cluster.ask passes to the Collector.
type observed struct {
	e *event.Event
	v *verdict.Verdict
}

// TestObserveMany: requests taken in together, and in another order, give the same suggestion as
// one by one.
func TestObserveMany(t *testing.T) {
	cl := newCluster(t, clusterRole("root", rule("*", "*", "*")), everywhere("root", "root", user("ann"), user("bob")),
		clusterRole("reader", rule("get", "", "pods")))
	const roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles"
	for range 3 {
		cl.ask("ann", []string{"one"}, "list", "/api/v1/namespaces/a/pods")
		cl.ask("ann", []string{"two"}, "list", "/api/v1/namespaces/a/pods")
		cl.ask("ann", []string{"two", "one"}, "list", "/api/v1/namespaces/a/pods", as("bob", "", "devs"))
		cl.ask("ann", []string{"one"}, "patch", "/api/v1/namespaces/a/configmaps/web", code(201))
		cl.ask("ann", []string{"one"}, "create", "/api/v1/namespaces/a/pods/web/exec")
		cl.ask("ann", []string{"one"}, "get", "/api/v1/namespaces/a/pods/web/exec", code(101))
		cl.ask("ann", []string{"one"}, "create", roles, code(201),
			body(`{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`))
		cl.ask("eve", nil, "list", "/api/v1/secrets")
	}
	text := func(c *Collector) string {
		t.Helper()
		var all []*Suggestion
		advisor := c.Advise(cl.state, newest, Options{Strict: true})
		for _, name := range []string{"ann", "bob", "eve"} {
			s, err := advisor.Suggest(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		out, err := json.MarshalIndent(map[string]any{"suggestions": all, "recording": advisor.Recording()}, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	want := text(cl.collector)
	if len(cl.seen) != 24 || !strings.Contains(want, `"requests": 3`) {
		t.Fatalf("%d requests, %s", len(cl.seen), want)
	}
	backwards := NewCollector()
	for _, o := range slices.Backward(cl.seen) {
		backwards.Observe(o.e, o.v)
	}
	if got := text(backwards); got != want {
		t.Errorf("in another order:\n%s\nwant\n%s", got, want)
	}
	together := NewCollector()
	kinds := len(cl.seen) / 3
	for i := range kinds {
		first, last := cl.seen[i], cl.seen[2*kinds+i]
		together.ObserveMany(first.e, first.v, Count{Requests: 3, First: first.e.RequestReceivedTimestamp,
			Last: last.e.RequestReceivedTimestamp})
	}
	together.ObserveMany(cl.seen[0].e, cl.seen[0].v, Count{}) // none
	if got := text(together); got != want {
		t.Errorf("together:\n%s\nwant\n%s", got, want)
	}
}

func TestUnseen(t *testing.T) {
	sa := "system:serviceaccount:shop:bot"
	cl := newCluster(t, clusterRole("wide", rule("get list", "", "pods secrets")), everywhere("both", "wide", user("ann"), user("zed")),
		everywhere("bot", "wide", subjectOf(sa)), everywhere("all", "wide", group("system:authenticated")))
	cl.ask("ann", nil, "list", "/api/v1/pods")
	advisor := cl.collector.Advise(cl.state, newest, Options{Strict: true})
	unseen := advisor.Unseen()
	if len(unseen) != 2 || unseen[0].Subject != sa || unseen[1].Subject != "zed" || !slices.Equal(unseen[0].Bindings,
		[]string{"ClusterRoleBinding/bot"}) || unseen[0].Excess == 0 {
		t.Errorf("unseen are %+v, want the account and zed", unseen)
	}
	s, err := advisor.Suggest("zed")
	if err != nil {
		t.Fatal(err)
	}
	if s.Seen || len(s.Apply) != 0 || len(s.Remove) != 1 || s.Remove[0].Action != ActionReplace || !s.Proof.Holds ||
		s.Excess.Before != unseen[1].Excess || s.Excess.After != 0 {
		t.Errorf("%+v, want it taken out of its binding and nothing applied", s)
	}
	if len(s.Keeps) != 1 || s.Keeps[0].Group != "system:authenticated" || len(s.Keeps[0].Undoes) == 0 {
		t.Errorf("keeps %+v, want what everybody holds, and that it undoes the change", s.Keeps)
	}
	both, err := advisor.Suggest("ann")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := advisor.Together([]*Suggestion{s, both})
	if err != nil || !plan.Holds || len(plan.Remove) != 1 || plan.Remove[0].Action != ActionDelete {
		t.Errorf("together: %+v, %v; want the shared binding deleted", plan, err)
	}
}

func TestWildcardVerbs(t *testing.T) {
	const base = "/api/v1/namespaces/a/"
	policy := []any{clusterRole("wide", rule("get list create update impersonate", "", "configmaps services secrets serviceaccounts "+
		"pods/log"), rule("create list", "apps", "deployments")),
		everywhere("wide", "wide", user("ann"))}
	use := func(cl *cluster) {
		for _, uri := range []string{"configmaps", "services", "secrets", "serviceaccounts"} {
			cl.ask("ann", nil, "list", base+uri)
		}
		cl.ask("ann", nil, "get", base+"configmaps/web")
		cl.ask("ann", nil, "get", base+"pods/web/log")
		cl.ask("ann", nil, "create", "/apis/apps/v1/namespaces/a/deployments")
	}
	suggest := func(cl *cluster) *Suggestion {
		t.Helper()
		s, err := cl.collector.Advise(cl.state, newest, Options{Strict: true, WildcardVerbs: true}).Suggest("ann")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Run("where nothing speaks against it", func(t *testing.T) {
		cl := newCluster(t, policy...)
		use(cl)
		s := suggest(cl)
		want := []string{"a| * | configmaps,services", "a| * | deployments.apps", "a| get | pods/log | web",
			"a| list | secrets,serviceaccounts"}
		if got := ruleTexts(s); !slices.Equal(got, want) || !s.Proof.Holds {
			t.Errorf("applies\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		rulesAreNecessaryOn(t, cl, s)
	})
	t.Run("not against a refusal on record", func(t *testing.T) {
		cl := newCluster(t, policy...)
		use(cl)
		cl.ask("ann", nil, "delete", base+"configmaps/web")
		s := suggest(cl)
		if got := strings.Join(ruleTexts(s), "\n"); strings.Contains(got, "*") || !s.Proof.Holds ||
			!strings.Contains(strings.Join(s.Gaps, "\n"), "a wildcard may be used") {
			t.Errorf("applies\n%s\nwith gaps %q, want no wildcard and why", got, s.Gaps)
		}
	})
}

// rulesAreNecessaryOn is rulesAreNecessary for one suggestion.
func rulesAreNecessaryOn(t *testing.T, cl *cluster, s *Suggestion) {
	t.Helper()
	a := cl.collector.Advise(cl.state, newest, Options{Strict: true, WildcardVerbs: true})
	if n := rulesAreNecessary(t, a, []*Suggestion{s}); n == 0 {
		t.Error("no rule")
	}
}

// TestReadBack: a suggestion and a plan survive a round trip through JSON.
func TestReadBack(t *testing.T) {
	cl := newCluster(t, clusterRole("wide", rule("get list", "", "pods secrets")), everywhere("both", "wide", user("ann"), user("eve")))
	cl.ask("ann", nil, "list", "/api/v1/namespaces/a/pods")
	s := cl.suggest("ann")
	plan, err := cl.collector.Advise(cl.state, newest, Options{Strict: true}).Together([]*Suggestion{s})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{s, plan} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if err := json.Unmarshal(text, back); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != string(text) {
			t.Errorf("%v\n%s\nwant\n%s", err, again, text)
		}
	}
	for _, bad := range []string{`[{"kind":"Pod"}]`, `[7]`, `7`, `[{"kind":"Role","rules":7}]`} {
		if err := json.Unmarshal([]byte(bad), new(Objects)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

func TestRecordingGaps(t *testing.T) {
	cl := newCluster(t, clusterRole("root", rule("*", "*", "*")), everywhere("root", "root", user("ann")))
	cl.ask("ann", nil, "list", "/api/v1/nodes")
	r := cl.collector.Recording()
	r.Truncated, r.Dropped, r.DeadLetters = 2, 3, 4
	r.Unjudged = map[string]int64{"indeterminate no-state": 5, "ambiguous policy-changed-in-window": 6}
	r.From = began.Add(-24 * time.Hour)
	r.Describe(cl.state, time.Time{})
	all := strings.Join(r.Gaps, "\n")
	for _, want := range []string{"2 events were cut off", "3 requests are past retention", "4 records could not be read",
		"5 requests are not counted: indeterminate no-state",
		"6 requests count as used only where the record", "at its beginning not every ClusterRoleBinding is known"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	if strings.Contains(all, "at its end") || r.Coverage != 1 {
		t.Errorf("coverage %v, gaps\n%s; want nothing unknown at the end", r.Coverage, all)
	}
}
