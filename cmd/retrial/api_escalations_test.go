package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

const (
	podderRole = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"namespace":"shop","name":"podder"},` +
		`"rules":[{"verbs":["create"],"apiGroups":[""],"resources":["pods"]}]}`
	devsPod = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"namespace":"shop","name":"devs-pod"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"podder"},` +
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"devs"}]}`
	robotAdmin = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"robot-admin"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},` +
		`"subjects":[{"kind":"ServiceAccount","namespace":"shop","name":"robot"}]}`
	robot       = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"namespace":"shop","name":"robot"}}`
	schedulerIs = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"sched"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},` +
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"system:kube-scheduler"}]}`
	openToAll = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"namespace":"shop","name":"open"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},` +
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:unauthenticated"}]}`
)

// escalatingState has devs create pods beside an all-powerful service account until 11:30, when
// the binding of that one goes.
func escalatingState(t *testing.T) *state.State {
	t.Helper()
	st := policyOf(t, adminRole, mastersAll, podderRole, devsPod, robotAdmin, robot, schedulerIs, readerRole, botReads, openToAll,
		danglingRB, everybody, everybodyIs)
	gone := time.Date(2026, 11, 20, 11, 30, 0, 0, time.UTC)
	st.Apply(observe.Observation{Source: observe.SourceWatch, Resource: kept.ClusterRoleBindings, Name: "robot-admin", UID: "u4",
		ResourceVersion: "100", Deleted: true, NotBefore: gone, NotAfter: gone})
	return st
}

