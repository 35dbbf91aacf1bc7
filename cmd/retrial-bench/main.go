// Command retrial-bench measures the product on this machine: the whole pipeline, also beside others, the store, and the linear scan
// of Kubernetes' RBAC authorizer next to the index. `retrial bench` runs it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	os.Exit(cli.Run(ctx, newRoot(s), os.Args[1:], s))
}

func newRoot(s cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:     "retrial-bench",
		Short:   "Measure on this machine",
		Args:    cli.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
		Version: version.Version,
	}
	root.AddCommand(newBenchPipeline(s), newBenchPeers(s), newBenchRBAC(s), newBenchStorage(s), newBenchClusters(s), newBenchDays(s),
		newBenchUses(s),
		newBenchCapacity(s))
	return root
}
