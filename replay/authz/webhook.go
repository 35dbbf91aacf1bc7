package authz

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"regexp"
	"strings"
	"sync/atomic"

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

// hookState reports whether a webhook is asked about a request.
type hookState uint8

const (
	hookAsked   hookState = iota
	hookSkipped           // a match condition is false
	hookFailed            // a match condition failed, none is false
)

// hookMemory remembers what match conditions came to. Conditions read a few fields of a review
// (groups, a namespace), so that nearly all requests of a log are one of few to them, and
// running them costs fifty times what looking it up does.
//
// It is a table of fixed size: what falls on one place replaces what was there. Readers and
// writers take no lock.
type hookMemory struct {
	fields uint16 // which the conditions read, see the field constants
	seed   maphash.Seed
	table  []atomic.Pointer[hookMemo]
}

// hookMemo is one remembered answer. It is never changed.
type hookMemo struct {
	key   string
	state hookState
}

// hookPlaces is how many answers are remembered; longestKey how long a request may be to be.
const (
	hookPlaces = 4096
	longestKey = 512
)

// Fields of a review.
const (
	fieldUser uint16 = 1 << iota
	fieldUID
	fieldGroups
	fieldExtra
	fieldNamespace
	fieldVerb
	fieldGroup
	fieldVersion
	fieldResource
	fieldSubresource
	fieldName
	fieldPath
	fieldSelectors
	everyField = 1<<iota - 1
)

// fieldNames returns the words by which an expression reads a field. A word that stands for
// something else, or within a string, only makes the memory more careful than it need be.
func fieldNames() map[string]uint16 {
	return map[string]uint16{
		"user": fieldUser, "uid": fieldUID, "groups": fieldGroups, "extra": fieldExtra, "namespace": fieldNamespace, "verb": fieldVerb,
		"group": fieldGroup, "version": fieldVersion, "resource": fieldResource, "subresource": fieldSubresource, "name": fieldName,
		"path": fieldPath, "fieldSelector": fieldSelectors, "labelSelector": fieldSelectors,
		"dyn": everyField, // takes the types away by which alone fields are reached by name
	}
}

// reads finds out which fields the conditions read, and makes the table.
func (m *hookMemory) reads(conditions []string) {
	names := fieldNames()
	words := regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	for _, c := range conditions {
		for _, word := range words.FindAllString(c, -1) {
			m.fields |= names[word]
		}
	}
	m.seed, m.table = maphash.MakeSeed(), make([]atomic.Pointer[hookMemo], hookPlaces)
}

// of returns what is remembered of a request, or evaluates it.
func (m *hookMemory) of(u *event.User, a *verdict.Attributes, evaluate func(*event.User, *verdict.Attributes) hookState) hookState {
	var buf [longestKey]byte
	key := m.key(buf[:0], u, a)
	if len(key) > longestKey {
		return evaluate(u, a)
	}
	place := &m.table[maphash.Bytes(m.seed, key)%hookPlaces]
	if memo := place.Load(); memo != nil && memo.key == string(key) {
		return memo.state
	}
	state := evaluate(u, a)
	place.Store(&hookMemo{string(key), state})
	return state
}

// key appends what the conditions read of a request, each text behind its length. It stops
// when it has become too long to be remembered.
func (m *hookMemory) key(key []byte, u *event.User, a *verdict.Attributes) []byte {
	text := func(field uint16, s string) {
		if m.fields&field != 0 && len(key) <= longestKey {
			if len(s) > longestKey {
				s = s[:longestKey] // the key is too long with it anyway
			}
			key = append(binary.AppendUvarint(key, uint64(len(s))), s...)
		}
	}
	kind := byte(0)
	if a.ResourceRequest {
		kind = 1
	}
	key = append(key, kind)
	text(fieldUser, u.Username)
	text(fieldUID, u.UID)
	if m.fields&fieldGroups != 0 {
		key = binary.AppendUvarint(key, uint64(len(u.Groups)))
		for _, g := range u.Groups {
			text(fieldGroups, g)
		}
	}
	if m.fields&fieldExtra != 0 {
		key = binary.AppendUvarint(key, uint64(len(u.Extra)))
		for _, e := range u.Extra {
			text(fieldExtra, e.Key)
			key = binary.AppendUvarint(key, uint64(len(e.Values)))
			for _, v := range e.Values {
				text(fieldExtra, v)
			}
		}
	}
	text(fieldVerb, a.Verb)
	if !a.ResourceRequest {
		text(fieldPath, a.Path)
		return key
	}
	text(fieldNamespace, a.Namespace)
	text(fieldGroup, a.APIGroup)
	text(fieldVersion, a.APIVersion)
	text(fieldResource, a.Resource)
	text(fieldSubresource, a.Subresource)
	text(fieldName, a.Name)
	text(fieldSelectors, a.FieldSelector)
	text(fieldSelectors, a.LabelSelector)
	return key
}
