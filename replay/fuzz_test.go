package replay

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// FuzzReplay judges whatever decodes as an event: nothing panics, every verdict is one
// valid line of JSON, outcome and class belong together, and taking the record out of the
// event does not change the decision.
func FuzzReplay(f *testing.F) {
	for _, raw := range []string{
		`{"verb":"list","requestURI":"/api/v1/pods","user":{"username":"alice","groups":["devs"]},` +
			`"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by ClusterRoleBinding ` +
			`\"b\" of ClusterRole \"r\" to Group \"devs\""},"requestReceivedTimestamp":"2026-05-04T11:00:00.000000Z",` +
			`"stageTimestamp":"2026-05-04T11:00:01.000000Z","stage":"ResponseComplete","responseStatus":{"code":200}}`,
		`{"verb":"get","requestURI":"/api/v1/nodes/x","user":{"username":"system:node:n","groups":["system:nodes"]},` +
			`"annotations":{"authorization.k8s.io/decision":"forbid","authorization.k8s.io/reason":"RBAC: [a, ` +
			`b]"},"stage":"ResponseStarted"}`,
		`{"verb":"create","requestURI":"/api/v1/namespaces/x/pods","user":{"username":"sue"},` +
			`"impersonatedUser":{"username":"system:serviceaccount:a:b","uid":"u","groups":["system:masters"],"extra":{"k":["v","w"]}},` +
			`"authenticationMetadata":{"impersonationConstraint":"impersonate:user-info"},` +
			`"annotations":{"authorization.k8s.io/decision":"allow"},"responseStatus":{"code":403,"message":"pods \"x\" is ` +
			`forbidden: [node \"a\""}}`,
		`{"verb":"watch","requestURI":"/api/v1/watch","user":{"username":"system:serviceaccount::"}}`,
	} {
		f.Add([]byte(raw))
	}
	s := state.New("fuzz")
	snap := observe.Snapshot{Kinds: kept.Resources(), Began: time.Unix(0, 0), Ended: time.Unix(0, 0)}
	for _, o := range []any{
		&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "1",
			ResourceVersion: "1"},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list", "impersonate"}}}},
		&rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "2",
			ResourceVersion: "2"},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "devs"},
				{Kind: "User", Name: "sue"}}},
	} {
		raw, err := json.Marshal(o)
		if err != nil {
			f.Fatal(err)
		}
		obs := observe.Observation{Source: observe.SourceSnapshot, Object: raw}
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			obs.Resource, obs.Name, obs.UID, obs.ResourceVersion = kept.ClusterRoles, o.Name, string(o.UID), o.ResourceVersion
		case *rbacv1.ClusterRoleBinding:
			obs.Resource, obs.Name, obs.UID, obs.ResourceVersion = kept.ClusterRoleBindings, o.Name, string(o.UID), o.ResourceVersion
		}
		snap.Objects = append(snap.Objects, obs)
	}
	if _, err := s.LoadSnapshot(snap); err != nil {
		f.Fatal(err)
	}
	configured := &config.APIServer{Digest: "fuzz"}
	configured.Authorization.Authorizers = []config.Authorizer{
		{Type: config.AlwaysDeny, Name: "alwaysdeny"}, {Type: config.Node, Name: "node"},
		{Type: config.Webhook, Name: "guard", Webhook: &config.WebhookOptions{FailurePolicy: "Deny",
			MatchConditions: []string{`request.resourceAttributes.namespace == "x"`, `request.user != "sue"`}}},
		{Type: config.ABAC, Name: "abac", Policy: &config.Policy{Lines: []config.PolicyLine{{Line: 1, User: "alice", Readonly: true,
			NonResourcePath: "*", Resource: "*"}}}},
		{Type: config.RBAC, Name: "rbac"},
	}
	history := &config.History{}
	history.Add(time.Time{}, configured)
	engines := []*Engine{New(Config{}), New(Config{Apiserver: func(string, string) *config.History { return history }})}
	outcomes := map[string]verdict.Outcome{"": verdict.OutcomeMatch}
	for _, c := range verdict.Classes() {
		outcomes[c.Class] = c.Outcome
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := event.Decode(raw)
		if err != nil {
			t.Skip()
		}
		for i := range 2 * len(engines) {
			eng, s := engines[i/2], []*state.State{nil, s}[i%2]
			v := eng.Replay(e, s)
			if want, ok := outcomes[v.Class]; !ok || want != v.Outcome {
				t.Fatalf("outcome %s with class %q", v.Outcome, v.Class)
			}
			if v.Outcome != verdict.OutcomeMatch && v.Cause == "" {
				t.Fatalf("%s %s without a cause", v.Outcome, v.Class)
			}
			if len(v.Evidence) != len(v.Identity) {
				t.Fatalf("contradictions %q, evidence %q", v.Identity, v.Evidence)
			}
			line, err := v.AppendLine(nil, e)
			if err != nil || !json.Valid(line) {
				t.Fatalf("%v: %s", err, line)
			}
			stripped := *e
			stripped.Annotations, stripped.ResponseStatus = nil, nil
			w := eng.Replay(&stripped, s)
			if w.Replayed != v.Replayed || w.Authorizer != v.Authorizer || len(w.Grants) != len(v.Grants) || !slices.Equal(w.Chain,
				v.Chain) {
				t.Fatalf("with the record %s by %s, without %s by %s", v.Replayed, v.Authorizer, w.Replayed, w.Authorizer)
			}
		}
	})
}
