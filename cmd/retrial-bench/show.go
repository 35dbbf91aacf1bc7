package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
)

// measured is what a benchmark found.
type measured interface{ print(out io.Writer) error }

// measure runs a benchmark and prints what it found, as a table or as JSON.
func measure[R measured](c *cobra.Command, s cli.Streams, output string, run func(context.Context) (R, error)) error {
	r, err := run(c.Context())
	if err != nil {
		return err
	}
	return show(s, output, r)
}

// show prints what was measured, as a table or as JSON.
func show(s cli.Streams, output string, m measured) error {
	if output == "json" {
		return cli.PrintAs(s.Out, output, m)
	}
	return m.print(s.Out)
}
