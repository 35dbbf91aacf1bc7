package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

const (
	reader2 = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"reader","uid":"u0",` +
		`"resourceVersion":"200","creationTimestamp":"2026-11-20T10:00:00Z"},"rules":[{"verbs":["get","watch"],"apiGroups":[""],` +
		`"resources":["pods"]}]}`
	annAll = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"ann-all","uid":"u90",` +
		`"resourceVersion":"300","creationTimestamp":"2026-11-20T11:20:00Z"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",` +
		`"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}]}`
)

// changingState is accessState whose role reader is rewritten at 11:10, and in which ann is made
// administrator at 11:20.
func changingState(t *testing.T) (*state.State, []verdict.Row) {
	t.Helper()
	st := accessState(t)
	at := func(minute, milli int) time.Time {
		return time.Date(2026, 11, 20, 11, minute, 0, milli*1_000_000, time.UTC)
	}
	st.Apply(
		observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoles, Name: "reader", UID: "u0", ResourceVersion: "200",
			Object: []byte(reader2), NotBefore: at(10, 0), NotAfter: at(10, 5)},
		observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoleBindings, Name: "ann-all", UID: "u90",
			ResourceVersion: "300", Created: true, Object: []byte(annAll), NotBefore: at(20, 0), NotAfter: at(20, 5)},
	)
	row := func(id, verb, resource, name string, minute int) verdict.Row {
		return verdict.Row{Cluster: "c",
			Event: &event.Event{AuditID: id, Stage: event.StageResponseComplete, Verb: verb, User: event.User{Username: "root"},
				ObjectRef:                &event.ObjectRef{APIGroup: "rbac.authorization.k8s.io", Resource: resource, Name: name},
				RequestReceivedTimestamp: at(minute, 0), StageTimestamp: at(minute, 5)}}
	}
	return st, []verdict.Row{
		row("get", "get", "clusterroles", "reader", 10), row("other", "update", "clusterroles", "another", 10),
		row("id-role", "update", "clusterroles", "reader", 10), row("id-binding", "create", "clusterrolebindings", "ann-all", 20),
	}
}

// changesText writes an answer down, a line a rule and a write.
func changesText(a query.ChangesAnswer) string {
	var b strings.Builder
	for _, s := range a.Subjects {
		for _, scope := range s.Scopes {
			head := s.Kind + " " + s.Namespace + "/" + s.Name + " " + scope.Namespace
			for sign, rules := range map[string][]query.ChangedRule{"+": scope.Gained, "-": scope.Lost} {
				for _, r := range rules {
					b.WriteString(head + sign + list(r.Verbs) + ruleWords(&r.Rule))
					for _, e := range r.Except {
						b.WriteString(" except " + list(e.Verbs) + ruleWords(&e))
					}
					b.WriteString(" < " + strings.Join(r.Because, ",") + "\n")
				}
			}
		}
	}
	for _, w := range a.Writes {
		b.WriteString(w.Object + " " + w.What + " " + w.NotAfter.Format("15:04") + " " + w.AuditID + " " + w.User + "\n")
	}
	return b.String()
}

