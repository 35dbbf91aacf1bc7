package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// UsageError returns the error for a mistake on the command line of c.
func UsageError(c *cobra.Command, format string, args ...any) error {
	return ExitWith(ExitUsage, fmt.Errorf(format+"; see %s --help", append(args, c.CommandPath())...))
}

// NoArgs refuses arguments. An argument of a command that only has subcommands is a mistyped
// subcommand.
func NoArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !c.HasSubCommands():
		return UsageError(c, "unexpected argument %q", args[0])
	}
	c.SuggestionsMinimumDistance = 2
	hint := ""
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return UsageError(c, "unknown command %q for %q%s", args[0], c.CommandPath(), hint)
}

// OneArg requires exactly one argument, which is not empty; name is its name in the usage line.
func OneArg(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return UsageError(c, "%s is missing", name)
		case args[0] == "":
			return UsageError(c, "%s is empty", name)
		case len(args) > 1:
			return UsageError(c, "unexpected argument %q: one %s at a time", args[1], name)
		}
		return nil
	}
}
