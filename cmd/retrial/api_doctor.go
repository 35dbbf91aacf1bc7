package main

import (
	"context"
	"net/url"

	"github.com/retrial-io/retrial/internal/config"
)

// listensLocally: only this machine reaches the webhook's listener.
func (s site) listensLocally() bool {
	if s.hook != nil && s.hook() != "" {
		return config.Loopback(s.hook())
	}
	return config.Loopback(s.cfg.Webhook.Listen)
}

func (a api) doctor(context.Context, url.Values) (any, error) { return nil, nil }
