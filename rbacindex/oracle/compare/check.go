package compare

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/auth/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/retrial-io/retrial/rbacindex"
)

// Ours are the doors of the index that are held against the real code. A test replaces one
// by something wrong to see that it is found.
type Ours struct {
	Authorize    func(*rbacindex.Snapshot, *rbacindex.Attributes, []rbacindex.Grant) rbacindex.Result
	RuleAllows   func(*rbacindex.Attributes, *rbacv1.PolicyRule) bool
	Covers       func(owner, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule
	MayBind      func(s *rbacindex.Snapshot, user string, groups []string, namespace string, ref rbacv1.RoleRef) rbacindex.Escalation
	MayWriteRole func(s *rbacindex.Snapshot, user string, groups []string, object any, name string) (rbacindex.Escalation, error)
}

// Index returns the index's own doors.
func Index() Ours {
	return Ours{
		Authorize:    (*rbacindex.Snapshot).Authorize,
		RuleAllows:   rbacindex.RuleAllows,
		Covers:       uncovered,
		MayBind:      (*rbacindex.Snapshot).MayBind,
		MayWriteRole: (*rbacindex.Snapshot).MayWriteRole,
	}
}

// uncovered returns all pieces that the index says are not covered. That it cannot tell is an
// answer of its own, which the real code never gives.
func uncovered(owner, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	c := rbacindex.Covers(owner, wanted, math.MaxInt32, rbacindex.NewSteps(1<<30))
	if c.TooCostly {
		return []rbacv1.PolicyRule{{Verbs: []string{"too costly"}}}
	}
	return c.Uncovered
}

// checker asks both sides; it keeps buffers between questions and is for one goroutine.
type checker struct {
	ours    Ours
	grants  []rbacindex.Grant
	real    []source
	mine    []source
	reasons []byte
	ends    []int
	yes     bool // the last answer allows something
}

const allowedBy = "RBAC: allowed by "

// check puts a question to both sides and says how they disagree, "" if they do not. The
// snapshot and the policy the real code is on hold the same objects, to the pointer.
func (c *checker) check(s *rbacindex.Snapshot, r *Real, q *Question) string {
	switch q.Asked {
	case AskDecision:
		return c.decision(s, r, &q.Request)
	case AskRules:
		return c.rules(s, r, &q.Request)
	case AskCovers:
		return c.covers(q.Owner, q.Wanted)
	case AskBind:
		a := &q.Request
		return c.escalation(c.ours.MayBind(s, a.User, a.Groups, a.Namespace, q.Ref), r.refusal(q))
	case AskWrite:
		name := ""
		if q.Update {
			k, err := rbacindex.KeyOf(q.Object)
			if err != nil {
				return err.Error()
			}
			if _, ok := s.Get(k); !ok || k.Name == "" {
				return "" // not an update of anything
			}
			name = k.Name
		}
		e, err := c.ours.MayWriteRole(s, q.Request.User, q.Request.Groups, q.Object, name)
		if err != nil {
			return err.Error()
		}
		return c.escalation(e, r.refusal(q))
	}
	return fmt.Sprintf("unknown question %q", q.Asked)
}

// decision compares the decision, the reason given, every other reason there is (what the
// real resolver visits and the real rule matcher allows), the rule of each, and the errors.
func (c *checker) decision(s *rbacindex.Snapshot, r *Real, a *rbacindex.Attributes) string {
	attrs := attributes(a)
	decision, reason, err := r.rbac.Authorize(context.Background(), attrs)
	if err != nil || decision == authorizer.DecisionDeny {
		return fmt.Sprintf("the authorizer answers %v, %v", decision, err)
	}
	res := c.ours.Authorize(s, a, c.grants)
	c.grants, c.yes = res.Grants, res.Allowed
	if res.Allowed != (decision == authorizer.DecisionAllow) {
		return fmt.Sprintf("allowed: real %t (%s), ours %t", decision == authorizer.DecisionAllow, reason, res.Allowed)
	}
	disagree := ""
	real, errs := r.visit(attrs.User, a.Namespace, c.real[:0], func(rule *rbacv1.PolicyRule) bool {
		allows := rbac.RuleAllows(attrs, rule)
		if allows != c.ours.RuleAllows(a, rule) {
			disagree = fmt.Sprintf("rule %v by itself: real %t", *rule, allows)
		}
		return allows
	})
	c.real = real
	if disagree != "" {
		return disagree
	}
	if text := c.grantsAgree(s, real, res.Grants); text != "" {
		return text
	}
	if text := sameTexts("error", errs, res.Errors()); text != "" {
		return text
	}
	switch {
	case res.Allowed:
		for from := range c.each() {
			if string(from) == reason {
				return ""
			}
		}
		return fmt.Sprintf("reason %q is not among ours", reason)
	case len(errs) <= 1 && res.Reason() != reason || len(res.Reason()) != len(reason): // several errors come in any order
		return fmt.Sprintf("reason: real %q, ours %q", reason, res.Reason())
	}
	return ""
}

// each iterates over the reasons of the grants compared last.
func (c *checker) each() func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		start := 0
		for _, end := range c.ends {
			if !yield(c.reasons[start:end]) {
				return
			}
			start = end
		}
	}
}

