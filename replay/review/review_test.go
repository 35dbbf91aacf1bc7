package review

import (
	"reflect"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

func TestAsked(t *testing.T) {
	const base = "/apis/authorization.k8s.io/v1/"
	cases := []struct {
		name, uri, body string
		want            Question
		ok              bool
	}{
		{"resource", base + "subjectaccessreviews",
			`{"spec":{"user":"alice","uid":"u","groups":["a","b"],"extra":{"z":["1"],"k":["2","3"]},` +
				`"resourceAttributes":{"namespace":"n","verb":"get","resource":"pods","subresource":"log","name":"x"}}}`,
			Question{Kind: SubjectAccess, User: event.User{Username: "alice", UID: "u", Groups: []string{"a", "b"},
				Extra: event.Extra{{Key: "k", Values: []string{"2", "3"}}, {Key: "z", Values: []string{"1"}}}},
				Attributes: verdict.Attributes{ResourceRequest: true, Verb: "get", Namespace: "n", APIVersion: "*", Resource: "pods",
					Subresource: "log", Name: "x"}}, true},
		{"path", base + "subjectaccessreviews", `{"spec":{"user":"alice","nonResourceAttributes":{"path":"/healthz","verb":"get"}}}`,
			Question{Kind: SubjectAccess, User: event.User{Username: "alice"}, Attributes: verdict.Attributes{Verb: "get",
				Path: "/healthz"}}, true},
		{"groups of v1beta1", "/apis/authorization.k8s.io/v1beta1/subjectaccessreviews",
			`{"spec":{"group":["g"],"nonResourceAttributes":{"path":"/","verb":"get"}}}`,
			Question{Kind: SubjectAccess, User: event.User{Groups: []string{"g"}}, Attributes: verdict.Attributes{Verb: "get", Path: "/"}},
			true},
		{"of oneself", base + "selfsubjectaccessreviews",
			`{"spec":{"resourceAttributes":{"verb":"*","group":"*","resource":"*","version":"v1"}}}`,
			Question{Kind: SelfSubjectAccess, User: event.User{Username: "imp", Groups: []string{"ig"}},
				Attributes: verdict.Attributes{ResourceRequest: true, Verb: "*", APIGroup: "*", Resource: "*", APIVersion: "v1"}}, true},
		{"selectors", base + "namespaces/n/localsubjectaccessreviews",
			`{"spec":{"user":"u","resourceAttributes":{"namespace":"n","verb":"list","resource":"pods",` +
				`"fieldSelector":{"requirements":[{"key":"spec.nodeName","operator":"In","values":["a,b"]},{"key":"x","operator":"NotIn",` +
				`"values":["y"]},{"key":"z","operator":"In","values":["1","2"]}]},"labelSelector":{"rawSelector":"a in (b)"}}}}`,
			Question{Kind: LocalSubjectAccess, User: event.User{Username: "u"},
				Attributes: verdict.Attributes{ResourceRequest: true, Verb: "list", Namespace: "n", APIVersion: "*", Resource: "pods",
					FieldSelector: `spec.nodeName=a\,b,x!=y`, LabelSelector: "a in (b)"}}, true},
		{"asks for nothing", base + "subjectaccessreviews", `{"spec":{"user":"alice"}}`, Question{Kind: SubjectAccess,
			User: event.User{Username: "alice"}}, false},
		{"no body", base + "subjectaccessreviews", ``, Question{Kind: SubjectAccess}, false},
		{"unreadable", base + "subjectaccessreviews", `{"spec":7}`, Question{Kind: SubjectAccess}, false},
		{"token", "/apis/authentication.k8s.io/v1/tokenreviews", ``, Question{Kind: Token}, true},
		{"something else", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{}`, Question{}, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			a, err := request.Of("create", tc.uri)
			if err != nil {
				t.Fatal(err)
			}
			e := &event.Event{User: event.User{Username: "caller"}, ImpersonatedUser: &event.User{Username: "imp", Groups: []string{"ig"}},
				RequestObject: []byte(tc.body)}
			got, ok := Asked(e, &a)
			if ok != tc.ok || !reflect.DeepEqual(got, tc.want) {
				t.Fatalf("got %+v, %v\nwant %+v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestAnswered(t *testing.T) {
	cases := []struct {
		name, body string
		code       int32
		want       Answer
		ok         bool
	}{
		{"allowed", `{"kind":"SubjectAccessReview","status":{"allowed":true,"reason":"RBAC: allowed by …"}}`, 201,
			Answer{Allowed: true, Reason: "RBAC: allowed by …"}, true},
		{"denied with an error", `{"kind":"SubjectAccessReview","status":{"allowed":false,"denied":true,"evaluationError":"e"}}`, 201,
			Answer{Denied: true, Error: "e"}, true},
		{"code not recorded", `{"kind":"LocalSubjectAccessReview","status":{}}`, 0, Answer{}, true},
		{"token", `{"kind":"TokenReview","status":{"authenticated":true,"user":{"username":"u","uid":"1","groups":["g"],` +
			`"extra":{"k":["v"]}}}}`, 201,
			Answer{Allowed: true, User: event.User{Username: "u", UID: "1", Groups: []string{"g"},
				Extra: event.Extra{{Key: "k", Values: []string{"v"}}}}}, true},
		{"bad token", `{"kind":"TokenReview","status":{"error":"invalid bearer token"}}`, 201, Answer{Error: "invalid bearer token"}, true},
		{"refused", `{"kind":"Status","status":"Failure"}`, 403, Answer{}, false},
		{"a status", `{"kind":"Status","status":"Success"}`, 201, Answer{}, false},
		{"no body", ``, 201, Answer{}, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			e := &event.Event{ResponseObject: []byte(tc.body), ResponseStatus: &event.Status{Code: tc.code}}
			if got, ok := Answered(e); ok != tc.ok || !reflect.DeepEqual(got, tc.want) {
				t.Fatalf("got %+v, %v\nwant %+v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}
