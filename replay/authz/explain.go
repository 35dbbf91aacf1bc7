package authz

import (
	"strconv"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
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
			l.explain(&s, ans, u, a, m, limit)
		}
		out[i] = s
	}
	return out
}
