package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// keeper is a producer that keeps the values of what it is given.
type keeper map[string][][]byte

func (k keeper) Produce(_ context.Context, recs ...stream.Record) error {
	for _, r := range recs {
		k[r.Topic] = append(k[r.Topic], slices.Clone(r.Value))
	}
	return nil
}

// received posts one event to a receiver and returns what it sent on of it.
func received(t *testing.T, cfg webhook.Config, audit map[string]any) (policy, events []*event.Event) {
	t.Helper()
	cfg.Trusted = true
	sent := keeper{}
	h, err := webhook.New(cfg, sent, redact.New([]byte("0123456789abcdef")), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": []any{audit}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/v1/clusters/prod/audit", strings.NewReader(string(body))))
	if w.Code != 200 || len(sent[stream.TopicDeadLetter]) > 0 {
		t.Fatalf("%d %.300s, dead letters %.300s", w.Code, w.Body, sent[stream.TopicDeadLetter])
	}
	decode := func(topic string) (out []*event.Event) {
		for _, value := range sent[topic] {
			e, err := event.Decode(value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, e)
		}
		return out
	}
	return decode(stream.TopicPolicy), decode(stream.TopicEvents)
}

// TestEventsThatAreTooLarge: bindings to cluster-admin as a tenant would hide them, from the bytes that
// an apiserver posts to what is found and what is known: the finding comes before the first use, what
// was recorded of the binding counts, nothing certain is wrong, and where something is open the
// object is named, with the command that ends it.
func TestEventsThatAreTooLarge(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	users := func(names ...string) []map[string]any {
		out := make([]map[string]any, len(names))
		for i, name := range names {
			out[i] = map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}
		}
		return out
	}
	many := make([]string, 50_000)
	for i := range many {
		many[i] = fmt.Sprintf("user-%05d", i)
	}
	long := strings.Repeat("\x01", 1_400_000)
	truncated := func(e map[string]any) {
		delete(e, "requestObject")
		delete(e, "responseObject")
		e["annotations"].(map[string]any)["audit.k8s.io/truncated"] = "true"
	}
	for name, tt := range map[string]struct {
		binding  string
		subjects []map[string]any
		max      int
		change   func(e map[string]any)
		found    []string
		eve, bob known
		doctor   string // state and what it says of the binding
	}{
		"a subject of 1.4 MB": {"door", users(long, "eve"), 0, nil, []string{"audit-truncated", "cluster-admin-binding", "rbac-truncated"},
			yes, open,
			doctor.CheckWarn +
				" ClusterRoleBinding door (its event of 2026-03-01T12:00:00Z was too large to be kept whole: it holds more than is known)"},
		"50,000 subjects": {"door", users(append(many, "eve")...), 0, nil, []string{"cluster-admin-binding"}, yes, no, doctor.CheckOK},
		"50,000 subjects on a broker of 1 MiB": {"door", users(append(many, "eve")...), 1 << 20, nil,
			[]string{"audit-truncated", "cluster-admin-binding", "rbac-truncated"}, open, open,
			doctor.CheckWarn + " ClusterRoleBinding door (its event"},
		"a name of 1.4 MB": {long, users("eve"), 0, nil, []string{"audit-truncated", "cluster-admin-binding"}, yes, no, doctor.CheckOK},
		"cut off by the apiserver": {"door", users("eve"), 0, truncated, []string{"audit-truncated", "rbac-truncated"}, open, open,
			doctor.CheckFail + " ClusterRoleBinding door (it was written by 2026-03-01T12:00:00Z, and what was written was not recorded)"},
	} {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "subjects": tt.subjects,
				"metadata": map[string]any{"name": tt.binding},
				"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}
			stored := maps.Clone(object)
			stored["metadata"] = map[string]any{"name": tt.binding, "uid": "u1", "resourceVersion": "50",
				"creationTimestamp": at.Format(time.RFC3339), "managedFields": []any{map[string]any{"manager": "kubectl"}}}
			stamp := at.Format("2006-01-02T15:04:05.000000Z")
			audit := map[string]any{"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": "a",
				"stage": "ResponseComplete", "verb": "create",
				"requestURI": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "user": map[string]any{"username": "tenant",
					"groups": []string{"system:authenticated"}}, "sourceIPs": []string{"10.0.0.9"},
				"objectRef": map[string]any{"resource": "clusterrolebindings", "name": tt.binding,
					"apiGroup": "rbac.authorization.k8s.io", "apiVersion": "v1"},
				"responseStatus": map[string]any{"metadata": map[string]any{}, "code": 201}, "requestObject": object,
				"responseObject":           stored,
				"requestReceivedTimestamp": stamp, "stageTimestamp": stamp,
				"annotations": map[string]any{"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}}
			if tt.change != nil {
				tt.change(audit)
			}
			policy, events := received(t, webhook.Config{MaxEvent: tt.max}, audit)
			if len(policy) != 1 || len(events) != 1 {
				t.Fatalf("%d and %d records", len(policy), len(events))
			}

			set, err := detect.Load(detect.BuiltinFiles())
			if err != nil {
				t.Fatal(err)
			}
			d := detect.New(set, detect.Config{})
			d.Observe("prod", events[0], &verdict.Verdict{Recorded: verdict.DecisionAllow, Attributes: verdict.Attributes{
				Verb: "create", ResourceRequest: true, APIGroup: "rbac.authorization.k8s.io", APIVersion: "v1",
				Resource: "clusterrolebindings"}})
			var found []string
			for _, f := range d.Flush() {
				found = append(found, f.Rule)
				if len(f.Text) > 600 {
					t.Errorf("%s takes %d bytes: %.700s", f.Rule, len(f.Text), f.Text)
				}
			}
			if slices.Sort(found); !slices.Equal(found, tt.found) {
				t.Errorf("found %q, want %q", found, tt.found)
			}

			s := state.New("prod")
			if _, err := s.LoadSnapshot(observe.Snapshot{Began: at.Add(-time.Hour), Ended: at.Add(-time.Hour), Kinds: kept.Resources(),
				Objects: []observe.Observation{{
					Source: observe.SourceSnapshot, Resource: kept.ClusterRoles, Name: "cluster-admin", UID: "r", ResourceVersion: "1",
					Object: []byte(`{"kind":"ClusterRole","metadata":{"name":"cluster-admin"},"rules":[{"verbs":["*"],"apiGroups":["*"],` +
						`"resources":["*"]}]}`)}}}); err != nil {
				t.Fatal(err)
			}
			obs, err := observe.FromEvent(policy[0])
			if err != nil {
				t.Fatal(err)
			}
			s.Apply(obs...)
			for user, want := range map[string]known{"eve": tt.eve, "bob": tt.bob} {
				if got := knownOf(s, at.Add(time.Minute), user); got != want {
					t.Errorf("%s may: %s, want %s", user, got, want)
				}
			}

			p := newPatient(t)
			p.store.known = s
			var said string
			for _, c := range p.examine(t, "policy-known", "prod") {
				said += c.State + " " + c.Text + "\n" + c.Todo
			}
			wantState, wantText, _ := strings.Cut(tt.doctor, " ")
			if !strings.HasPrefix(said, wantState) || !strings.Contains(said, wantText) || wantState != doctor.CheckOK &&
				!strings.Contains(said, "retrial import --cluster prod --state state.json") {
				t.Errorf("doctor says %.600q, want %q", said, tt.doctor)
			}
		})
	}
}

