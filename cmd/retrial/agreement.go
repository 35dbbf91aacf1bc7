package main

import (
	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// api/v1/agreement of the server, the store or a log (see asker) ─▶ one line | json | yaml
func newAgreement(s cli.Streams) *cobra.Command {
	var from asker
	var q query.AgreementRequest
	c := &cobra.Command{
		Use:   "agreement [--events FILE... --state FILE|DIR]",
		Short: "Say how much of what was judged agrees with the record",
		Args:  cli.NoArgsBut("logs are named with --events, states with --state"),
	}
	from.bind(c, s, &q, "cluster", "from", "to")
	c.RunE = func(c *cobra.Command, _ []string) error {
		answer, err := answerOne(c.Context(), &from, &q.Cluster, &q)
		if err != nil {
			return err
		}
		return from.show(answer, func(p *cli.Page) {
			p.Printf("%.4f %% of %s agree with the record; %d drift\n",
				100*answer.Agreement, phrase.Number(int(answer.Judged), "judged request"), answer.Drifting)
		})
	}
	return c
}
