package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// api/v1/drift of the server, the store or a log (see asker) ─▶ groups by likely cause, as table | json | yaml
func newDrift(s cli.Streams) *cobra.Command {
	var from asker
	var q query.DriftRequest
	var fail bool
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
	}
	from.bind(c, s, &q, "cluster", "from", "to")
	c.Flags().BoolVar(&fail, "fail", false, "exit with 3 when anything drifts, or when nothing was judged")
	c.RunE = func(c *cobra.Command, _ []string) error {
		answer, err := answerOne(c.Context(), &from, &q.Cluster, &q)
		if err != nil {
			return err
		}
		err = from.show(answer, func(p *cli.Page) { printDrift(p, &answer) })
		switch {
		case err != nil || !fail:
			return err
		case answer.Judged == 0:
			return cli.ExitWith(cli.ExitFinding, errors.New("nothing was judged"))
		case len(answer.Groups) > 0 && answer.Groups[0].Outcome == "drift":
			return cli.ExitWith(cli.ExitFinding, errors.New("there is drift"))
		}
		return nil
	}
	return c
}

func printDrift(p *cli.Page, answer *query.DriftAnswer) {
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
		p.Printf(text, answer.Cluster)
	}
	for i := range answer.Groups {
		g := &answer.Groups[i]
		if i > 0 {
			p.Printf("\n")
		}
		p.Printf("%s  %s: %s\n", strings.ToUpper(g.Outcome), g.Class, g.Text)
		line := func(name, text string) { p.Printf("  %s\t%s\n", name, text) }
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
			p.Named(x.AuditID)
			line("example", x.AuditID+"  "+x.Subject+"  "+x.Verb+" "+x.URI)
			if x.Cause != "" {
				line("", x.Cause)
			}
		}
	}
	if answer.Truncated {
		p.Printf("\nThere is more than one answer can hold: narrow it with --from and --to.\n")
	}
}
