package query

import (
	"context"

	"github.com/retrial-io/retrial/verdict"
)

// Outcomes are the outcomes of verdicts, as stored and printed.
var Outcomes = []string{"match", "drift", "ambiguous", "indeterminate", "not_judged"}

// ClassesRequest asks what outcomes and classes mean.
type ClassesRequest struct {
	Asks[ClassesAnswer] `question:"classes"`
}

// ClassesAnswer says what outcomes and classes mean: closed sets, the same for every cluster.
type ClassesAnswer struct {
	Outcomes []OutcomeMeaning `json:"outcomes"` // each with its meaning
	Classes  []ClassMeaning   `json:"classes"`  // each with its meaning
}

// OutcomeMeaning says what an outcome of a verdict means.
type OutcomeMeaning struct {
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
}

// ClassMeaning says what a class of verdicts means.
type ClassMeaning struct {
	Class   string `json:"class"`
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
}

// Classes answers what outcomes and classes mean.
func (*Service) Classes(context.Context, ClassesRequest) (ClassesAnswer, error) {
	out := ClassesAnswer{Outcomes: []OutcomeMeaning{
		{"match", "The replay came to the decision the apiserver recorded, for a reason the apiserver could give."},
		{"drift", "The replay came to another decision, or the recorded reason fits nothing in the policy: look at these first."},
		{"ambiguous", "The policy changed while the request was under way; before and after the change the answers differ, and the " +
			"record fits one of them."},
		{"indeterminate", "Something needed for a certain answer is not known. The verdict names it; supplying it settles the verdict."},
		{"not_judged", "The log records no authorization decision for the request: it was turned away before one was made."},
	}}
	for _, c := range verdict.Classes() {
		out.Classes = append(out.Classes, ClassMeaning{c.Class, c.Outcome.String(), c.Text})
	}
	return out, nil
}
