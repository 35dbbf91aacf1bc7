package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/importer"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/safe"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/server"
)

// FILE… ─▶ ingest/importer ─▶ data/retrial.sock of a running serve ─▶ the same receiver as webhooks
//
//	└▶ none running: the engines are opened here, and closed when all is stored
func newImport(s cli.Streams) *cobra.Command {
	var cluster, apiserver, stateFile, output string
	var wait bool
	c := &cobra.Command{
		Use:   "import --cluster NAME [--state FILE] [FILE...]",
		Short: "Take in recorded audit logs, and the state of their cluster",
		Long: `Post audit log files (JSON lines; plain, gzip or zstd; - for standard input) to the running
server, through the same receiver as webhooks. The files' policy writes go first, then all
events, so that everything is judged by the policy of its own moment. An import that was
interrupted continues where it stopped; what is stored already is not stored again.

With no server running the command opens the data directory itself, and takes the flags of
` + "`retrial serve`" + ` that are about it.

With --follow it tails logs that are being written, and what they are rotated into (renamed,
compressed, or copied and truncated), and closes what the audit webhook loses: an event that
came both ways is stored once. Its position holds only what is acknowledged, so that it may
be killed at any moment. On a machine without the server, --webhook-config posts with the
apiserver's own webhook file. See docs/completeness.md.`,
		Example: `  retrial import --cluster prod --state state.json audit.log audit-2026-11-19.log.gz
  zcat audit.log.gz | retrial import --cluster prod -
  retrial import --follow --webhook-config /etc/kubernetes/retrial/webhook.kubeconfig /var/log/kubernetes/audit.log`,
	}
	flags := config.Bind(c.Flags())
	showFlags(c.Flags(), "data-dir", "key-file", "clickhouse-dsn", "kafka-brokers")
	c.Flags().StringVar(&cluster, "cluster", "", "name of the cluster the files are from (required)")
	c.Flags().StringVar(&apiserver, "apiserver", "", "name of the apiserver the files are from")
	c.Flags().StringVar(&stateFile, "state", "", "objects as kubectl get -o json prints them")
	c.Flags().BoolVar(&wait, "wait", true, "return when everything is replayed and stored, not only accepted")
	var follow followFlags
	follow.bind(c)
	cli.AddOutput(c, &output, "table", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := flags.Load()
		if err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		if cluster == "" && !(follow.on && follow.webhookConfig != "") {
			return cli.ExitWith(cli.ExitUsage, errors.New("--cluster is missing: name the cluster the files are from"))
		}
		if cluster != "" && !identity.ValidName(cluster) {
			return cli.ExitWith(cli.ExitUsage, fmt.Errorf("--cluster %q: %w", cluster, identity.ErrName))
		}
		if follow.on {
			if stateFile != "" {
				return cli.ExitWith(cli.ExitUsage, errors.New("--follow takes no --state: import the state once, then follow"))
			}
			return follow.run(c.Context(), s, output, cfg, cluster, apiserver, args)
		}
		if follow != (followFlags{}) {
			return cli.ExitWith(cli.ExitUsage, errors.New("--webhook-config, --server, its credentials, --position and --delay are for --follow"))
		}
		if len(args) == 0 && stateFile == "" {
			return cli.ExitWith(cli.ExitUsage, errors.New("name an audit log, - for standard input, or a --state file"))
		}
		im := importer.Config{
			BaseURL: "http://retrial", Cluster: cluster, APIServer: apiserver,
			Position: server.PositionFile(cfg, cluster), SpoolDir: cfg.DataDir,
		}
		for _, path := range args {
			f, err := importer.OpenFile(path)
			if err != nil {
				return cli.ExitWith(cli.ExitUsage, err)
			}
			im.Files = append(im.Files, f)
		}
		if stateFile != "" {
			f, err := importer.OpenFile(stateFile)
			if err != nil {
				return cli.ExitWith(cli.ExitUsage, err)
			}
			im.State = &f
		}
		var sum importer.Summary
		own, err := server.WithServer(c.Context(), cfg, func(socket string, drained func(context.Context) error) error {
			im.Client = importer.SocketClient(socket)
			bar := cli.StartProgress(s.Err, "importing", -1)
			im.Progress = shown(bar)
			var err error
			sum, err = importer.Import(c.Context(), im)
			if err == nil && wait {
				bar.Describe("replaying")
				if err = drained(c.Context()); errors.Is(err, apiclient.ErrElsewhere) {
					fmt.Fprintln(s.Err, "accepted; the processes that replay are others, which nobody waited for")
					err = nil
				}
			}
			bar.Finish()
			return err
		})
		if errors.Is(err, context.Canceled) && c.Context().Err() != nil {
			err = errors.New("interrupted: what was accepted stays, and the same command continues behind it")
		}
		err = errors.Join(printImport(s, output, sum), err)
		if own && err == nil && output == "table" {
			fmt.Fprintf(s.Out, "stored in %s, which no server has open\n", config.Absolute(cfg.DataDir))
		}
		return err
	}
	return c
}

func printImport(s cli.Streams, output string, sum importer.Summary) error {
	if output == "json" {
		return cli.PrintAs(s.Out, output, sum)
	}
	for _, f := range sum.Files {
		switch {
		case f.Complete:
			fmt.Fprintf(s.Out, "%s: already in\n", safe.Text(f.Name))
		case f.Resumed > 0:
			fmt.Fprintf(s.Out, "%s: %d events (continued behind line %d)\n", safe.Text(f.Name), f.Events, f.Resumed)
		default:
			fmt.Fprintf(s.Out, "%s: %d events\n", safe.Text(f.Name), f.Events)
		}
		if f.Truncated {
			fmt.Fprintf(s.Err, "%s: the last line is cut off\n", safe.Text(f.Name))
		}
		for _, b := range f.BadLines {
			fmt.Fprintf(s.Err, "%s:%d: not an event: %s\n", safe.Text(f.Name), b.Line, safe.Text(b.Reason))
		}
		if more := f.Malformed - int64(len(f.BadLines)); more > 0 {
			fmt.Fprintf(s.Err, "%s: %d more malformed lines\n", safe.Text(f.Name), more)
		}
		if f.Malformed > 0 && f.Events == 0 && f.Resumed == 0 {
			fmt.Fprintf(s.Err, "%s: no line is an audit event: %s\n", safe.Text(f.Name), server.WantLog)
		}
	}
	if len(sum.State) > 0 {
		var taken server.TakenState
		if err := json.Unmarshal(sum.State, &taken); err != nil {
			return fmt.Errorf("read the answer to the state: %w", err)
		}
		fmt.Fprintf(s.Out, "state: %s\n", safe.Text(taken.String()))
	} else if sum.StateKnown {
		fmt.Fprintln(s.Out, "state: already in")
	}
	return nil
}

// shown shows an import's progress on a bar.
func shown(bar *cli.Progress) func(importer.Progress) {
	return func(x importer.Progress) {
		bar.Describe(string(x.Pass) + " " + safe.Text(filepath.Base(x.File)))
		if x.Size > 0 {
			bar.Total(x.Size)
		}
		bar.Set(x.Read)
	}
}
