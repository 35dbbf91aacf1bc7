package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
)

// benchProgram is the program that measures; make build puts it beside this one.
const benchProgram = "retrial-bench"

// newBench hands the command line to the program that measures, which is not part of the product.
func newBench(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "bench",
		Short: "Measure on this machine",
		Long: `Run retrial-bench, which lies beside this program or in PATH, with the same arguments:

  retrial bench pipeline   post a log to a server of its own, and measure until everything is stored
  retrial bench storage    fill a store of its own, and measure what events take on disk
  retrial bench clusters   ask about one cluster of a store that has one, and of a store that has many
  retrial bench days       ask about usage of 30, 100 and 400 days, and of rollups that have no days
  retrial bench rbac       measure what the linear scan of Kubernetes' RBAC authorizer costs you
  retrial bench peers      measure the pipeline beside VictoriaLogs and an OpenTelemetry Collector
  retrial bench capacity   work out machines for your own rates, and what breaks first

retrial bench pipeline --help, for instance, prints the flags.`,
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return c.Help()
			}
			path, err := findBench()
			if err != nil {
				return err
			}
			return runBench(c.Context(), s, path, args)
		},
	}
}

func findBench() (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), benchProgram)
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath(benchProgram)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside this program nor in PATH: make build builds both", benchProgram)
	}
	return path, nil
}

// runBench runs the program until it ends. When ctx ends, it interrupts the program and leaves it time to stop what it has started.
func runBench(ctx context.Context, s cli.Streams, path string, args []string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	err := cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() > 0 {
		return cli.ExitQuietly(ended.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