// known is what is known of whether somebody may read Secrets.
type known string

const (
	yes  known = "yes"
	no   known = "no"
	open known = "open"
)

// knownOf has the replica judge a refusal.
func knownOf(s *state.State, at time.Time, user string) known {
	v := replay.New(replay.Config{}).Replay(&event.Event{
		Level: event.LevelMetadata, Stage: event.StageResponseComplete, AuditID: "b", Verb: "list",
		RequestURI: "/api/v1/namespaces/n/secrets", User: event.User{Username: user, Groups: []string{"system:authenticated"}},
		RequestReceivedTimestamp: at, StageTimestamp: at, ResponseStatus: &event.Status{Code: 403},
		Annotations: event.Pairs{{Key: event.AnnotationDecision, Value: "forbid"}, {Key: event.AnnotationReason}},
	}, s)
	switch v.Outcome {
	case verdict.OutcomeMatch:
		return no
	case verdict.OutcomeDrift:
		return yes
	}
	return open
}

// TestStateWithAnObjectThatIsTooLarge: a stranger's object that a record has no room for does not keep
// the listing away, and what is left of it counts.
func TestStateWithAnObjectThatIsTooLarge(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	object := func(kind, name string, more map[string]any) map[string]any {
		more["kind"], more["apiVersion"] = kind, "rbac.authorization.k8s.io/v1"
		more["metadata"] = map[string]any{"name": name, "uid": name, "resourceVersion": "7", "creationTimestamp": "2026-03-01T12:00:00Z"}
		return more
	}
	binding := func(name string, users ...string) map[string]any {
		subjects := make([]any, len(users))
		for i, user := range users {
			subjects[i] = map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
		}
		return object("ClusterRoleBinding", name, map[string]any{"subjects": subjects,
			"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}})
	}
	list, err := json.Marshal(map[string]any{"kind": "List", "apiVersion": "v1", "items": []any{
		object("ClusterRole", "reader",
			map[string]any{"rules": []any{map[string]any{"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{"secrets"}}}}),
		binding("large", strings.Repeat("<", 1_400_000), "eve"), binding("small", "ann"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(in.dir, "state.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	in.run(t, "import", "--cluster", "alone", "--state", file).ok(t)
	says(t, in.run(t, "who-can", "get", "secrets", "--cluster", "alone").ok(t).out, "eve", "ann", "ClusterRoleBinding/large")
}
