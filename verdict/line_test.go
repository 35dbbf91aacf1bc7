package verdict

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

func TestAppendLine(t *testing.T) {
	e := &event.Event{
		AuditID: "a\x1b[31m", RequestURI: "/api/v1/namespaces/shop/pods?a=1&b=<", Verb: "list", Stage: event.StageResponseComplete,
		User: event.User{Username: "sue"}, ImpersonatedUser: &event.User{Username: "alice"},
		RequestReceivedTimestamp: time.Date(2026, 5, 4, 11, 0, 0, 1000, time.UTC),
	}
	v := &Verdict{
		Outcome: OutcomeDrift, Class: ClassReason, Cause: "c", Recorded: DecisionAllow, RecordedReason: "r", Replayed: DecisionAllow,
		Authorizer: AuthorizerRBAC, Engine: "v1", Config: "lag=100ms",
		Grants: []Grant{{BindingKind: "RoleBinding", BindingNamespace: "shop", Binding: "b", RoleKind: "Role", Role: "r",
			SubjectKind: "ServiceAccount", SubjectNamespace: "shop", Subject: "api", Reason: "why"}},
		Impersonation: &ImpersonationCheck{Replayed: DecisionForbid, Mode: "legacy", Missing: []string{"x"}},
		Admission:     Admission{Recorded: AdmissionAdmitted},
		Chain: []ChainStep{{Authorizer: "masters", Answer: AnswerNoOpinion},
			{Authorizer: "guard", Answer: AnswerUnknown, Reason: "why"}},
		Implied: []Implied{{Check: "upgrade", Attributes: Attributes{ResourceRequest: true, Verb: "create", Resource: "pods",
			Subresource: "exec", Namespace: "shop", Name: "p"},
			Replayed: DecisionAllow, Grants: []Grant{{BindingKind: "ClusterRoleBinding", Binding: "b", RoleKind: "ClusterRole", Role: "r",
				SubjectKind: "User", Subject: "sue"}}}},
		Review: &ReviewCheck{Kind: "SubjectAccessReview", User: "u", Attributes: Attributes{ResourceRequest: true, Verb: "get",
			APIGroup: "apps", Resource: "deployments", Name: "d"},
			Recorded: DecisionAllow, Replayed: DecisionError, Outcome: OutcomeDrift, Cause: "c"},
	}
	line, err := v.AppendLine([]byte("before\n"), e)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimPrefix(string(line), "before\n")
	if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") || strings.Contains(text, "\x1b") {
		t.Fatalf("not one clean line: %q", text)
	}
	want := `{"auditID":"a\u001b[31m","requestURI":"/api/v1/namespaces/shop/pods?a=1&b=<",` +
		`"requestReceivedTimestamp":"2026-05-04T11:00:00.000001Z",` +
		`"user":"sue","impersonatedUser":"alice","verb":"list","stage":"ResponseComplete","recorded":"allow","recordedReason":"r",` +
		`"replayed":"allow",` +
		`"outcome":"drift","verdict":"drift","class":"unexplained-reason","cause":"c","authorizer":"rbac",` +
		`"grants":[{"binding":"RoleBinding/shop/b","role":"Role/shop/r","subject":"ServiceAccount/shop/api","rule":0,"reason":"why"}],` +
		`"impersonation":{"replayed":"forbid","recorded":"none","mode":"legacy","grants":[],"missing":["x"]},` +
		`"admission":{"recorded":"admitted"},` +
		`"chain":[{"authorizer":"masters","answer":"no opinion"},{"authorizer":"guard","answer":"unknown","reason":"why"}],` +
		`"implied":[{"check":"upgrade","asked":"create pods/exec shop/p","replayed":"allow","recorded":"none",` +
		`"grants":[{"binding":"ClusterRoleBinding/b","role":"ClusterRole/r","subject":"User/sue","rule":0,"reason":""}]}],` +
		`"review":{"kind":"SubjectAccessReview","user":"u","asked":"get deployments.apps d","recorded":"allow","replayed":"error",` +
		`"outcome":"drift","verdict":"drift","cause":"c"},"engine":"v1","config":"lag=100ms"}` + "\n"
	if text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}

	empty, err := (&Verdict{}).AppendLine(nil, &event.Event{})
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(empty, &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"grants": "[]", "recorded": `"none"`, "replayed": `"none"`, "outcome": `"not_judged"`,
		"class": `""`, "cause": `""`} {
		if string(members[name]) != value {
			t.Errorf("%s is %s, want %s", name, members[name], value)
		}
	}
}
