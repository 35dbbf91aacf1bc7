package query

import (
	"context"
	"time"
)

// Asked says who asked what in a minute, and how it ended.
type Asked struct {
	Minute   time.Time `json:"minute"`            // in which it was asked
	Door     string    `json:"door"`              // page, socket, sql, or direct
	Caller   string    `json:"caller"`            // who asked: a user of this machine, or what is known of whoever holds the token
	Address  string    `json:"address,omitempty"` // where from
	Question string    `json:"question"`          // its name, or sql
	Detail   string    `json:"detail"`            // parameters, or the statement
	Status   string    `json:"status"`            // ok, refused, failed
	Count    int64     `json:"count"`             // how often in that minute
	Bytes    int64     `json:"bytes"`             // of all answers of that minute
	Seconds  float64   `json:"seconds"`           // that all of them took
}

// QueryLogRequest asks who asked what of the store, newest first. Every question about what somebody did is recorded within two seconds;
// classes, clusters, connection, doctor, drained, rules and status are not.
type QueryLogRequest struct {
	Asks[QueryLogAnswer] `question:"query-log"`
	Before               time.Time `json:"before" help:"questions before this time"`
	Limit                int       `json:"limit" default:"50" min:"1" max:"500" help:"most lines of an answer" flag:"most lines, up to 500"`
}

// QueryLogAnswer says who asked what.
type QueryLogAnswer struct {
	Asked []Asked `json:"asked"` // newest first
}

// QueryLog answers who asked what, newest first.
func (*Service) QueryLog(ctx context.Context, tables Tables, q QueryLogRequest) (out QueryLogAnswer, err error) {
	list, err := tables.QueryLog(ctx, q.Before, q.Limit)
	if err != nil {
		return out, err
	}
	out.Asked = []Asked{}
	for _, e := range list {
		out.Asked = append(out.Asked,
			Asked{e.Time.UTC(), e.Door, e.Caller, e.Address, e.Question, e.Detail, e.Status, e.Count, e.Bytes, e.Took.Seconds()})
	}
	return out, nil
}
