package detect

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// TestLostJSONPatch: a JSON patch of a role or binding with a lost answer fires the rules about what it may
// have done, however it is written, and no others.
func TestLostJSONPatch(t *testing.T) {
	const (
		roles, bindings = "/apis/rbac.authorization.k8s.io/v1/clusterroles/r", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/b"
		mallory         = `{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mallory"}`
	)
	for _, c := range []struct {
		uri, patch string
		binds      []string
		fires      string // rules, and what the finding says
	}{
		{roles, `[{"op":"add","path":"/rules/-","value":{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}}]`, nil, "dangerous-role"},
		{roles, `[{"op":"replace","path":"/rules","value":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]},{"verbs":["bind"],` +
			`"apiGroups":[""],"resources":["x"]}]}]`, nil, "dangerous-role"},
		{roles, `[{"op":"add","path":"/rules/0/verbs/-","value":"escalate"}]`, nil, "dangerous-role"},
		{roles, `[{"op":"add","path":"x/rules/0/verbs/-","Path":"/metadata/labels","value":"escal\u0061te"}]`, nil, "dangerous-role"},
		{roles, `[{"op":"replace","path":"/rules/0/verbs","value":["*"]}]`, nil, "dangerous-role"},
		{roles, `[{"op":"replace","path":"/rules/0/resources/0","value":"*"}]`, nil, "dangerous-role"},
		{roles, `[{"op":"add","path":"/metadata/annotations/a","value":"impersonate"},{"op":"move","from":"/metadata/annotations/a",` +
			`"path":"/rules/0/verbs/0"}]`, nil, "dangerous-role"},
		{roles, `[{"op":"copy","from":"/metadata/annotations/a","path":"/rules/0/verbs/0"}]`, nil, "dangerous-role"},
		{roles, `[{"op":"move","from":"/rules/0/resources","path":"/rules/0/verbs"}]`, nil, "dangerous-role"},
		{roles, `[{"op":"replace","path":"","value":{"metadata":{"name":"r"},"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}` +
			`]}}]`, nil, "dangerous-role"},
		{roles, `[{"op":"add","path":"/rules/-","value":{"verbs":["get"],"apiGroups":[""],"resources":["*"]}}]`, nil, ""},
		{roles, `[{"op":"add","path":"/rules/-","value":{"verbs":["*"],"nonResourceURLs":["/metrics"]}}]`, nil, ""},
		{roles, `[{"op":"test","path":"/rules/0/verbs/0","value":"bind"},{"op":"remove","path":"/rules/0"}]`, nil, ""},
		{roles, `[{"op":"add","path":"/metadata/labels","value":{"bind":"*"}}]`, nil, ""},
		{bindings, `[{"op":"add","path":"/subjects/-","value":{"kind":"User","name":"system:anonymous"}}]`, []string{"ClusterRole/view"},
			"anonymous-granted system:anonymous"},
		{bindings, `[{"op":"replace","path":"/subjects/0/name","value":"system:unauthenticated"}]`, []string{"ClusterRole/view"},
			"anonymous-granted"},
		{bindings, `[{"op":"copy","from":"/metadata/labels/a","path":"/subjects/0/name"}]`, []string{"ClusterRole/view"},
			"anonymous-granted cluster-admin-binding"},
		{bindings, `[{"op":"add","path":"/subjects/-","value":{"kind":"Group","name":"system:masters"}}]`, []string{"ClusterRole/view"},
			"cluster-admin-binding"},
		{bindings, `[{"op":"add","path":"/subjects/-","value":` + mallory + `}]`, []string{"ClusterRole/cluster-admin"},
			"cluster-admin-binding mallory"},
		{bindings, `[{"op":"add","path":"/roleRef/kind","value":"ClusterRole"},{"op":"add","path":"/subjects/-","value":` + mallory + `}]`,
			[]string{"ClusterRole/cluster-admin"}, "cluster-admin-binding mallory"},
		{bindings, `{"roleRef":{"kind":"ClusterRole"},"subjects":[` + mallory + `]}`, []string{"ClusterRole/cluster-admin"},
			"cluster-admin-binding mallory"},
		{bindings, `[{"op":"add","path":"/subjects/-","value":` + mallory + `}]`, []string{"ClusterRole/view"}, ""},
	} {
		at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
		e := &event.Event{Level: event.LevelRequestResponse, Stage: event.StageResponseComplete, AuditID: "a", Verb: "patch",
			RequestURI: c.uri, RequestObject: []byte(c.patch),
			User: event.User{Username: "eve"}, ResponseStatus: &event.Status{Code: 504},
			Annotations:              event.Pairs{{Key: "authorization.k8s.io/decision", Value: "allow"}},
			RequestReceivedTimestamp: at, StageTimestamp: at.Add(time.Second)}
		v := &verdict.Verdict{Outcome: verdict.OutcomeMatch, Recorded: verdict.DecisionAllow, Binds: c.binds}
		v.Attributes = verdict.Attributes{Verb: "patch", ResourceRequest: true, APIGroup: "rbac.authorization.k8s.io",
			Resource: strings.Split(c.uri, "/")[4], Name: c.uri[len(c.uri)-1:]}
		d := New(builtinSet(t), Config{})
		d.Observe("prod", e, v)
		var fired []string
		says := ""
		for _, f := range d.Flush() {
			if slices.Contains([]string{"dangerous-role", "anonymous-granted", "cluster-admin-binding"}, f.Rule) {
				fired = append(fired, f.Rule)
				says += fmt.Sprint(f)
			}
		}
		want := strings.Fields(c.fires)
		for len(want) > 0 && !strings.Contains(want[len(want)-1], "-") {
			if !strings.Contains(says, want[len(want)-1]) {
				t.Errorf("%s: %s, want %s", c.patch, says, want[len(want)-1])
			}
			want = want[:len(want)-1]
		}
		if slices.Sort(fired); !slices.Equal(fired, want) && len(fired)+len(want) > 0 {
			t.Errorf("%s: fires %v, want %v", c.patch, fired, want)
		}
		if errs := d.Stats().Errors; len(errs) > 0 {
			t.Errorf("%s: %v", c.patch, d.Stats().FirstError)
		}
	}
}

