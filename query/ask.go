package query

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/retrial-io/retrial/storage"
)

// askingQueries is what questions ask by name.
type askingQueries interface {
	Ask(ctx context.Context, name, cluster string, values map[string]string) (storage.Question, [][]any, error)
}

// questionRoutes are the questions that have a name.
func (a *Service) questionRoutes() []Question {
	return []Question{{"ask", []string{"cluster", "question", "values"}, CostQuery, a.ask}}
}

// AskAnswer is the answer to a question by name.
type AskAnswer struct {
	Cluster  string   `json:"cluster"`
	Question string   `json:"question"`
	Columns  []string `json:"columns"`
	Rows     [][]any  `json:"rows"` // texts, numbers, and times in RFC 3339
}

// ask answers a named question; values is a JSON object of its parameters.
func (a *Service) ask(ctx context.Context, q url.Values) (any, error) {
	if q.Get("cluster") == "" || q.Get("question") == "" {
		return nil, Bad("name a cluster and a question, one of %s", QuestionNames())
	}
	values := map[string]string{}
	if text := q.Get("values"); text != "" {
		if err := json.Unmarshal([]byte(text), &values); err != nil {
			return nil, Bad("values: want a JSON object of texts: %v", err)
		}
	}
	question, rows, err := a.Store.Ask(ctx, q.Get("question"), q.Get("cluster"), values)
	if errors.Is(err, storage.ErrQuestion) {
		return nil, BadRequest{err}
	}
	if err != nil {
		return nil, err
	}
	if rows == nil {
		rows = [][]any{}
	}
	return AskAnswer{q.Get("cluster"), question.Name, question.Columns, rows}, nil
}

// QuestionNames lists the named questions.
func QuestionNames() string {
	var names []string
	for _, q := range storage.Questions() {
		names = append(names, q.Name)
	}
	return strings.Join(names, ", ")
}
