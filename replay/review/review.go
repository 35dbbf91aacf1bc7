// Package review reads what a review asks and what it was answered: a SubjectAccessReview in
// its three forms, and a TokenReview. An aggregated API server, a kubelet or any other
// delegating server asks its kube-apiserver so on every request; the same authorizers answer
// as on the request filter, so that the replica can check the answer.
//
// It mirrors k8s.io/kubernetes pkg/registry/authorization: the attributes are those of the
// spec, and status.reason is the authorizer's reason, word for word.
//
// The package is pure.
package review

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// Kinds of reviews.
const (
	SubjectAccess      = "SubjectAccessReview"
	SelfSubjectAccess  = "SelfSubjectAccessReview"
	LocalSubjectAccess = "LocalSubjectAccessReview"
	Token              = "TokenReview"
)

// Question is what a review asks.
type Question struct {
	Kind       string
	User       event.User         // who is asked about; empty for a TokenReview
	Attributes verdict.Attributes // what is asked for; zero for a TokenReview
}

// Answer is what a review was answered. Allowed is "authenticated" for a TokenReview.
type Answer struct {
	Allowed, Denied bool
	Reason          string
	Error           string     // evaluationError, or a TokenReview's error
	User            event.User // who a TokenReview found
}

// KindOf returns the kind of review a request is, "" if it is none. It looks at the
// attributes alone and costs a comparison for any other request.
func KindOf(a *verdict.Attributes) string {
	if a.Verb != request.VerbCreate || a.Subresource != "" || !a.ResourceRequest {
		return ""
	}
	switch a.APIGroup {
	case "authorization.k8s.io":
		switch a.Resource {
		case "subjectaccessreviews":
			return SubjectAccess
		case "selfsubjectaccessreviews":
			return SelfSubjectAccess
		case "localsubjectaccessreviews":
			return LocalSubjectAccess
		}
	case "authentication.k8s.io":
		if a.Resource == "tokenreviews" {
			return Token
		}
	}
	return ""
}

// spec is the union of the specs of all kinds, in the versions v1 and v1beta1 (which calls
// the groups "group").
type spec struct {
	authorizationv1.SubjectAccessReviewSpec
	OldGroups []string            `json:"group"`
	Resource  *resourceAttributes `json:"resourceAttributes"`
}

// resourceAttributes are those of the API, with selectors of one form.
type resourceAttributes struct {
	authorizationv1.ResourceAttributes
	FieldSelector *selector `json:"fieldSelector"`
	LabelSelector *selector `json:"labelSelector"`
}

type selector struct {
	Raw          string `json:"rawSelector"`
	Requirements []struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"requirements"`
}

// Asked returns the question of a review; ok is false if the request is not a review, or its
// body is not recorded or not readable. caller is who made the request: a
// SelfSubjectAccessReview asks about them.
func Asked(e *event.Event, a *verdict.Attributes) (q Question, ok bool) {
	q.Kind = KindOf(a)
	if q.Kind == "" || q.Kind == Token {
		return q, q.Kind == Token
	}
	if len(e.RequestObject) == 0 {
		return q, false
	}
	var body struct{ Spec spec }
	if err := json.Unmarshal(e.RequestObject, &body); err != nil {
		return q, false
	}
	s := &body.Spec
	q.User = event.User{Username: s.User, UID: s.UID, Groups: s.Groups, Extra: extraOf(s.Extra)}
	if len(s.Groups) == 0 {
		q.User.Groups = s.OldGroups
	}
	if q.Kind == SelfSubjectAccess {
		q.User = *e.EffectiveUser()
	}
	switch {
	case s.Resource != nil:
		r := s.Resource
		q.Attributes = verdict.Attributes{
			ResourceRequest: true, Verb: r.Verb, Namespace: r.Namespace, APIGroup: r.Group, APIVersion: cmp.Or(r.Version, "*"),
			Resource: r.Resource, Subresource: r.Subresource, Name: r.Name,
			FieldSelector: r.FieldSelector.text(), LabelSelector: r.LabelSelector.text(),
		}
	case s.NonResourceAttributes != nil:
		q.Attributes = verdict.Attributes{Verb: s.NonResourceAttributes.Verb, Path: s.NonResourceAttributes.Path}
	default:
		return q, false
	}
	return q, true
}

// text returns the selector as a request would have written it; requirements a request cannot
// write are left out, as they restrict nothing an authorizer looks at.
func (s *selector) text() string {
	if s == nil {
		return ""
	}
	if s.Raw != "" {
		return s.Raw
	}
	var parts []string
	for _, r := range s.Requirements {
		if len(r.Values) != 1 {
			continue
		}
		switch r.Operator {
		case "In":
			parts = append(parts, r.Key+"="+fields.EscapeValue(r.Values[0]))
		case "NotIn":
			parts = append(parts, r.Key+"!="+fields.EscapeValue(r.Values[0]))
		}
	}
	return strings.Join(parts, ",")
}

// Answered returns the recorded answer of a review; ok is false if the review was refused
// or failed, or the answer is not recorded.
func Answered(e *event.Event) (ans Answer, ok bool) {
	if code := e.Code(); len(e.ResponseObject) == 0 || code != 0 && (code < 200 || code > 299) {
		return ans, false
	}
	var body struct {
		Kind   string
		Status struct {
			authorizationv1.SubjectAccessReviewStatus
			authenticationv1.TokenReviewStatus
		}
	}
	if err := json.Unmarshal(e.ResponseObject, &body); err != nil || !strings.HasSuffix(body.Kind, "Review") {
		return ans, false
	}
	st := &body.Status
	ans = Answer{
		Allowed: st.Allowed || st.Authenticated, Denied: st.Denied, Reason: st.Reason, Error: st.EvaluationError + st.Error,
		User: event.User{Username: st.User.Username, UID: st.User.UID, Groups: st.User.Groups, Extra: extraOf(st.User.Extra)},
	}
	return ans, true
}

func extraOf[Values ~[]string](of map[string]Values) (extra event.Extra) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		extra = append(extra, event.ExtraEntry{Key: key, Values: of[key]})
	}
	return extra
}

// Contradictions on recorded answers of reviews. The set is closed; verdicts list them beside those
// on identity.
const (
	ContradictionAnswer = "sar-mismatch"
	ContradictionToken  = "tokenreview-identity-mismatch"
)
