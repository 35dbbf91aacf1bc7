package query

import (
	"context"
	"net/url"
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

// queryLog answers who asked what, newest first.
func (a *Service) queryLog(ctx context.Context, q url.Values) (any, error) {
	before, err := Instant(q, "before")
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(q, usualEvents, mostEvents)
	if err != nil {
		return nil, err
	}
	list, err := a.Store.QueryLog(ctx, before, limit)
	if err != nil {
		return nil, err
	}
	out := struct {
		Asked []Asked `json:"asked"`
	}{Asked: []Asked{}}
	for _, e := range list {
		out.Asked = append(out.Asked, Asked{e.Time.UTC(), e.Door, e.Caller, e.Address, e.Question, e.Detail, e.Status, e.Count, e.Bytes, e.Took.Seconds()})
	}
	return out, nil
}
