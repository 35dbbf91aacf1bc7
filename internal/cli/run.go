package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Run executes a program's command line, prints its error, and returns the exit code.
func Run(ctx context.Context, root *cobra.Command, args []string, s Streams) int {
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return UsageError(c, "%w", err) })
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var coded Exit
	if errors.As(err, &coded) && coded.err == nil {
		return coded.Code // another program has said why
	}
	if err != nil {
		fmt.Fprintln(s.Err, root.Name()+":", SafeLines(err.Error()))
	}
	switch {
	case err == nil:
		return ExitOK
	case coded.err != nil:
		return coded.Code
	}
	return ExitError
}
