package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is a mistake on the command line of c.
func usageError(c *cobra.Command, format string, args ...any) error {
	return exitCode{exitUsage, fmt.Errorf(format+"; see %s --help", append(args, c.CommandPath())...)}
}

// noArgs refuses arguments. What follows a command that only has others is a mistyped one.
func noArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !c.HasSubCommands():
		return usageError(c, "unexpected argument %q", args[0])
	}
	c.SuggestionsMinimumDistance = 2
	hint := ""
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError(c, "unknown command %q for %q%s", args[0], c.CommandPath(), hint)
}

// oneArg takes one argument, which is not empty; name is what the usage line calls it.
func oneArg(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usageError(c, "%s is missing", name)
		case args[0] == "":
			return usageError(c, "%s is empty", name)
		case len(args) > 1:
			return usageError(c, "unexpected argument %q: one %s at a time", args[1], name)
		}
		return nil
	}
}
