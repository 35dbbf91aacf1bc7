package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/server"
)

// partitions ─▶ Kafka: layout, ends, commits, owners ─▶ table | json | yaml
//
//	└ set ─▶ partitions added ─▶ barriers ─▶ layout in force ─▶ the same
func newPartitions(s cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "partitions",
		Short: "Show how clusters are spread over the partitions of audit.events, and who has them",
		Long: `Ask a real Kafka, the one of --kafka-brokers, for the partitions of audit.events: how many there
are, over how many the events of a cluster are spread, which process has which, how far it is,
and whether it has reached the layout in force. docs/kafka.md says how to choose them.`,
		Args: cli.NoArgs,
	}
	bindPartitions(c, s, server.ReadPartitions)
	c.AddCommand(newPartitionsSet(s))
	return c
}

func newPartitionsSet(s cli.Streams) *cobra.Command {
	var partitions, perCluster int
	c := &cobra.Command{
		Use:   "set",
		Short: "Add partitions to audit.events, or spread clusters over more or fewer",
		Long: `Add partitions to audit.events and spread the events of each cluster over so many of them from
now on, while everything runs. What is stored stays where it is. Repeat it after an error: what
has been done is not done twice. All processes must be of a release that knows this command.`,
		Example: `  retrial partitions set --partitions 24 --kafka-brokers kafka-0:9092
  retrial partitions set --per-cluster 4 --kafka-brokers kafka-0:9092`,
		Args: cli.NoArgs,
	}
	c.Flags().IntVar(&partitions, "partitions", 0, "partitions of audit.events, no fewer than there are; 0: as many as there are")
	c.Flags().IntVar(&perCluster, "per-cluster", 0, "partitions over which the events of one cluster are spread, at most; 0: as before")
	bindPartitions(c, s, func(ctx context.Context, cfg config.Config, log *zap.Logger) (server.Partitions, error) {
		if partitions < 0 || perCluster < 0 || partitions == 0 && perCluster == 0 {
			return server.Partitions{}, cli.ExitWith(cli.ExitUsage, errors.New("name --partitions, --per-cluster or both"))
		}
		return server.SetPartitions(ctx, cfg, log, partitions, perCluster)
	})
	return c
}

// bindPartitions completes a command that prints partitions.
func bindPartitions(c *cobra.Command, s cli.Streams,
	of func(context.Context, config.Config, *zap.Logger) (server.Partitions, error)) {
	var output string
	flags := config.Bind(c.Flags())
	cli.AddOutput(c, &output)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := flags.Load()
		if err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		log, err := server.NewLog(s.Err, cfg.Log)
		if err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		found, err := of(c.Context(), cfg, log)
		if err != nil {
			return err
		}
		return cli.Show(s, output, found, func(p *cli.Page) { printPartitions(p, found) })
	}
}

func printPartitions(p *cli.Page, found server.Partitions) {
	l := found.Layout
	spread := fmt.Sprintf("at most %d of %d", l.PerCluster, l.Partitions)
	if l.PerCluster == l.Partitions {
		spread = fmt.Sprintf("all %d", l.Partitions)
	}
	p.Printf("The events of a cluster are in %s partitions (layout %d).\n\n", spread, l.Epoch)
	p.Table("PARTITION\tLAYOUT\tEND\tLAG\tPROCESS")
	for _, one := range found.Partitions {
		p.Named(strconv.Itoa(int(one.Partition)))
		p.Printf("%d\t%d\t%d\t%d\t%s\n", one.Partition, one.Layout.Epoch, one.End, one.Lag, cmp.Or(one.Owner, "-"))
	}
	if !found.Reached() {
		p.Hint("hint: not every partition has reached layout %d; where one has, events wait for the others", l.Epoch)
	}
}
