package main

import (
	"context"
	"net/url"
	"time"
)

type askedJSON struct {
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
func (a *api) queryLog(ctx context.Context, q url.Values) (any, error) {
	before, err := instant(q, "before")
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(q, usualEvents, mostEvents)
	if err != nil {
		return nil, err
	}
	list, err := a.store.QueryLog(ctx, before, limit)
	if err != nil {
		return nil, err
	}
	out := struct {
		Asked []askedJSON `json:"asked"`
	}{Asked: []askedJSON{}}
	for _, e := range list {
		out.Asked = append(out.Asked, askedJSON{e.Time.UTC(), e.Door, e.Caller, e.Address, e.Question, e.Detail, e.Status, e.Count, e.Bytes, e.Took.Seconds()})
	}
	return out, nil
}
