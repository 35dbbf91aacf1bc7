package authz

import (
	"strconv"
	"strings"

	"k8s.io/apiserver/pkg/authorization/cel"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// Shortfall is what one authorizer of a chain would have needed to allow a request, for
// people.
type Shortfall struct {
	Authorizer string `json:"authorizer"`
	Answer     string `json:"answer"` // one of the Answer constants
	// Text says in one line why it did not allow the request, or that it did.
	Text string `json:"text"`
	// Almost are what nearly allowed it, a line each: lines of the ABAC policy file that are
	// for the user and differ in one thing.
	Almost []string `json:"almost,omitempty"`
	// RBAC tells of rules, roles and bindings; nil for other authorizers and when RBAC's
	// objects are not known.
	RBAC *rbacindex.Miss `json:"-"`
}

// Explain says of every authorizer of the chain what it would have needed to allow a request,
// with at most limit nearest misses of each kind. It is not made for the hot path.
func (c *Chain) Explain(u *event.User, a *verdict.Attributes, m *Moment, limit int) []Shortfall {
	ans := c.Authorize(u, a, m, nil)
	steps := ans.Steps()
	out := make([]Shortfall, len(steps))
	for i := range steps {
		l := &c.links[i]
		s := Shortfall{Authorizer: l.name, Answer: steps[i].Answer}
		switch steps[i].Answer {
		case verdict.AnswerAllow:
			s.Text = "allows it"
			if ans.Line > 0 {
				s.Text += " by line " + strconv.Itoa(ans.Line) + " of its policy file"
			}
		case verdict.AnswerNotAsked:
			s.Text = "is not asked: " + ans.Authorizer + " decides"
			if ans.by < 0 {
				s.Text = "whether it is asked is not known"
			}
		default:
			l.shortfall(&s, &ans, u, a, m, limit)
		}
		out[i] = s
	}
	return out
}

func (l *link) shortfall(s *Shortfall, ans *Answer, u *event.User, a *verdict.Attributes, m *Moment, limit int) {
	switch l.kind {
	case kindMasters:
		s.Text = "the user is not in the group " + authn.GroupMasters
	case kindPaths:
		s.Text = "it is none of the paths let through without asking"
	case kindAlwaysDeny:
		s.Text = "allows nothing; those behind it may"
	case kindNode:
		switch {
		case !node.Is(u.Username, u.Groups):
			s.Text = "the user is no node (" + authn.PrefixNode + "… in the group " + authn.GroupNodes + ")"
		case ans.node.Allowed == 0:
			s.Text = "not known: " + ans.node.Missing
		case ans.node.Reason != "":
			s.Text = ans.node.Reason
		default:
			s.Text = "no rule for nodes allows it"
		}
	case kindRBAC:
		s.Text = "no binding grants it"
		if text := ans.RBAC.Reason(); text != "" {
			s.Text += " (" + text + ")"
		}
		if s.Answer == verdict.AnswerUnknown {
			s.Text = "not known: " + l.whatIsUnseen(ans)
		}
		if m.View != nil {
			miss := m.View.RBAC.NearestMiss(&rbacindex.Attributes{
				User: u.Username, Groups: u.Groups, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup, Resource: a.Resource,
				Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path,
			}, limit)
			s.RBAC = &miss
		}
	case kindABAC:
		if l.abac == nil {
			s.Text = "not known: " + l.unknown
			return
		}
		s.Text = "no line of the policy file allows it"
		s.Almost = l.abac.almost(u, a, limit)
	case kindWebhook:
		s.Text = l.hookShortfall(s.Answer, u, a)
	default:
		s.Text = "not known: " + l.unknown
	}
}

func (l *link) whatIsUnseen(ans *Answer) string {
	if len(ans.unseen) == 0 {
		return noObjects
	}
	return strings.Join(ans.unseen, ", ")
}

// hookShortfall names the match condition that keeps a webhook out, or what became of it.
func (l *link) hookShortfall(answer string, u *event.User, a *verdict.Attributes) string {
	if answer == verdict.AnswerUnknown {
		return "is asked; its answer is in no log (" + l.missing() + ")"
	}
	for _, r := range l.hook.matcher.CompilationResults {
		one := &webhook{selectors: l.hook.selectors, matcher: &cel.CELMatcher{
			CompilationResults: []cel.CompilationResult{r}, UsesFieldSelector: r.UsesFieldSelector, UsesLabelSelector: r.UsesLabelSelector,
		}}
		state := one.evaluate(u, a)
		expression := r.ExpressionAccessor.GetExpression()
		switch {
		case answer == verdict.AnswerSkipped && state == hookSkipped:
			return "is not asked: the match condition " + expression + " is false"
		case answer != verdict.AnswerSkipped && state == hookFailed && l.hook.deny:
			return "refuses it, because the match condition " + expression + " failed"
		case answer != verdict.AnswerSkipped && state == hookFailed:
			return "is passed over, because the match condition " + expression + " failed"
		}
	}
	return "is not asked"
}

// almost words the lines that are for a user and differ from what he asks for in one thing.
func (x *abacIndex) almost(u *event.User, a *verdict.Attributes, limit int) (out []string) {
	for i := range x.policy.Lines {
		line := x.policy.Lines[i]
		subject, ok := subjectOf(&line, x.minor)
		if !ok || !subject.is(u) {
			continue
		}
		single := newLines()
		single.add(&line, 1)
		lacks := ""
		try := func(what string, changed verdict.Attributes) {
			q := abacQuery{a: &changed, reading: reads(changed.Verb)}
			if q.ask(single); q.first > 0 && lacks == "" {
				lacks = what
			}
		}
		read, elsewhere, other, grouped, path := *a, *a, *a, *a, *a
		read.Verb = request.VerbGet
		try("it is for reading", read)
		if a.ResourceRequest {
			elsewhere.Namespace, other.Resource, grouped.APIGroup = line.Namespace, line.Resource, line.APIGroup
			try("it is for "+inNamespace(line.Namespace), elsewhere)
			try("it is for the resource "+strconv.Quote(line.Resource), other)
			try("it is for the API group "+strconv.Quote(line.APIGroup), grouped)
		} else if line.NonResourcePath != "" {
			path.Path = line.NonResourcePath
			try("it is for the path "+line.NonResourcePath, path)
		}
		if lacks == "" {
			continue
		}
		number := line.Line
		if number == 0 {
			number = i + 1
		}
		out = append(out, "line "+strconv.Itoa(number)+": "+lacks)
		if len(out) == limit {
			break
		}
	}
	return out
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return "what is in no namespace"
	}
	return "the namespace " + strconv.Quote(namespace)
}

// is reports whether a line for this subject is for a user.
func (s abacSubject) is(u *event.User) bool {
	if s.user != "" && s.user != u.Username {
		return false
	}
	if s.group == "" {
		return true
	}
	for _, g := range u.Groups {
		if g == s.group {
			return true
		}
	}
	return false
}
