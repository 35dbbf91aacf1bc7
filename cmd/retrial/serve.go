package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/server"
)

func newServe(s cli.Streams) *cobra.Command {
	var withSample bool
	c := newServer(s, server.Both, &withSample, &cobra.Command{
		Use:   "serve",
		Short: "Receive audit events, replay them, store the verdicts and show them",
		Long: `Run everything in one process: the audit webhook's endpoint, the stream, the replay, the
store and the page. By default Kafka and ClickHouse are embedded and everything lives in
./data; --kafka-brokers and --clickhouse-dsn name real ones. With a real Kafka the two halves
may run as processes of their own, as many of each as it takes: retrial ingest, retrial replay.

The state requests are judged against comes from the audit stream, from state files
(import --state), and from clusters that can be watched: --watch-clusters
prod=/path/to/kubeconfig lists and watches roles, bindings, namespaces and service accounts
(never Secrets; deploy/watch-rbac.yaml grants no more). Clusters whose audit policy records
writes without their bodies need one of the latter two.

--apiserver-config prod=/etc/retrial/prod says how the apiservers of a cluster authenticate
and authorize: a folder with their static-pod manifest or flags and the files these name
(docs/apiserver-config.md). It is read again when files change.`,
	})
	c.Flags().BoolVar(&withSample, "sample", false, "take in the bundled recording of a real audit log as cluster \"sample\"")
	return c
}

// newServer completes the command of a process that runs until it is stopped: serve, ingest
// and replay take the same configuration, so that one file does for all of them.
func newServer(s cli.Streams, runs server.Halves, withSample *bool, c *cobra.Command) *cobra.Command {
	var profile string
	c.Args = cli.NoArgs
	flags := config.Bind(c.Flags())
	c.Flags().StringVar(&profile, "cpu-profile", "", "write a CPU profile of the run to this file")
	// The only error is that there is no such flag.
	_ = c.Flags().MarkDeprecated("cpu-profile",
		"it will be removed in the next release: --debug-listen 127.0.0.1:6060 serves profiles at /debug/pprof/")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := flags.Load()
		if err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		sv := server.Server{Config: cfg, Runs: runs, Sample: *withSample, Out: s.Out}
		if err := sv.Check(); err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		stop, err := profileTo(profile)
		if err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		defer stop()
		if sv.Log, err = server.NewLog(s.Err, cfg.Log); err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		return sv.Run(c.Context())
	}
	return c
}

// profileTo starts a CPU profile unless the file's name is empty; stop ends it.
func profileTo(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("--cpu-profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("--cpu-profile: %w", err), f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

func newIngest(s cli.Streams) *cobra.Command {
	return newServer(s, server.Ingest, new(bool), &cobra.Command{
		Use:   "ingest",
		Short: "Receive audit events and hand them to Kafka: one half of serve",
		Long: `Run the receiving half of ` + "`retrial serve`" + `: the audit webhook's endpoint, redaction, and the
way into Kafka. It keeps no store and judges nothing; retrial replay does, on the same Kafka.
Run as many as the posts need, behind one address: they share nothing but Kafka, the
authority with its registry of clusters (DATA-DIR/pki) and the redaction key, which have to be
the same in all of them (deploy/scale-out.yaml).

It takes the configuration of serve; what concerns the store, the replay and the page is not
used. --ui-listen is where its metrics are: /metrics, /healthz, /readyz. retrial import with its
--data-dir hands logs to it; states go to a replay process, which knows what is known already.`,
	})
}

func newReplay(s cli.Streams) *cobra.Command {
	return newServer(s, server.Replay, new(bool), &cobra.Command{
		Use:   "replay",
		Short: "Replay what is in Kafka, store the verdicts and show them: the other half of serve",
		Long: `Run the judging half of ` + "`retrial serve`" + `: it reads audit.events and audit.policy from Kafka,
replays every event, stores rows in ClickHouse, and answers the page and the commands. Run as many
as the events need, up to the number of partitions: Kafka shares the partitions out among
them, and the others take over from the last commit of one that stops. One of them at a time runs
detections and watches clusters.

Several of them need a ClickHouse server (--clickhouse-dsn); one alone may use the embedded store.
It takes the configuration of serve; what concerns the webhook is not used.`,
	})
}
