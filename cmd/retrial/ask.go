package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// asker is what commands that ask questions share: whom to ask, and how.
//
//	question ─▶ running server (--server URL, or the data directory's socket) ─▶ api/v1/…
//	   ├ none running ─▶ the same API on the store, opened here
//	   └ --events ─▶ the same API on a log, replayed here (bindLog)
type asker struct {
	flags  *config.Flags
	set    *pflag.FlagSet
	server string
	log    *offlineLog // nil: the question is not asked of logs
	with   cli.Streams // of the command, for the log
}

// bind adds the flags every such command has. Help shows those of the configuration that
// matter to all of them, and the named ones.
func (a *asker) bind(c *cobra.Command, show ...string) {
	a.flags, a.set = config.Bind(c.Flags()), c.Flags()
	showFlags(c.Flags(), append(show, "data-dir", "clickhouse-dsn")...)
	c.Flags().StringVar(&a.server, "server", "", "URL of a server's page (default: the local socket); a token comes from RETRIAL_TOKEN")
}

// bindLog adds the flags by which a log is asked instead.
func (a *asker) bindLog(c *cobra.Command, s cli.Streams) {
	a.log, a.with = &offlineLog{}, s
	a.log.bind(c)
	before := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if err := before(c, args); err != nil {
			return err
		}
		named, err := a.log.named(c)
		if named && a.server != "" {
			return cli.UsageError(c, "--server and --events exclude each other")
		}
		return err
	}
}

// openFor returns a client that answers questions about one cluster, "" for the only one.
func (a *asker) openFor(ctx context.Context, cluster string) (client *apiclient.Client, done func() error, err error) {
	if a.log == nil || len(a.log.events) == 0 {
		return a.open(ctx)
	}
	client, err = a.log.client(ctx, a.with, cluster)
	return client, func() error { return nil }, err
}

// apiservers are the entries of --apiserver-config on the command line: of a log that is
// replayed here one may be a folder without a cluster's name, which no configuration takes.
func (a *asker) apiservers() []string {
	if flag := a.set.Lookup("apiserver-config"); flag != nil && flag.Changed {
		return strings.Split(flag.Value.String(), ",")
	}
	return nil
}

// open returns a client of the API. Close it when done.
func (a *asker) open(ctx context.Context) (client *apiclient.Client, done func() error, err error) {
	cfg, err := a.flags.Load()
	if err != nil {
		return nil, nil, cli.ExitWith(cli.ExitUsage, err)
	}
	client, err = apiclient.Dial(ctx, a.server, cfg.DataDir)
	if err == nil {
		return client, func() error { return nil }, nil
	}
	if !errors.Is(err, apiclient.ErrNoServer) {
		return nil, nil, err
	}
	if _, none := os.Stat(storeDir(cfg)); cfg.ClickHouse.DSN == "" && none != nil {
		// Opening it would make an empty one, in whatever folder this is.
		return nil, nil, fmt.Errorf("%w, and nothing is stored there; name another folder with --data-dir", err)
	}
	sys := &system{cfg: cfg, log: zap.NewNop(), reg: prometheus.NewRegistry()}
	store, err := sys.openStore(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, sys.close())
	}
	states, err := loadStates(ctx, store)
	if err != nil {
		return nil, nil, errors.Join(err, sys.close())
	}
	asking := api.NewQueryLog(store, zap.NewNop())
	sys.closers = append(sys.closers, asking.Close)
	rules, err := configuredRules(cfg)
	if err != nil {
		return nil, nil, errors.Join(cli.ExitWith(cli.ExitUsage, err), sys.close())
	}
	if sys.apiservers, err = openApiservers(cfg.Replay.ApiserverConfig, sys.log, sys.reg); err != nil {
		return nil, nil, errors.Join(err, sys.close())
	}
	site := closedSite(cfg, sys.apiservers)
	engine := replay.New(replay.Config{Lag: time.Duration(cfg.Replay.Lag), Version: version, Apiserver: sys.apiservers.history})
	if len(cfg.Replay.ApiserverConfig) > 0 { // else it may only not have been given to this command
		other, err := newOtherwise(engine, store, site.DataDir(), sys.log, sys.reg)
		if err != nil {
			return nil, nil, errors.Join(err, sys.close())
		}
		site.Otherwise = other.of
	}
	handler := apiHandler(query.RuledStore{Store: store, Set: rules}, states, asking, zap.NewNop(), api.LongestQuery, at(site))
	return apiclient.InProcess(handler), sys.close, nil
}

// answerOf opens a client, asks one question and closes it.
func answerOf[A any](ctx context.Context, a *asker, request query.Request[A]) (A, error) {
	client, done, err := a.open(ctx)
	if err != nil {
		_, none := request.Question()
		return none, err
	}
	answer, err := apiclient.Ask(ctx, client, request)
	return answer, errors.Join(err, done())
}

// answerOne asks one question about the cluster that is named, or the only one there is: the name of
// which is written back into the request before it is asked.
func answerOne[A any, R query.Request[A]](ctx context.Context, a *asker, cluster *string, request *R) (answer A, err error) {
	client, done, err := a.openFor(ctx, *cluster)
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if *cluster, err = client.OneCluster(ctx, *cluster); err != nil {
		return answer, err
	}
	return apiclient.Ask(ctx, client, *request)
}

// storedStates are the states of all clusters as the store has them: what the API asks when
// no replay is running.
type storedStates map[string]*state.State

// loadStates rebuilds the states from the policy table.
func loadStates(ctx context.Context, store *storage.Store) (storedStates, error) {
	states := storedStates{}
	_, err := store.LoadPolicy(ctx, func(v verdict.PolicyVersion) error {
		o, err := state.DecodeObservation(v.Observation)
		if err != nil {
			return nil // as in the runner: what it said stays unknown
		}
		st, ok := states[v.Cluster]
		if !ok {
			st = state.New(v.Cluster)
			states[v.Cluster] = st
		}
		st.Apply(o)
		return nil
	})
	return states, err
}

// Lag is none: nothing is under way.
func (storedStates) Lag() verdict.Backlog { return verdict.Backlog{} }

// WaitDrained returns at once.
func (storedStates) WaitDrained(context.Context) error { return nil }

// Clusters names the clusters anything is known of, sorted.
func (s storedStates) Clusters() []string { return slices.Sorted(maps.Keys(s)) }

// State returns what is known of a cluster.
func (s storedStates) State(cluster string) (*state.State, bool) {
	st, ok := s[cluster]
	return st, ok
}