// grantsAgree compares the real sources of a decision, of which the first of each binding
// counts, with grants: the same bindings, each with the same rule, to the pointer. Those of
// ClusterRoleBindings have to come first.
func (c *checker) grantsAgree(s *rbacindex.Snapshot, real []source, grants []rbacindex.Grant) string {
	c.reasons, c.ends = c.reasons[:0], c.ends[:0]
	for i, g := range grants {
		c.reasons = g.AppendReason(c.reasons)
		c.ends = append(c.ends, len(c.reasons))
		if i > 0 && grants[i-1].BindingKind() == rbacindex.KindRoleBinding && g.BindingKind() != rbacindex.KindRoleBinding {
			return g.Reason() + " comes after a RoleBinding's"
		}
	}
	n := 0
	for i := range real {
		if i > 0 && real[i].from == real[i-1].from {
			continue
		}
		n++
		at, found := 0, false
		for mine := range c.each() {
			if bytes.HasPrefix(mine, []byte(allowedBy)) && string(mine[len(allowedBy):]) == real[i].from {
				found = true
				break
			}
			at++
		}
		if !found {
			return fmt.Sprintf("grant %q is not among ours", real[i].from)
		}
		if rule := ruleOf(s, grants[at]); rule != real[i].rule {
			return fmt.Sprintf("grant %q: the first rule that allows is %v, ours %v", real[i].from, *real[i].rule, rule)
		}
	}
	if n != len(grants) {
		return fmt.Sprintf("%d grants, ours are %d: %s", n, len(grants), c.reasons)
	}
	return ""
}

// ruleOf returns the rule of a grant.
func ruleOf(s *rbacindex.Snapshot, g rbacindex.Grant) *rbacv1.PolicyRule {
	o, _ := s.Get(g.RoleKey())
	if rules := rulesIn(o); g.Rule() < len(rules) {
		return &rules[g.Rule()]
	}
	return nil
}

// sameTexts compares two lists as sets; neither has anything twice unless that is wrong.
func sameTexts(what string, real, ours []string) string {
	for _, v := range real {
		if !slices.Contains(ours, v) {
			return fmt.Sprintf("%s %q is not among ours: %q", what, v, ours)
		}
	}
	if len(real) != len(ours) {
		return fmt.Sprintf("%ss: real %q, ours %q", what, real, ours)
	}
	return ""
}

