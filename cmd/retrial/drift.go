package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
)

// driftCommand is what a run of the command was asked.
type driftCommand struct {
	cli.Streams
	from   asker
	output string
	query.DriftRequest
	failOn bool
}

// api/v1/drift of the server, the store or a log (see asker) ─▶ groups by likely cause, as table | json | yaml
func newDrift(s cli.Streams) *cobra.Command {
	d := &driftCommand{Streams: s}
	c := &cobra.Command{
		Use:   "drift [--events FILE... --state FILE|DIR]",
		Short: "Group what the replica does not agree with, by likely cause, and say what would settle it",
		Long: `List the requests whose verdict is drift, ambiguous or indeterminate: what they have in common,
how many there are, the earliest of them, what probably lies behind it (stale state, an
authorizer or a configuration Retrial was not told of, content that was not recorded, a record
that was changed), and what to give Retrial to settle it.

The running server is asked; with none running the command reads the store itself. With
--events it replays an audit log as evaluate does instead, and stores nothing.`,
		Example: `  retrial drift
  retrial drift --from 2026-11-20T00:00:00Z -o json
  retrial drift --state state.json --events audit.log --apiserver-config /etc/kubernetes`,
		Args: cli.NoArgsBut("logs are named with --events, states with --state"),
		RunE: func(c *cobra.Command, _ []string) error { return d.run(c) },
	}
	d.from.bind(c)
	d.from.bindLog(c, s)
	cli.BindRequest(c, &d.DriftRequest, "cluster", "from", "to")
	c.Flags().BoolVar(&d.failOn, "fail", false, "exit with 3 when anything drifts, or when nothing was judged")
	cli.AddOutput(c, &d.output, "table", "json", "yaml")
	return c
}

func (d *driftCommand) run(c *cobra.Command) error {
	answer, err := answerOne(c.Context(), &d.from, &d.Cluster, &d.DriftRequest)
	if err != nil {
		return err
	}
	err = cli.Show(d.Out, d.output, answer, func() error { return printDrift(d.Out, &answer) })
	if err != nil {
		return err
	}
	if d.failOn && answer.Judged == 0 {
		return cli.ExitWith(cli.ExitFinding, errors.New("nothing was judged"))
	}
	if d.failOn && len(answer.Groups) > 0 && answer.Groups[0].Outcome == "drift" {
		return cli.ExitWith(cli.ExitFinding, errors.New("there is drift"))
	}
	return nil
}

// printDrift prints groups for people, each as a few lines.
func printDrift(out io.Writer, answer *query.DriftAnswer) error {
	if len(answer.Groups) == 0 {
		text := "Nothing drifts in cluster %s: all " + phrase.Number(int(answer.Judged), "judged request") +
			" of that time match the record.\n"
		switch {
		case answer.Judged == 1:
			text = "Nothing drifts in cluster %s: the one judged request of that time matches the record.\n"
		case answer.Requests == 0:
			text = "Nothing can be said of cluster %s: it has no requests of that time.\n"
		case answer.Judged == 0:
			text = "Nothing can be said of cluster %s: none of the " + phrase.Number(int(answer.Requests), "request") +
				" of that time could be compared (docs/verdicts.md, not judged).\n"
		}
		_, err := fmt.Fprintf(out, text, safe.Text(answer.Cluster))
		return err
	}
	for i := range answer.Groups {
		g := &answer.Groups[i]
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s  %s: %s\n", strings.ToUpper(g.Outcome), safe.Text(g.Class), safe.Text(g.Text))
		w := cli.Table(out, "")
		line := func(name, text string) { fmt.Fprintf(w, "  %s\t%s\n", name, safe.Text(text)) }
		if g.About != "" {
			line("about", g.About)
		}
		if g.Server != "" {
			line("apiserver", g.Server)
		}
		line("requests", fmt.Sprintf("%d by %s, %s to %s", g.Count, phrase.Number(g.Users, "user"), g.First.UTC().Format(time.RFC3339),
			g.Last.UTC().Format(time.RFC3339)))
		for _, l := range g.Likely {
			line("likely", l.Kind+": "+l.Why)
			line("", "give "+l.Give)
		}
		for _, x := range g.Examples {
			line("example", x.AuditID+"  "+x.Subject+"  "+x.Verb+" "+x.URI)
			if x.Cause != "" {
				line("", x.Cause)
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if answer.Truncated {
		fmt.Fprintln(out, "\nThere is more than one answer can hold: narrow it with --from and --to.")
	}
	return nil
}
