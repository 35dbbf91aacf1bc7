package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// agreementCommand is what a run of the command was asked.
type agreementCommand struct {
	cli.Streams
	from   asker
	output string
	query.AgreementRequest
}

func newAgreement(s cli.Streams) *cobra.Command {
	a := &agreementCommand{Streams: s}
	c := &cobra.Command{
		Use:   "agreement [--events FILE... --state FILE|DIR]",
		Short: "Say how much of what was judged agrees with the record",
		Args:  cli.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.run(c) },
	}
	a.from.bind(c)
	a.from.bindLog(c, s)
	cli.BindRequest(c, &a.AgreementRequest, "cluster", "from", "to")
	cli.AddOutput(c, &a.output, "table", "json", "yaml")
	return c
}

func (a *agreementCommand) run(c *cobra.Command) error {
	answer, err := answerOne(c.Context(), &a.from, &a.Cluster, &a.AgreementRequest)
	if err != nil {
		return err
	}
	if a.output != "table" {
		return cli.PrintAs(a.Out, a.output, answer)
	}
	_, err = fmt.Fprintf(a.Out, "%.4f %% of %s agree with the record; %d drift\n",
		100*answer.Agreement, phrase.Number(int(answer.Judged), "judged request"), answer.Drifting)
	return err
}