func TestAPIEscalations(t *testing.T) {
	f := &fakeStore{known: escalatingState(t)}
	f.groups, f.seen = map[string][]string{"ann": {"devs"}}, time.Date(2026, 11, 20, 11, 10, 0, 0, time.UTC)
	const before, after = "&at=2026-11-20T11:29:00Z", "&at=2026-11-20T11:31:00Z"
	const way = " → (pod-create in shop by RoleBinding/shop/devs-pod) → ServiceAccount shop/robot, which is cluster-admin by " +
		"ClusterRoleBinding/robot-admin"
	const bot = "ServiceAccount shop/bot → (secret-token in shop by RoleBinding/shop/bot-reads) → ServiceAccount shop/robot, which is " +
		"cluster-admin by ClusterRoleBinding/robot-admin"
	const is = "ServiceAccount shop/robot, which is cluster-admin by ClusterRoleBinding/robot-admin"
	for _, c := range []struct {
		name, query string
		want        string // a line a path
		reaches     string
		system      int
	}{
		{name: "everybody", query: before, want: is + "\nGroup devs" + way + "\n" + bot, system: 3},
		{name: "at most one", query: before + "&limit=1", want: is, system: 3},
		{name: "with those of Kubernetes", query: before + "&includeSystem=true&limit=3",
			want: "Group system:masters\n" + is + "\nUser system:kube-scheduler, which is cluster-admin by ClusterRoleBinding/sched"},
		{name: "when the binding is gone", query: after, system: 2},
		{name: "a user by the groups of its requests", query: before + "&subject=ann&limit=3", want: "User ann" + way,
			reaches: "ServiceAccount/robot ServiceAccount/bot Group/system:serviceaccounts:shop"},
		{name: "a user by no group", query: before + "&subject=ben"},
		{name: "a user by a group asked about", query: before + "&subject=ben&group=devs&limit=3", want: "User ben" + way,
			reaches: "ServiceAccount/robot ServiceAccount/bot Group/system:serviceaccounts:shop"},
		{name: "a group", query: after + "&subject=group:devs", reaches: "ServiceAccount/robot ServiceAccount/bot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := decodeAnswer[query.EscalationsAnswer](t, askFake(t, f, http.MethodGet, "escalations?cluster=c"+c.query))
			var paths, reaches []string
			for _, p := range a.Paths {
				paths = append(paths, p.Text)
			}
			for _, p := range a.Reaches {
				reaches = append(reaches, p.To.Kind+"/"+p.To.Name)
			}
			if got := strings.Join(paths, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := strings.Join(reaches, " "); got != c.reaches || a.System != c.system || !a.Known || !a.AccountsKnown {
				t.Errorf("reaches %q, %d of the system, known %t %t", got, a.System, a.Known, a.AccountsKnown)
			}
		})
	}
	a := decodeAnswer[query.EscalationsAnswer](t, askFake(t, f, http.MethodGet, "escalations?cluster=c&subject=ann"+before))
	step := a.Paths[0].Steps[0]
	if step.Edge != "pod-create" || step.Namespace != "shop" || len(step.Requests) != 1 || step.Requests[0].Verb != "create" ||
		step.Requests[0].Resource != "pods" ||
		len(step.Requests[0].Grants) != 1 || step.Requests[0].Grants[0].Subject != "Group/devs" || len(a.Paths[0].Holds) != 1 {
		t.Errorf("step %+v, holds %+v", step, a.Paths[0].Holds)
	}
	for query, want := range map[string]string{"": "cluster is missing", "cluster=c&limit=0": "limit",
		"cluster=c&subject=group:": "the name is missing", "cluster=c&includeSystem=yes": "includeSystem"} {
		w := askFake(t, f, http.MethodGet, "escalations?"+query)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

// TestEscalationsTooLarge: of whom it takes too much work to tell, the answer does not say that
// nothing is reached.
func TestEscalationsTooLarge(t *testing.T) {
	needWhole(t)
	objects := []string{adminRole, mastersAll, readerRole, botReads}
	for i := range 4000 { // each lets the next be bound
		objects = append(objects,
			fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r%d"},`+
				`"rules":[{"verbs":["bind"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],`+
				`"resourceNames":["r%d"]},{"verbs":["create"],"apiGroups":["rbac.authorization.k8s.io"],`+
				`"resources":["clusterrolebindings"]}]}`, i, i+1))
	}
	objects = append(objects, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"chain"},`+
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r0"},`+
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"eve"}]}`)
	f := &fakeStore{known: policyOf(t, objects...)}
	a := decodeAnswer[query.EscalationsAnswer](t, askFake(t, f, http.MethodGet, "escalations?cluster=c"))
	if a.TooLargeCount != 1 || len(a.TooLarge) != 1 || a.TooLarge[0].Name != "eve" {
		t.Errorf("too large are %d: %+v", a.TooLargeCount, a.TooLarge)
	}
	if out, _ := printed(printEscalations, &a); !strings.Contains(out, "Too large to check: 1 subject") ||
		!strings.Contains(out, "  User eve\n") {
		t.Error(out)
	}
	for subject, want := range map[string]string{"eve": "Too large to check", "ben": "It reaches neither"} {
		a := decodeAnswer[query.EscalationsAnswer](t, askFake(t, f, http.MethodGet, "escalations?cluster=c&subject="+subject))
		if out, _ := printed(printReached, &a); len(a.Paths) > 0 || !strings.Contains(out, want) ||
			strings.Count(out, "It reaches neither")+a.TooLargeCount != 1 {
			t.Errorf("%s: %d too large\n%s", subject, a.TooLargeCount, out)
		}
	}
}

func TestAPIHygiene(t *testing.T) {
	f := &fakeStore{known: escalatingState(t)}
	a := decodeAnswer[query.HygieneAnswer](t, askFake(t, f, http.MethodGet, "hygiene?cluster=c"))
	var got []string
	for _, x := range a.Flaws {
		line := x.Kind + " " + x.Object + " " + strings.Join(x.Subjects, ",")
		if x.Idle {
			line += " idle"
		}
		got = append(got, line)
	}
	want := []string{
		"everybody ClusterRoleBinding/discovery Group/system:authenticated",
		"everybody RoleBinding/shop/open Group/system:unauthenticated",
		"missing-subject RoleBinding/shop/bot-reads ServiceAccount/shop/bot",
		"missing-role RoleBinding/shop/dangling  idle",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || !a.AccountsKnown {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// Before anything was known no service account is said to be missing.
	a = decodeAnswer[query.HygieneAnswer](t, askFake(t, f, http.MethodGet, "hygiene?cluster=c&at=2026-11-20T09:00:00Z"))
	if a.AccountsKnown || a.Known || len(a.Flaws) != 0 {
		t.Errorf("got %+v", a)
	}
}
