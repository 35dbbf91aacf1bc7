package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/auth/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/retrial-io/retrial/rbacindex"
)

// line is a case as it is written: one JSON object a line. The index's own tests read it
// without the real code, so what the real code answers stands in it.
type line struct {
	// About names what the case is kept for.
	About string `json:"about,omitempty"`
	Asked Asked  `json:"asked"`
	// Objects are written in this order; {"gone": …} deletes.
	Objects []json.RawMessage   `json:"objects,omitempty"`
	Applied bool                `json:"applied,omitempty"`
	Request *requestLine        `json:"request,omitempty"`
	Owner   []rbacv1.PolicyRule `json:"owner,omitempty"`
	Wanted  []rbacv1.PolicyRule `json:"wanted,omitempty"`
	Ref     *rbacv1.RoleRef     `json:"ref,omitempty"`
	Object  json.RawMessage     `json:"object,omitempty"`
	Update  bool                `json:"update,omitempty"`
	Answer  *Answer             `json:"answer,omitempty"`
}

type requestLine struct {
	User        string   `json:"user,omitempty"`
	Groups      []string `json:"groups,omitempty"`
	Verb        string   `json:"verb,omitempty"`
	Namespace   string   `json:"namespace,omitempty"`
	APIGroup    string   `json:"apiGroup,omitempty"`
	Resource    string   `json:"resource,omitempty"`
	Subresource string   `json:"subresource,omitempty"`
	Name        string   `json:"name,omitempty"`
	Path        string   `json:"path,omitempty"`
	IsResource  bool     `json:"isResource,omitempty"`
}

// Answer is what the real code answers.
type Answer struct {
	// Allowed is the decision; of a bind or a write, that it is let through.
	Allowed bool `json:"allowed"`
	// Reason is the one the authorizer gives; of a refused bind or write, the last part of
	// the text.
	Reason string `json:"reason,omitempty"`
	// Grants are all reasons there are when there are several, without "RBAC: allowed by ",
	// sorted.
	Grants []string `json:"grants,omitempty"`
	// Errors are the texts of the evaluation errors, sorted.
	Errors []string `json:"errors,omitempty"`
	// Rules are those of a subject, ordered by where they are from.
	Rules []SourcedRule `json:"rules,omitempty"`
	// Uncovered are the pieces that are not covered.
	Uncovered []rbacv1.PolicyRule `json:"uncovered,omitempty"`
	// RoleAbsent: the role to be bound is not there.
	RoleAbsent bool `json:"roleAbsent,omitempty"`
}

// SourcedRule is a rule with where it is from.
type SourcedRule struct {
	From string `json:"from"`
	Rule int    `json:"rule"` // index in the role's rules
}

// MarshalJSON writes a case with the real code's answer.
func (c *Case) MarshalJSON() ([]byte, error) { return c.line("") }

func (c *Case) line(about string) ([]byte, error) {
	q := &c.Question
	l := line{About: about, Asked: q.Asked, Applied: c.Applied, Owner: q.Owner, Wanted: q.Wanted, Update: q.Update}
	for _, w := range c.Writes {
		raw, err := objectLine(w)
		if err != nil {
			return nil, err
		}
		l.Objects = append(l.Objects, raw)
	}
	if a := q.Request; q.Asked != AskCovers {
		l.Request = &requestLine{a.User, a.Groups, a.Verb, a.Namespace, a.APIGroup, a.Resource, a.Subresource, a.Name, a.Path,
			a.ResourceRequest}
	}
	if q.Asked == AskBind {
		l.Ref = &q.Ref
	}
	if q.Object != nil {
		raw, err := objectLine(rbacindex.Change{Object: q.Object})
		if err != nil {
			return nil, err
		}
		l.Object = raw
	}
	p := NewPolicy(c.Writes...)
	answer := NewReal(p).answer(q)
	l.Answer = &answer
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&l); err != nil {
		return nil, fmt.Errorf("write case: %w", err)
	}
	return withoutNulls(b.Bytes()), nil
}

// withoutNulls leaves out members that are null.
func withoutNulls(raw []byte) []byte {
	for _, name := range []string{"rules", "subjects", "verbs"} {
		raw = bytes.ReplaceAll(raw, []byte(`,"`+name+`":null`), nil)
		raw = bytes.ReplaceAll(raw, []byte(`"`+name+`":null,`), nil)
		raw = bytes.ReplaceAll(raw, []byte(`"`+name+`":null`), nil)
	}
	return bytes.TrimSpace(raw)
}

// objectLine writes an object with its kind, or a deletion.
func objectLine(w rbacindex.Change) (json.RawMessage, error) {
	var out any
	switch o := w.Object.(type) {
	case nil:
		out = map[string]any{"gone": map[string]string{"kind": w.Key.Kind.String(), "namespace": w.Key.Namespace, "name": w.Key.Name}}
	case *rbacv1.Role:
		o = o.DeepCopy()
		o.TypeMeta = metav1.TypeMeta{Kind: "Role"}
		out = o
	case *rbacv1.ClusterRole:
		o = o.DeepCopy()
		o.TypeMeta = metav1.TypeMeta{Kind: "ClusterRole"}
		out = o
	case *rbacv1.RoleBinding:
		o = o.DeepCopy()
		o.TypeMeta = metav1.TypeMeta{Kind: "RoleBinding"}
		out = o
	case *rbacv1.ClusterRoleBinding:
		o = o.DeepCopy()
		o.TypeMeta = metav1.TypeMeta{Kind: "ClusterRoleBinding"}
		out = o
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("write object: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// answer returns the real code's answer to a question.
func (r *Real) answer(q *Question) Answer {
	var out Answer
	a := &q.Request
	attrs := attributes(a)
	switch q.Asked {
	case AskDecision:
		var decision authorizer.Decision
		decision, out.Reason, _ = r.rbac.Authorize(context.Background(), attrs)
		out.Allowed = decision == authorizer.DecisionAllow
		real, errs := r.visit(attrs.User, a.Namespace, nil, func(rule *rbacv1.PolicyRule) bool { return rbac.RuleAllows(attrs, rule) })
		for _, s := range real {
			out.Grants = appendNew(out.Grants, s.from)
		}
		out.Errors = errs
	case AskRules:
		real, errs := r.visit(&user.DefaultInfo{Name: a.User, Groups: a.Groups}, a.Namespace, nil, func(*rbacv1.PolicyRule) bool {
			return true
		})
		slices.SortStableFunc(real, func(x, y source) int { return strings.Compare(x.from, y.from) })
		for i, s := range real {
			out.Rules = append(out.Rules, SourcedRule{From: s.from})
			if i > 0 && s.from == real[i-1].from {
				out.Rules[i].Rule = out.Rules[i-1].Rule + 1
			}
		}
		out.Allowed, out.Errors = len(real) > 0, errs
	case AskCovers:
		out.Allowed, out.Uncovered = validation.Covers(q.Owner, q.Wanted)
	default:
		err := r.refusal(q)
		out.Allowed = err == nil
		if text, forbidden := reasonOf(err); err != nil {
			out.Reason, out.RoleAbsent = text, !forbidden
		}
	}
	if slices.Sort(out.Grants); len(out.Grants) == 1 {
		out.Grants = nil
	}
	slices.Sort(out.Errors)
	return out
}
