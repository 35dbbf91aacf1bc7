package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// fakeSubjects is the part of a fakeStore that knows of subjects.
type fakeSubjects struct {
	usage map[string]queries.SubjectUsage
	limit int // of the last question

	recording queries.Recording
	history   []codec.Alike
	policy    []observe.Observation
	about     []string // subjects of the last history
}

func (f *fakeSubjects) SubjectUsage(_ context.Context, _, subject string, _, _ time.Time, limit int) (queries.SubjectUsage, error) {
	f.limit = limit
	return f.usage[subject], nil
}

func (f *fakeSubjects) NearSubjects(context.Context, string, string, int) ([]string, error) {
	return []string{"ann"}, nil
}

func (f *fakeSubjects) Recording(context.Context, string, time.Time, time.Time) (queries.Recording, error) {
	return f.recording, nil
}

func (f *fakeSubjects) History(_ context.Context, _ string, _, _ time.Time, subjects []string, visit func(codec.Alike) error) error {
	f.about = subjects
	for _, a := range f.history {
		if err := visit(a); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeSubjects) Counted(context.Context, string) (queries.Recording, time.Time, error) {
	return f.recording, f.recording.First, nil
}

func (f *fakeSubjects) Uses(ctx context.Context, cluster string, subjects []string, visit func(verdict.Use) error) error {
	return f.History(ctx, cluster, time.Time{}, time.Time{}, subjects, func(a codec.Alike) error {
		for u := range codec.UsesOf(&verdict.Row{Event: a.Event, Verdict: a.Verdict}) {
			u.Requests, u.First, u.Last = a.Requests, a.First, a.Last
			if err := visit(u); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *fakeSubjects) Untold(_ context.Context, _ string, _ []string, _ bool, visit func(codec.Alike) error) error {
	for _, a := range f.history {
		if !a.Verdict.Untold() {
			continue
		}
		if err := visit(a); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeSubjects) NewestObject(context.Context, string, string, string, string) ([]byte, error) {
	return nil, nil
}

func (f *fakeSubjects) NewestPolicy(_ context.Context, _ string, _ []string, visit func([]byte) error) error {
	for _, o := range f.policy {
		if err := visit(o.Append(nil)); err != nil {
			return err
		}
	}
	return nil
}

// policyOf is a cluster's state with the given RBAC objects, each a JSON object.
func policyOf(t *testing.T, objects ...string) *state.State {
	t.Helper()
	began := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	var list []string
	for i, o := range objects {
		list = append(list, strings.Replace(o, `"metadata":{`,
			fmt.Sprintf(`"metadata":{"uid":"u%d","resourceVersion":"%d","creationTimestamp":"2026-11-20T10:00:00Z",`, i, i+1), 1))
	}
	snap, _, err := observe.ReadSnapshot(strings.NewReader(`{"apiVersion":"v1","kind":"List","items":[` + strings.Join(list, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	snap.Began, snap.Ended, snap.Since, snap.Kinds = began, began, began.Add(-time.Hour), kept.Resources()
	st := state.New("c")
	if _, err := st.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	return st
}

const (
	readerRole = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"reader"},` +
		`"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]},{"verbs":["list"],"apiGroups":[""],"resources":["secrets"]}]}`
	annReads = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"ann-reads"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},` +
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}]}`
	devsRead = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"devs-read","namespace":"shop"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},` +
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"devs"}]}`
	botReads = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"bot-reads","namespace":"shop"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},"subjects":[{"kind":"ServiceAccount",` +
		`"name":"bot","namespace":"shop"}]}`
)

func TestAPISubject(t *testing.T) {
	at := time.Date(2026, 11, 20, 11, 36, 0, 0, time.UTC)
	f := &fakeStore{known: policyOf(t, readerRole, annReads, devsRead, botReads)}
	f.usage = map[string]queries.SubjectUsage{"ann": {
		Groups: [][]string{{"devs", "system:authenticated"}}, First: at, Last: at.Add(time.Minute), Requests: 5, Forbidden: 2, Drift: 1,
		More: true,
		Uses: []queries.Use{{Verb: "get", Resource: "pods", Namespace: "shop", Requests: 5, Allowed: 3, Forbidden: 2, First: at,
			Last: at.Add(time.Minute)}},
		Grants: []queries.GrantUse{{Grant: verdict.Grant{BindingKind: "ClusterRoleBinding", Binding: "ann-reads", RoleKind: "ClusterRole",
			Role:        "reader",
			SubjectKind: "User", Subject: "ann"}, Requests: 3, Last: at}},
	}}
	t.Run("did, could, never did", func(t *testing.T) {
		s := decodeAnswer[query.Doings](t, askFake(t, f, http.MethodGet, "subject?cluster=c&subject=ann"))
		if s.Requests != 5 || s.Forbidden != 2 || s.Drift != 1 || !s.More || s.First == nil || !s.First.Equal(at) ||
			s.GroupsFrom != "requests" || f.limit != query.MostUses {
			t.Errorf("got %+v", s)
		}
		if len(s.Usage) != 1 || s.Usage[0].Allowed != 3 || s.Usage[0].Resource != "pods" {
			t.Errorf("usage %+v", s.Usage)
		}
		var got []string
		for _, r := range s.Rules {
			got = append(got, fmt.Sprint(r.Binding, " ", r.GrantNames.Rule, " ", r.Subject, " ", r.Own, " ", r.Scope, " ", r.Requests))
		}
		want := []string{
			"ClusterRoleBinding/ann-reads 1 User/ann true  0", "ClusterRoleBinding/ann-reads 0 User/ann true  3",
			"RoleBinding/shop/devs-read 0 Group/devs false shop 0", "RoleBinding/shop/devs-read 1 Group/devs false shop 0",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || !s.Known {
			t.Errorf("rules\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	t.Run("never seen, but bound", func(t *testing.T) {
		s := decodeAnswer[query.Doings](t, askFake(t, f, http.MethodGet, "subject?cluster=c&subject=system:serviceaccount:shop:bot"))
		if s.Requests != 0 || s.First != nil || s.GroupsFrom != "name" || len(s.Rules) != 2 ||
			s.Rules[0].Subject != "ServiceAccount/shop/bot" {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		w := askFake(t, f, http.MethodGet, "subject?cluster=c&subject=eve")
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `no request of "eve"`) {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	})
	t.Run("no state", func(t *testing.T) {
		f := &fakeStore{fakeSubjects: f.fakeSubjects}
		if s := decodeAnswer[query.Doings](t, askFake(t, f, http.MethodGet, "subject?cluster=c&subject=ann")); s.Known ||
			len(s.Rules) != 0 || s.Requests != 5 {
			t.Errorf("got %+v", s)
		}
	})
	for path, says := range map[string]string{"subject?subject=ann": "cluster is missing", "subject?cluster=c": "subject is missing",
		"subject?cluster=c&name=x": "no parameter"} {
		if w := askFake(t, f, http.MethodGet, path); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d: %s", path, w.Code, w.Body)
		}
	}
}
