package query

import (
	"context"
	"errors"
	"strings"

	"github.com/retrial-io/retrial/storage/queries"
)

// AskAnswer is the answer to a question by name.
type AskAnswer struct {
	Cluster  string   `json:"cluster"`
	Question string   `json:"question"` // its name
	Columns  []string `json:"columns"`  // their names
	Rows     [][]any  `json:"rows"`     // texts, numbers, and times in RFC 3339
}

// AskRequest asks a question by its name.
type AskRequest struct {
	Asks[AskAnswer] `question:"ask"`
	Cluster         string            `json:"cluster" required:"true" help:"cluster the question is about" flag:"of this cluster (default: the only one)"`
	Name            string            `json:"question" help:"name of the question, of those in questions.md"`
	Values          map[string]string `json:"values" help:"the question's parameters, a JSON object of texts"`
}

func (r AskRequest) check() error {
	if r.Name == "" {
		return Bad("question is missing: one of %s", strings.Join(QuestionNames(), ", "))
	}
	return nil
}

// Ask answers a question by its name. It has as many rows as its parameters allow: where ctx has a Sink they go there as they are read.
func (*Service) Ask(ctx context.Context, tables Tables, q AskRequest) (out AskAnswer, err error) {
	sink := SinkOf(ctx)
	begin := func(question queries.Question) error {
		out = AskAnswer{q.Cluster, question.Name, question.Columns, [][]any{}}
		if sink == nil {
			return nil
		}
		return sink.Begin(out)
	}
	err = tables.VisitAnswer(ctx, q.Name, q.Cluster, q.Values, begin, func(row []any) error {
		if sink != nil {
			return sink.Add(row)
		}
		out.Rows = append(out.Rows, row)
		return nil
	})
	if errors.Is(err, queries.ErrQuestion) {
		err = BadRequest{err}
	}
	return out, err
}

// QuestionNames lists the named questions that no command answers.
func QuestionNames() (names []string) {
	for _, q := range queries.Questions() {
		if q.Now == "" {
			names = append(names, q.Name)
		}
	}
	return names
}