func TestAPIChanges(t *testing.T) {
	const role = "ClusterRole/reader written 11:10 id-role root\n"
	const devs = "Group /devs shop-[list]secrets < ClusterRole/reader\n"
	const bot = "ServiceAccount shop/bot shop-[list]secrets < ClusterRole/reader\n"
	for _, c := range []struct {
		name, query, want string
		lines             bool // in any order
	}{
		{"nothing", "from=2026-11-20T11:11:00Z&to=2026-11-20T11:12:00Z", "", false},
		{"a user", "from=2026-11-20T11:15:00Z&to=2026-11-20T11:25:00Z&subject=ann",
			"User /ann +[*]*.* except [get watch]pods < ClusterRoleBinding/ann-all\nUser /ann +[*]* except [get]/healthz /api/* < " +
				"ClusterRoleBinding/ann-all\nClusterRoleBinding/ann-all written 11:20 id-binding root\n", true},
		{"a group", "from=2026-11-20T11:05:00Z&to=2026-11-20T11:15:00Z&subject=group:devs",
			"Group /devs shop+[watch]pods < ClusterRole/reader\n" + devs + role, true},
		{"a group whose binding went", "from=2026-11-20T11:25:00Z&to=2026-11-20T11:35:00Z&subject=group:devs",
			"Group /devs shop-[get watch]pods < RoleBinding/shop/devs-read\nRoleBinding/shop/devs-read deleted 11:30  \n", false},
		{"a subject nothing concerns", "from=2026-11-20T11:05:00Z&subject=zoe", "", false},
		{"everybody", "from=2026-11-20T11:05:00Z&to=2026-11-20T11:15:00Z",
			"Group /devs shop+[watch]pods < ClusterRole/reader\n" + devs +
				"ServiceAccount shop/bot shop+[watch]pods < ClusterRole/reader\n" + bot +
				"User /ann +[watch]pods < ClusterRole/reader\nUser /ann -[list]secrets < ClusterRole/reader\n" + role, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeStore{}
			f.known, f.rows = changingState(t)
			got := decodeAnswer[query.ChangesAnswer](t, askFake(t, f, http.MethodGet, "changes?cluster=c&"+c.query))
			a, b := strings.Split(changesText(got), "\n"), strings.Split(c.want, "\n")
			if len(a) != len(b) {
				t.Fatalf("got\n%s\nwant\n%s", changesText(got), c.want)
			}
			for i := range b {
				if !c.lines && a[i] != b[i] || !strings.Contains("\n"+changesText(got)+"\n", "\n"+b[i]+"\n") {
					t.Errorf("missing %q in\n%s", b[i], changesText(got))
				}
			}
			if f.looked > 1 {
				t.Errorf("the store was asked %d times for writes", f.looked)
			}
			out, _ := printed(printChanges, &got)
			for _, s := range got.Subjects {
				if !strings.Contains(out, s.Name) {
					t.Errorf("%s is not printed:\n%s", s.Name, out)
				}
			}
		})
	}
}

func TestAPIChangesOfWhatIsNotKnown(t *testing.T) {
	f := &fakeStore{}
	f.known, f.rows = changingState(t)
	got := decodeAnswer[query.ChangesAnswer](t,
		askFake(t, f, http.MethodGet, "changes?cluster=c&from=2026-11-20T09:30:00Z&to=2026-11-20T11:45:00Z"))
	if got.Known || len(got.MissingBefore) == 0 || strings.Join(got.MissingAfter, ",") != "ClusterRoleBinding/ann-reads" {
		t.Errorf("known %t, missing before %v, after %v", got.Known, got.MissingBefore, got.MissingAfter)
	}
	if _, s := printed(printChanges, &got); !strings.Contains(s, "at the first moment") || !strings.Contains(s,
		"at the second: ClusterRoleBinding/ann-reads (it was written by 2026-11-20T11:40:00Z, and what was written was not recorded)") {
		t.Error(s)
	}
}

func TestAPIChangesRefuses(t *testing.T) {
	f := &fakeStore{}
	f.known, f.rows = changingState(t)
	for query, want := range map[string]int{
		"":                         http.StatusBadRequest,
		"cluster=c":                http.StatusBadRequest,
		"cluster=c&from=yesterday": http.StatusBadRequest,
		"cluster=c&from=2026-11-20T11:10:00Z&to=2026-11-20T11:09:00Z": http.StatusBadRequest,
		"cluster=c&from=2026-11-20T11:10:00Z&group=devs":              http.StatusBadRequest,
		"cluster=c&from=2026-11-20T11:10:00Z&subject=group:":          http.StatusBadRequest,
		"cluster=c&from=2026-11-20T11:10:00Z&subject=group:x&group=y": http.StatusBadRequest,
	} {
		if code := askFake(t, f, http.MethodGet, "changes?"+query).Code; code != want {
			t.Errorf("%q: %d, want %d", query, code, want)
		}
	}
}
