package compare

import (
	"fmt"

	"github.com/retrial-io/retrial/rbacindex"
)

// Case is a policy as it came about, and a question about it.
type Case struct {
	// Writes lead to the policy. Without Applied, the snapshot is built of what they leave.
	Writes []rbacindex.Change
	// Applied: the snapshot is reached by applying the writes one by one, and the question is
	// asked after each, so that what is remembered for one version can show in the next.
	Applied  bool
	Question Question
}

// Disagreement says how the two sides disagree, "" if they do not.
func (c *Case) Disagreement(ours Ours) string {
	ck := &checker{ours: ours}
	p := NewPolicy()
	r := NewReal(p)
	if !c.Applied {
		p.Apply(c.Writes...)
		s, err := rbacindex.New(p.Objects()...)
		if err != nil {
			return ""
		}
		return ck.check(s, r, &c.Question)
	}
	s := rbacindex.Empty()
	for _, w := range c.Writes {
		next, err := s.Apply(w)
		if err != nil {
			return ""
		}
		s = next
		p.Apply(w)
		if text := ck.check(s, r, &c.Question); text != "" {
			return text
		}
	}
	return ""
}

// Disagreement is a case the two sides disagree about, as small as it could be made.
type Disagreement struct {
	Case Case
	Text string
	// Repeats is false if the question asked alone gets the same answers: then it is one of
	// what was asked before, and Case is the whole history.
	Repeats bool
}

// Error prints the disagreement with its case.
func (d *Disagreement) Error() string {
	raw, err := d.Case.MarshalJSON()
	if err != nil {
		return fmt.Sprintf("%s (the case cannot be printed: %v)", d.Text, err)
	}
	if !d.Repeats {
		return fmt.Sprintf("%s, but only after other questions\n%s", d.Text, raw)
	}
	return fmt.Sprintf("%s\n%s", d.Text, raw)
}

// reduce makes a disagreement small.
func reduce(ours Ours, c Case, text string) *Disagreement {
	for _, applied := range []bool{false, true} {
		try := c
		try.Applied = applied
		if try.Disagreement(ours) != "" {
			try = shrink(try, true, func(c *Case) bool { return c.Disagreement(ours) != "" })
			return &Disagreement{Case: try, Text: try.Disagreement(ours), Repeats: true}
		}
	}
	return &Disagreement{Case: c, Text: text}
}