// rules compares all rules of a subject in a namespace: one by one with where each is from,
// as counted by the review of one's own rules, and merged.
func (c *checker) rules(s *rbacindex.Snapshot, r *Real, a *rbacindex.Attributes) string {
	who := &user.DefaultInfo{Name: a.User, Groups: a.Groups}
	all := func(*rbacv1.PolicyRule) bool { return true }
	real, errs := r.visit(who, a.Namespace, c.real[:0], all)
	mine := c.mine[:0]
	res := s.RulesFor(a.User, a.Groups, a.Namespace, func(g rbacindex.Grant, rule *rbacv1.PolicyRule) bool {
		if rule != ruleOf(s, g) {
			rule = nil
		}
		mine = append(mine, source{strings.TrimPrefix(g.Reason(), allowedBy), rule})
		return true
	})
	c.real, c.mine, c.yes = real, mine, len(mine) > 0
	// Bindings come in any order, the rules of each in theirs.
	byFrom := func(x, y source) int { return strings.Compare(x.from, y.from) }
	slices.SortStableFunc(real, byFrom)
	slices.SortStableFunc(mine, byFrom)
	for i := range min(len(real), len(mine)) {
		if real[i] != mine[i] {
			return fmt.Sprintf("rules: real %q %v, ours %q %v", real[i].from, *real[i].rule, mine[i].from, mine[i].rule)
		}
	}
	if len(real) != len(mine) {
		return fmt.Sprintf("%d rules, ours are %d", len(real), len(mine))
	}
	if text := sameTexts("error", errs, res.Errors()); text != "" {
		return text
	}
	resources, paths, _, err := r.rbac.RulesFor(context.Background(), who, a.Namespace)
	if text := sameTexts("error", texts(err), res.Errors()); text != "" {
		return text
	}
	for _, m := range mine {
		if len(m.rule.Resources) > 0 {
			resources = resources[1:]
		}
		if len(m.rule.NonResourceURLs) > 0 {
			paths = paths[1:]
		}
	}
	if len(resources)+len(paths) != 0 {
		return fmt.Sprintf("a review has %d resource rules and %d path rules more", len(resources), len(paths))
	}
	return c.can(s, r, a)
}

// can compares merged rules with the real ones, piece by piece: what one side has the other
// covers, by the real comparison of rules.
func (c *checker) can(s *rbacindex.Snapshot, r *Real, a *rbacindex.Attributes) string {
	who := &user.DefaultInfo{Name: a.User, Groups: a.Groups}
	held := s.Can(a.User, a.Groups)
	for _, ns := range []string{"", a.Namespace} {
		real, _ := r.rules.RulesFor(context.Background(), who, ns)
		total := 0
		for i := range real {
			if total += pieces(&real[i]); total > 150 {
				return "" // quadratic
			}
		}
		var theirs, mine []rbacv1.PolicyRule
		for _, rule := range real {
			for _, piece := range validation.BreakdownRule(rule) {
				if ns == "" || len(piece.NonResourceURLs) == 0 {
					theirs = append(theirs, piece)
				}
			}
		}
		for _, h := range held {
			if h.Namespace != "" && h.Namespace != ns {
				continue
			}
			for _, rule := range h.Rules {
				if ns == "" || len(rule.NonResourceURLs) == 0 {
					mine = append(mine, rule.PolicyRule)
				}
			}
		}
		if ok, missing := validation.Covers(mine, theirs); !ok {
			return fmt.Sprintf("merged rules in %q lack %v", ns, missing)
		}
		if ok, more := validation.Covers(theirs, mine); !ok {
			return fmt.Sprintf("merged rules in %q have %v too many", ns, more)
		}
	}
	return ""
}

func (c *checker) covers(owner, wanted []rbacv1.PolicyRule) string {
	_, real := validation.Covers(owner, wanted)
	mine := c.ours.Covers(owner, wanted)
	c.yes = len(mine) == 0
	if !slices.EqualFunc(real, mine, equalRules) {
		return fmt.Sprintf("not covered: real %v, ours %v", real, mine)
	}
	return ""
}

func equalRules(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}

// escalation compares the answer of the check against escalation with what the real
// storage returns. Evaluation errors at the end of its text come in any order.
func (c *checker) escalation(e rbacindex.Escalation, real error) string {
	c.yes = e.Allowed
	if e.Allowed != (real == nil) {
		return fmt.Sprintf("let through: real %t (%v), ours %t (%s)", real == nil, real, e.Allowed, e.Reason)
	}
	if real == nil {
		return ""
	}
	text, forbidden := reasonOf(real)
	if e.RoleAbsent == forbidden {
		return fmt.Sprintf("role absent: real %v, ours %t", real, e.RoleAbsent)
	}
	const more = "; resolution errors: "
	theirs, theirErrs, _ := strings.Cut(text, more)
	mine, myErrs, _ := strings.Cut(e.Reason, more)
	if theirs != mine || len(theirErrs) != len(myErrs) {
		return fmt.Sprintf("refusal: real %q, ours %q", text, e.Reason)
	}
	return ""
}
