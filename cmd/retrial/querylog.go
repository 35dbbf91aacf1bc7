package main

import (
	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// api/v1/query-log of the server, or of the store opened here ─▶ table | json | yaml
func newQueryLogCommand(s cli.Streams) *cobra.Command {
	var from asker
	var q query.QueryLogRequest
	c := &cobra.Command{
		Use:   "query-log",
		Short: "Show who asked Retrial what",
		Long: `List who looked at the recorded events, through the page, the API, commands and SQL clients,
newest first. Repeats of a question within a minute are one line. The name of a caller is
the user of the process on this machine; beside a token it is what the caller says.`,
		Args: cli.NoArgs,
	}
	from.bindServer(c, s)
	cli.BindRequest(c, &q, "limit")
	cli.AddOutput(c, &from.output)
	c.RunE = func(c *cobra.Command, _ []string) error {
		answer, err := answerOf(c.Context(), &from, "", q)
		if err != nil {
			return err
		}
		return from.show(cli.Kinded{Kind: "AskedList", Answer: answer.Asked}, func(p *cli.Page) {
			p.Table("MINUTE\tTIMES\tCALLER\tDOOR\tQUESTION\tSTATUS\tDETAIL")
			for _, a := range answer.Asked {
				p.Named(a.Question)
				if a.Address != "" {
					a.Caller += " at " + a.Address
				}
				p.Printf("%s\t%d\t%s\t%s\t%s\t%s\t%s\n", a.Minute.Format("2006-01-02 15:04"), a.Count, a.Caller, a.Door, a.Question,
					a.Status, phrase.Shorten(a.Detail))
			}
		})
	}
	return c
}
