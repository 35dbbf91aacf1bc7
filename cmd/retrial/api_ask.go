package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"github.com/retrial-io/retrial/storage"
)

// askingQueries is what the API asks by name.
type askingQueries interface {
	Ask(ctx context.Context, name, cluster string, values map[string]string) (storage.Question, [][]any, error)
}

// questionRoutes are the questions that have a name.
func (a *api) questionRoutes() []route {
	return []route{{"ask", []string{"cluster", "question", "values"}, costQuery, a.ask}}
}

// answerJSON is the answer to a question by name.
type answerJSON struct {
	Cluster  string   `json:"cluster"`
	Question string   `json:"question"`
	Columns  []string `json:"columns"`
	Rows     [][]any  `json:"rows"` // texts, numbers, and times in RFC 3339
}

// ask answers a named question; values is a JSON object of its parameters.
func (a *api) ask(ctx context.Context, q url.Values) (any, error) {
	if q.Get("cluster") == "" || q.Get("question") == "" {
		return nil, bad("name a cluster and a question, one of %s", questionNames())
	}
	values := map[string]string{}
	if text := q.Get("values"); text != "" {
		if err := json.Unmarshal([]byte(text), &values); err != nil {
			return nil, bad("values: want a JSON object of texts: %v", err)
		}
	}
	question, rows, err := a.store.Ask(ctx, q.Get("question"), q.Get("cluster"), values)
	if errors.Is(err, storage.ErrQuestion) {
		return nil, badRequest{err}
	}
	if err != nil {
		return nil, err
	}
	if rows == nil {
		rows = [][]any{}
	}
	return answerJSON{q.Get("cluster"), question.Name, question.Columns, rows}, nil
}
