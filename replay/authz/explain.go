package authz

import (
	"strconv"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

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
