package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// --from ─▶ api/v1/first-uses ─▶ a line an access, a line a binding | json | yaml
func newFirstUses(s cli.Streams) *cobra.Command {
	var from asker
	var q query.FirstUsesRequest
	c := &cobra.Command{
		Use:   "first-uses --since TIME [--subject SUBJECT]",
		Short: "List what was done, and which bindings were used, for the first time",
		Long: `List what subjects asked for in a range and never before, and the bindings that let something
pass for the first time, as far as requests are stored. The answer says how far that is: with
nothing stored from before the range nothing is listed, as everything would be new.`,
		Example: `  retrial first-uses --since yesterday
  retrial first-uses --since 24h --subject alice -o json`,
		Args: func(c *cobra.Command, args []string) error {
			if err := cli.NoArgs(c, args); err != nil {
				return err
			}
			if q.From.IsZero() {
				return cli.UsageError(c, "--since is missing")
			}
			return nil
		},
	}
	from.bind(c, s, &q, "cluster", "from", "to", "subject", "includeSystem", "limit")
	asked := onePage(&from, &q.Cluster, &q, printFirst)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if q.Subject, err = cli.User("--subject", q.Subject); err != nil {
			return err
		}
		return asked(c, args)
	}
	return c
}

func printFirst(p *cli.Page, a *query.FirstUsesAnswer) {
	p.Printf("Cluster %s: %s\n", a.Cluster, a.Text)
	if len(a.Uses)+len(a.Grants) == 0 && a.Baseline != "none" {
		p.Printf("\nNothing was done for the first time.\n")
	}
	printFirstUses(p, a.Uses)
	if len(a.Grants) > 0 {
		p.Table("\nFIRST\tBINDING\tROLE\tSUBJECT\tREQUESTS")
	}
	for i := range a.Grants {
		g := &a.Grants[i]
		p.Named(g.Binding)
		p.Printf("%s\t%s\t%s\t%s\t%d\n", g.First.UTC().Format(time.RFC3339Nano), g.Binding, g.Role, g.Subject, g.Requests)
	}
	if a.MoreUses || a.MoreGrants {
		p.Hint("hint: there are more; ask for a shorter time, for one --subject, or for more with --limit")
	}
	if a.Unnamed > 0 {
		p.Hint("warning: %s of those days are not counted by what they asked for: some may be the first",
			phrase.Number(int(a.Unnamed), "request"))
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