func TestPatchedObject(t *testing.T) {
	type m = map[string]any
	type l = []any
	for patch, want := range map[string]m{
		`[]`: {}, `[7]`: {}, `{}`: {}, `x`: {},
		`[{"op":"add","path":"/metadata/labels/a~1b~0c","value":"x"}]`: {
			"metadata": m{"labels": m{"a/b~c": "x"}}},
		`[{"op":"add","path":"/a","value":{"b":1}},{"op":"add","path":"/a/c","value":null}]`: {
			"a": m{"b": 1.0, "c": nil}},
		`[{"op":"add","path":"/a","value":[1]},{"op":"add","path":"/a/-","value":2},{"op":"add","path":"/a/0","value":3}]`: {"a": l{1.0,
			2.0, 3.0}},
		`[{"op":"add","path":"/a/0/b","value":1},{"op":"add","path":"/a/0/c","value":2}]`: {"a": l{m{"b": 1.0, "c": 2.0}}},
		`[{"op":"add","path":"/a/b","value":1},{"op":"add","path":"/a","value":2}]`:       {"a": 2.0},
		`[{"op":"add","path":"` + strings.Repeat("/a", 100) + `","value":1}]`:             {},
		`[{"op":"move","from":"/a","path":"/b"}]`:                                         {},
	} {
		got := patchedObject([]byte(patch))
		if text, want := fmt.Sprint(got), fmt.Sprint(want); text != want && !reflect.DeepEqual(got, want) {
			t.Errorf("%.80s: %s, want %s", patch, text, want)
		}
	}
}
