package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/query/api"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/storage"
)

// Connect returns a client of the server at a URL or, without one, of the server that runs on the data directory. Where none runs, the
// client answers from the store, which is open until done is called.
func Connect(ctx context.Context, url string, cfg config.Config) (client *apiclient.Client, done func() error, err error) {
	if client, err = dial(ctx, url, cfg); client != nil || err != nil {
		return client, func() error { return nil }, err
	}
	sys := &system{cfg: cfg, log: zap.NewNop(), reg: prometheus.NewRegistry()}
	handler, err := sys.stored(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, sys.close())
	}
	return apiclient.InProcess(handler), sys.close, nil
}

// dial returns a client of a running server, nil if none runs and something is stored in the data directory.
func dial(ctx context.Context, url string, cfg config.Config) (*apiclient.Client, error) {
	client, err := apiclient.Dial(ctx, url, cfg.DataDir)
	if err == nil {
		return client, nil
	}
	if !errors.Is(err, apiclient.ErrNoServer) {
		return nil, err
	}
	if _, none := os.Stat(storeDir(cfg)); cfg.ClickHouse.DSN == "" && none != nil {
		// Opening it would make an empty store, in whatever folder this is.
		return nil, fmt.Errorf("%w, and nothing is stored there; name another folder with --data-dir", err)
	}
	return nil, nil
}

func (s *system) stored(ctx context.Context) (http.Handler, error) {
	store, err := s.openStore(ctx)
	if err != nil {
		return nil, err
	}
	asking := api.NewQueryLog(store, zap.NewNop())
	s.closers = append(s.closers, asking.Close)
	rules, err := configuredRules(s.cfg)
	if err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	if s.apiservers, err = openApiservers(s.cfg.Replay.ApiserverConfig, s.log, s.reg); err != nil {
		return nil, err
	}
	site := ClosedSite(s.cfg)
	site.Apiserver = s.apiservers.history
	engine := replay.New(replay.Config{Lag: time.Duration(s.cfg.Replay.Lag), Version: version.Version, Apiserver: s.apiservers.history})
	if len(s.cfg.Replay.ApiserverConfig) > 0 { // else it may only not have been given to this command
		site.Otherwise = newOtherwise(engine, store, site.DataDir(), s.log, s.reg).of
	}
	_, questions := questionsOf(ruledStore{store, rules}, &storedStates{store: store}, nil, site)
	return api.New(questions, asking, zap.NewNop(), api.LongestQuery), nil
}

// ConnectToJudge is Connect for commands that judge: where no server runs, it calls alone, opens one without listeners, judging until done.
func ConnectToJudge(ctx context.Context, cfg config.Config, alone func()) (client *apiclient.Client, done func() error, err error) {
	if client, err = dial(ctx, "", cfg); client != nil || err != nil {
		return client, func() error { return nil }, err
	}
	sys, err := openSystem(ctx, cfg, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		return nil, nil, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- sys.runner.Run(running) }()
	done = func() error {
		stop()
		return errors.Join(<-ended, sys.close())
	}
	alone()
	if err := sys.runner.WaitDrained(ctx); err != nil {
		return nil, nil, errors.Join(err, done())
	}
	door, _ := newAPI(sys)
	return apiclient.InProcess(door), done, nil
}

// OpenStore opens the configured store alone, until done is called.
func OpenStore(ctx context.Context, cfg config.Config) (store *storage.Store, done func() error, err error) {
	sys := &system{cfg: cfg, log: zap.NewNop(), reg: prometheus.NewRegistry()}
	if store, err = sys.openStore(ctx); err != nil {
		return nil, nil, errors.Join(err, sys.close())
	}
	return store, sys.close, nil
}
