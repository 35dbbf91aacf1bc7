package authz

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/verdict"
)

// webhook reports whether a webhook authorizer would be asked. What it answers no log says. It
// mirrors plugin/pkg/authorizer/webhook.
type webhook struct {
	matcher   *authorizationcel.CELMatcher // nil: it is asked everything
	deny      bool                         // a failure refuses
	selectors bool                         // the review carries selectors (1.32 and later)
	answered  hookMemory
}

// newWebhook compiles the match conditions. unknown says what of them is not known; such a
// webhook counts as asked.
func newWebhook(o *config.WebhookOptions, cfg *config.APIServer) (w *webhook, unknown string) {
	w = &webhook{selectors: cfg.Enabled("AuthorizeWithSelectors")}
	if o == nil {
		return w, "its options"
	}
	w.deny = o.FailurePolicy == "Deny"
	if len(o.MatchConditions) == 0 {
		return w, ""
	}
	compiler := authorizationcel.NewDefaultCompiler()
	m := &authorizationcel.CELMatcher{}
	for _, expression := range o.MatchConditions {
		r, err := compiler.CompileCELExpression(&authorizationcel.SubjectAccessReviewMatchCondition{Expression: expression})
		if err != nil {
			return w, "match condition " + expression + ": " + err.Error()
		}
		m.CompilationResults = append(m.CompilationResults, r)
		m.UsesFieldSelector = m.UsesFieldSelector || r.UsesFieldSelector
		m.UsesLabelSelector = m.UsesLabelSelector || r.UsesLabelSelector
	}
	w.matcher = m
	w.answered.reads(o.MatchConditions)
	return w, ""
}

func (w *webhook) asked(u *event.User, a *verdict.Attributes) hookState {
	if w.matcher == nil {
		return hookAsked
	}
	return w.answered.of(u, a, w.evaluate)
}

// evaluate runs the match conditions.
func (w *webhook) evaluate(u *event.User, a *verdict.Attributes) hookState {
	review := authorizationv1.SubjectAccessReview{Spec: w.spec(u, a)}
	switch matches, err := w.matcher.Eval(context.Background(), &review); {
	case err != nil:
		return hookFailed
	case matches:
		return hookAsked
	}
	return hookSkipped
}

// spec returns what a webhook would be asked.
func (w *webhook) spec(u *event.User, a *verdict.Attributes) authorizationv1.SubjectAccessReviewSpec {
	s := authorizationv1.SubjectAccessReviewSpec{User: u.Username, UID: u.UID, Groups: u.Groups}
	if len(u.Extra) > 0 {
		s.Extra = make(map[string]authorizationv1.ExtraValue, len(u.Extra))
		for _, entry := range u.Extra {
			s.Extra[entry.Key] = entry.Values
		}
	}
	if !a.ResourceRequest {
		s.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.Path, Verb: a.Verb}
		return s
	}
	s.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace: a.Namespace, Verb: a.Verb, Group: a.APIGroup, Version: a.APIVersion,
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name,
	}
	if w.selectors && w.matcher.UsesFieldSelector {
		s.ResourceAttributes.FieldSelector = fieldSelector(a.FieldSelector)
	}
	if w.selectors && w.matcher.UsesLabelSelector {
		s.ResourceAttributes.LabelSelector = labelSelector(a.LabelSelector)
	}
	return s
}

// fieldSelector returns a selector as requirements, nil for one that does not restrict or does not
// parse.
func fieldSelector(text string) *authorizationv1.FieldSelectorAttributes {
	sel, err := fields.ParseSelector(text)
	if err != nil {
		return nil
	}
	var out []metav1.FieldSelectorRequirement
	for _, r := range sel.Requirements() {
		op := metav1.FieldSelectorOpIn
		switch r.Operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
		case selection.NotEquals, selection.NotIn:
			op = metav1.FieldSelectorOpNotIn
		default:
			continue
		}
		out = append(out, metav1.FieldSelectorRequirement{Key: r.Field, Operator: op, Values: []string{r.Value}})
	}
	if len(out) == 0 {
		return nil
	}
	return &authorizationv1.FieldSelectorAttributes{Requirements: out}
}

// labelSelector returns a selector as requirements, nil for one that does not restrict or does not
// parse.
func labelSelector(text string) *authorizationv1.LabelSelectorAttributes {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	sel, err := labels.Parse(text)
	if err != nil {
		return nil
	}
	requirements, _ := sel.Requirements()
	var out []metav1.LabelSelectorRequirement
	for i := range requirements {
		r := metav1.LabelSelectorRequirement{Key: requirements[i].Key()}
		if values := requirements[i].ValuesUnsorted(); len(values) > 0 {
			r.Values = values
		}
		switch requirements[i].Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			r.Operator = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			r.Operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			r.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			r.Operator = metav1.LabelSelectorOpDoesNotExist
		default:
			continue
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil
	}
	return &authorizationv1.LabelSelectorAttributes{Requirements: out}
}
