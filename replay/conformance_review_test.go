package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/review"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// reviewer makes reviews as a member of system:masters would, who may.
type reviewer struct{ state *state.State }

func newReviewer(t *testing.T) reviewer {
	t.Helper()
	s := state.New("conformance")
	snap, _, err := observe.ReadSnapshot(strings.NewReader(jsonList(t, []byte(conformanceState))))
	if err != nil {
		t.Fatal(err)
	}
	snap.Kinds = listedKinds(snap.Objects)
	snap.Began, snap.Ended = clock(t, "10:00:00"), clock(t, "10:00:00")
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	return reviewer{s}
}

func (r reviewer) ask(t *testing.T, resource, spec, status string) *verdict.Verdict {
	t.Helper()
	at := clock(t, "11:00:00")
	group, kind := "authorization.k8s.io", "SubjectAccessReview"
	if resource == "tokenreviews" {
		group, kind = "authentication.k8s.io", "TokenReview"
	}
	e := &event.Event{
		Level: event.LevelRequestResponse, Stage: event.StageResponseComplete, AuditID: "a", Verb: "create", RequestURI: "/apis/" + group +
			"/v1/" + resource,
		User:           event.User{Username: "admin", Groups: []string{"system:masters", "system:authenticated"}},
		ResponseStatus: &event.Status{Code: 201}, RequestReceivedTimestamp: at, StageTimestamp: at,
		RequestObject:  []byte(`{"kind":"` + kind + `","spec":` + spec + `}`),
		ResponseObject: []byte(`{"kind":"` + kind + `","status":` + status + `}`),
		Annotations:    event.Pairs{{Key: event.AnnotationDecision, Value: "allow"}, {Key: event.AnnotationReason, Value: ""}},
	}
	return New(Config{Version: "test"}).Replay(e, r.state)
}

// TestConformanceReviews: the recorded answer of a review must be the one the authorizers of
// that time give, as of a request of the subject's own.
func TestConformanceReviews(t *testing.T) {
	r := newReviewer(t)
	const alice = `"user":"alice","groups":["devs","ops","system:authenticated"]`
	pods := func(subject, verb string) string {
		return fmt.Sprintf(`{%s,"resourceAttributes":{"namespace":"default","verb":%q,"resource":"pods"}}`, subject, verb)
	}
	secrets := `{` + alice + `,"resourceAttributes":{"namespace":"default","verb":"list","resource":"secrets"}}`
	says := func(allowed bool, reason string) string {
		return fmt.Sprintf(`{"allowed":%v,"reason":%q}`, allowed, reason)
	}
	for _, c := range []struct {
		name, resource, spec, status string
		want                         verdict.Outcome
		contradiction                string
	}{
		{"63 refused, the missing roles in another order", "subjectaccessreviews", secrets,
			says(false, `RBAC: [clusterrole.rbac.authorization.k8s.io "nope" not found, role.rbac.authorization.k8s.io "nope2" not found]`),
			verdict.OutcomeMatch, ""},
		{"63 refused, one of the missing roles", "subjectaccessreviews", secrets, says(false, devsLack), verdict.OutcomeDrift,
			review.ContradictionAnswer},
		{"allowed, for the reason RBAC gives", "subjectaccessreviews", pods(alice, "list"), says(true, alicePods),
			verdict.OutcomeMatch, ""},
		{"allowed, for another reason", "subjectaccessreviews", pods(alice, "list"), says(true, erinEdges), verdict.OutcomeDrift,
			review.ContradictionAnswer},
		{"allowed, and nothing allows it", "subjectaccessreviews", pods(alice, "delete"), says(true, alicePods), verdict.OutcomeDrift,
			review.ContradictionAnswer},
		{"refused, and something allows it", "subjectaccessreviews", pods(alice, "list"), says(false, ""), verdict.OutcomeDrift,
			review.ContradictionAnswer},
		{"a path", "subjectaccessreviews", `{"user":"erin","nonResourceAttributes":{"path":"/healthz","verb":"get"}}`,
			says(true, erinPaths), verdict.OutcomeMatch, ""},
		{"of masters", "subjectaccessreviews", `{"user":"x","groups":["system:masters"],"resourceAttributes":{"verb":"*","resource":"*",` +
			`"group":"*"}}`, says(true, ""), verdict.OutcomeMatch, ""},
		{"of a node: the authorizer of nodes answers", "subjectaccessreviews",
			`{"user":"system:node:n","groups":["system:nodes"],"resourceAttributes":{"verb":"list","resource":"nodes"}}`,
			says(false, "node 'n' cannot read all nodes, only its own Node object"), verdict.OutcomeMatch, ""},
		{"of oneself", "selfsubjectaccessreviews", `{"resourceAttributes":{"verb":"delete","resource":"nodes"}}`, says(true, ""),
			verdict.OutcomeMatch, ""},
		{"in a namespace", "namespaces/default/localsubjectaccessreviews", pods(alice, "list"), says(true, alicePods),
			verdict.OutcomeMatch, ""},
		{"the authorizer failed, and nobody has said which there are", "subjectaccessreviews", pods(alice, "list"),
			`{"allowed":false,"evaluationError":"webhook"}`, verdict.OutcomeMatch, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := r.ask(t, c.resource, c.spec, c.status)
			if v.Review == nil {
				t.Fatal("no review was seen")
			}
			if v.Review.Outcome != c.want {
				t.Errorf("%s, want %s: %s", v.Review.Outcome, c.want, v.Review.Cause)
			}
			if found := slices.Contains(v.Identity, review.ContradictionAnswer); found != (c.contradiction != "") {
				t.Errorf("contradictions %q", v.Identity)
			}
			if v.Outcome != verdict.OutcomeMatch {
				t.Errorf("the right to ask: %s %s", v.Outcome, v.Cause)
			}
		})
	}
}

func TestConformanceTokenReviews(t *testing.T) {
	r := newReviewer(t)
	for _, c := range []struct {
		name, status  string
		want          verdict.Outcome
		contradiction bool
	}{
		{"64 a bad token", `{"error":"invalid bearer token"}`, verdict.OutcomeNotJudged, false},
		{"a user as an apiserver makes one", `{"authenticated":true,"user":{"username":"alice","groups":["devs","system:authenticated"]}}`,
			verdict.OutcomeMatch, false},
		{"a service account with other groups than its own", `{"authenticated":true,"user":{"username":"system:serviceaccount:a:b",` +
			`"uid":"u","groups":["system:authenticated"],"extra":{"authentication.kubernetes.io/credential-id":["JTI=1"]}}}`,
			verdict.OutcomeDrift, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := r.ask(t, "tokenreviews", `{}`, c.status)
			if v.Review == nil || v.Review.Outcome != c.want || slices.Contains(v.Identity, review.ContradictionToken) != c.contradiction {
				t.Errorf("%+v, contradictions %q %q", v.Review, v.Identity, v.Evidence)
			}
		})
	}
}

// TestReviewWithoutBodies: what is not recorded is not judged.
func TestReviewWithoutBodies(t *testing.T) {
	r := newReviewer(t)
	at := clock(t, "11:00:00")
	e := &event.Event{Level: event.LevelMetadata, Stage: event.StageResponseComplete, Verb: "create",
		RequestURI: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
		User:       event.User{Username: "admin", Groups: []string{"system:masters"}}, ResponseStatus: &event.Status{Code: 201},
		RequestReceivedTimestamp: at, StageTimestamp: at}
	if v := New(Config{}).Replay(e, r.state); v.Review != nil {
		t.Errorf("a review was judged: %+v", v.Review)
	}
}
