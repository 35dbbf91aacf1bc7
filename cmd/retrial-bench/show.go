package main

import (
	"io"

	"github.com/retrial-io/retrial/internal/cli"
)

// show prints what was measured, as a table or as JSON.
func show(s cli.Streams, output string, measured interface{ print(out io.Writer) error }) error {
	if output == "json" {
		return cli.PrintAs(s.Out, output, measured)
	}
	return measured.print(s.Out)
}
