package doctor

import (
	"context"
	"errors"

	"github.com/retrial-io/retrial/internal/config"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// AsRunning returns the configuration with the address the running server really listens on: it
// may have been given flags that this command was not.
func AsRunning(ctx context.Context, cfg config.Config, cluster string) config.Config {
	client, err := apiclient.Dial(ctx, "", cfg.DataDir)
	if err != nil {
		return cfg // none runs; waiting says so
	}
	answer, err := apiclient.Ask(ctx, client, ConnectionRequest{Cluster: cluster})
	if err != nil || answer.Receiver.Listen == "" {
		return cfg // not known there
	}
	cfg.Webhook.Listen = answer.Receiver.Listen
	return cfg
}

// RunningSteps returns a function that queries the running server about the connection. It finds the server
// anew each time: the server may be started, stopped and started again meanwhile. The store is never opened
// here: that would keep the server from starting.
func RunningSteps(cfg config.Config, cluster string) func(context.Context) ([]Step, error) {
	return func(ctx context.Context) ([]Step, error) {
		client, err := apiclient.Dial(ctx, "", cfg.DataDir)
		if errors.Is(err, apiclient.ErrNoServer) {
			return []Step{{ID: "server", Title: "The server runs", State: StateWaiting, Text: "None is running on " +
				config.Absolute(cfg.DataDir) + ".",
				Todo: Site{Config: cfg}.ServeCommand()}}, nil
		}
		if err != nil {
			return nil, err
		}
		defer client.Close()
		answer, err := apiclient.Ask(ctx, client, ConnectionRequest{Cluster: cluster})
		if err != nil {
			return nil, err
		}
		return append([]Step{{ID: "server", Title: "The server runs", State: StateDone}}, answer.Steps...), nil
	}
}
