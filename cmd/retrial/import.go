package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/server"
)

// FILE… ─▶ ingest/importer ─▶ data/retrial.sock of a running serve ─▶ the same receiver as webhooks
//
//	└▶ none running: the engines are opened here, and closed when all is stored
func newImport(s cli.Streams) *cobra.Command {
	var im server.Import
	var output string
	c := &cobra.Command{
		Use:   "import --cluster NAME [--state FILE] [FILE...]",
		Short: "Take in recorded audit logs, and the state of their cluster",
		Long: `Post audit log files (JSON lines; plain, gzip or zstd; - for standard input) to the running
server, through the same receiver as webhooks. The files' policy writes go first, then all
events, so that everything is judged by the policy of its own moment. An import that was
interrupted continues where it stopped; what is stored already is not stored again. It ends when
everything is judged and stored (--wait=false: accepted), and shows how far it is: as a bar on a
terminal, elsewhere as a line every few seconds.

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
	c.Flags().StringVar(&im.Cluster, "cluster", "", "name of the cluster the files are from (required)")
	c.Flags().StringVar(&im.APIServer, "apiserver", "", "name of the apiserver the files are from")
	c.Flags().StringVar(&im.State, "state", "", "objects as kubectl get -o json prints them")
	c.Flags().BoolVar(&im.Wait, "wait", true, "return when everything is judged and stored; --wait=false: when it is accepted")
	(&asker{flags: flags}).completeFlags(c)
	var follow followFlags
	follow.bind(c)
	cli.AddOutput(c, &output)
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := flags.Load()
		if err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		if im.Cluster == "" && !(follow.on && follow.webhookConfig != "") {
			return cli.ExitWith(cli.ExitUsage, errors.New("--cluster is missing: name the cluster the files are from"))
		}
		if err := server.CheckName(im.Cluster); im.Cluster != "" && err != nil {
			return cli.ExitWith(cli.ExitUsage, fmt.Errorf("--cluster %q: %w", im.Cluster, err))
		}
		if follow.on {
			if im.State != "" {
				return cli.ExitWith(cli.ExitUsage, errors.New("--follow takes no --state: import the state once, then follow"))
			}
			return follow.run(c.Context(), s, output, cfg, im.Cluster, im.APIServer, args)
		}
		if follow != (followFlags{}) {
			return cli.ExitWith(cli.ExitUsage,
				errors.New("--webhook-config, --server, its credentials, --position and --delay are for --follow"))
		}
		if len(args) == 0 && im.State == "" {
			return cli.ExitWith(cli.ExitUsage, errors.New("name an audit log, - for standard input, or a --state file"))
		}
		im.Config, im.Logs, im.Err = cfg, args, s.Err
		sum, err := im.Run(c.Context())
		if coded := (cli.Exit{}); errors.As(err, &coded) {
			return err // nothing has begun
		}
		if sum.Elsewhere {
			fmt.Fprintln(s.Err, "accepted; other processes replay it, and this command does not wait for them")
		}
		if errors.Is(err, context.Canceled) && c.Context().Err() != nil {
			err = errors.New("interrupted: what was accepted stays, and the same command continues after it")
		}
		err = errors.Join(showImport(s, output, &sum), err)
		if sum.Own && err == nil && output == "table" {
			fmt.Fprintf(s.Out, "stored in %s, which no server has open\n", config.Absolute(cfg.DataDir))
		}
		return err
	}
	return c
}

func showImport(s cli.Streams, output string, sum *server.Imported) error {
	state, broken := sum.StateText()
	err := cli.Show(s, output, cli.Kinded{Kind: "Import", Answer: sum.Summary}, func(p *cli.Page) {
		for _, f := range sum.Files {
			p.Named(f.Name)
			switch {
			case f.Complete:
				p.Printf("%s: already in\n", f.Name)
			case f.Resumed > 0:
				p.Printf("%s: %d events (continued behind line %d)\n", f.Name, f.Events, f.Resumed)
			default:
				p.Printf("%s: %d events\n", f.Name, f.Events)
			}
			if f.Truncated {
				p.Hint("%s: the last line is cut off", f.Name)
			}
			for _, b := range f.BadLines {
				p.Hint("%s:%d: not an event: %s", f.Name, b.Line, b.Reason)
			}
			if more := f.Malformed - int64(len(f.BadLines)); more > 0 {
				p.Hint("%s: %d more malformed lines", f.Name, more)
			}
			if f.Malformed > 0 && f.Events == 0 && f.Resumed == 0 {
				p.Hint("%s: no line is an audit event: %s", f.Name, server.WantLog)
			}
		}
		switch {
		case state != "":
			p.Printf("state: %s\n", state)
		case broken == nil && sum.StateKnown:
			p.Printf("state: already in\n")
		}
	})
	return errors.Join(err, broken)
}
