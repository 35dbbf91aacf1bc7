package query

import (
	"context"
	"time"
)

// Asked is who asked what in a minute, and how it went.
type Asked struct {
	Minute   time.Time `json:"minute"`
	Door     string    `json:"door"`
	Caller   string    `json:"caller"`
	Address  string    `json:"address,omitempty"`
	Question string    `json:"question"`
	Detail   string    `json:"detail"`
	Status   string    `json:"status"`
	Count    int64     `json:"count"`
	Bytes    int64     `json:"bytes"`
	Seconds  float64   `json:"seconds"`
}

// QueryLogRequest asks who asked what of the store, newest first.
type QueryLogRequest struct {
	Before time.Time `json:"before" help:"questions before this time"`
	Limit  int       `json:"limit" default:"50" min:"1" max:"500" help:"most lines of an answer" flag:"most lines, up to 500"`
}

// Question implements Request.
func (QueryLogRequest) Question() (name string, answer QueryLogAnswer) { return "query-log", answer }

// QueryLogAnswer is who asked what.
type QueryLogAnswer struct {
	Asked []Asked `json:"asked"`
}

// QueryLog answers who asked what, newest first.
func (a *Service) QueryLog(ctx context.Context, q QueryLogRequest) (out QueryLogAnswer, err error) {
	list, err := a.Store.QueryLog(ctx, q.Before, q.Limit)
	if err != nil {
		return out, err
	}
	out.Asked = []Asked{}
	for _, e := range list {
		out.Asked = append(out.Asked, Asked{e.Time.UTC(), e.Door, e.Caller, e.Address, e.Question, e.Detail, e.Status, e.Count, e.Bytes, e.Took.Seconds()})
	}
	return out, nil
}
