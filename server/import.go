package server

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/oklog/run"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// WithServer calls use with the socket of the running server, or of one that it runs for
// the duration of the call, its own. drained waits until what was accepted is stored.
func WithServer(ctx context.Context, cfg config.Config, use func(socket string, drained func(context.Context) error) error) (own bool, err error) {
	socket := filepath.Join(cfg.DataDir, apiclient.SocketName)
	client, err := apiclient.Dial(ctx, "", cfg.DataDir)
	if err == nil {
		return false, use(socket, func(ctx context.Context) error {
			_, err := apiclient.Ask(ctx, client, query.DrainedRequest{})
			return err
		})
	}
	if !errors.Is(err, apiclient.ErrNoServer) {
		return false, err
	}
	sys, err := openSystem(ctx, cfg, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		return true, err
	}
	var group run.Group
	running, stop := context.WithCancel(ctx)
	defer stop()
	group.Add(func() error { return sys.runner.Run(running) }, func(error) { stop() })
	if _, err := listenLocally(sys, newAPI(sys), &group); err != nil {
		return true, errors.Join(err, sys.close())
	}
	group.Add(func() error {
		return use(socket, func(ctx context.Context) error {
			if err := sys.runner.WaitDrained(ctx); err != nil {
				return err
			}
			return sys.detect.finish(ctx)
		})
	}, func(error) { stop() })
	return true, errors.Join(group.Run(), sys.close())
}
