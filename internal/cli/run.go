// Package cli is what the commands of Retrial's programs share: standard streams, exit codes and
// errors that carry one, errors of a command line, forms of output and how they look on a terminal, progress, and manual pages.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrial-io/retrial/internal/moment"
	"github.com/retrial-io/retrial/internal/params"
	"github.com/retrial-io/retrial/internal/phrase"
)

// Run executes a program's command line, prints its error, and returns the exit code.
func Run(ctx context.Context, root *cobra.Command, args []string, s Streams) int {
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
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

// newHelp returns the command that shows the help of others. Anything else is a mistake, as on the command line itself.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) (names []string, _ cobra.ShellCompDirective) {
			of, rest, err := c.Root().Find(args)
			if err == nil && len(rest) == 0 {
				for _, sub := range of.Commands() {
					if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), begun) {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			if err != nil {
				return UsageError(c, "%w", err)
			}
			if len(rest) > 0 && of.HasSubCommands() {
				return NoArgs(of, rest)
			}
			of.InitDefaultHelpFlag()
			of.InitDefaultVersionFlag()
			return of.Help()
		},
	}
}

// flagError is the error of flags that cannot be read. One of a time says itself what is wrong with which value.
func flagError(c *cobra.Command, err error) error {
	var at *pflag.InvalidValueError
	if wrong := (moment.InvalidError{}); errors.As(err, &at) && errors.As(err, &wrong) {
		return UsageError(c, "--%s: %w", at.GetFlag().Name, wrong)
	}
	return UsageError(c, "%w", err)
}

// Exit codes, documented in docs/cli.md.
const (
	ExitOK      = 0
	ExitError   = 1 // the command failed
	ExitUsage   = 2 // the command line or the configuration is wrong
	ExitFinding = 3 // the command succeeded and found what --fail-on names
	ExitNoMatch = 4 // nothing is stored under that name
)

// Exit is an error that carries the process's exit code.
type Exit struct {
	Code int
	err  error
}

func (e Exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.err.Error()
}

func (e Exit) Unwrap() error { return e.err }

// Streams are the process's standard streams; commands use no others, so that tests see all
// they print.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	look     *look // nil: as if there were no terminal
}

// ExitWith returns err with the exit code a process ends with.
func ExitWith(code int, err error) error { return Exit{Code: code, err: err} }

// ExitQuietly ends the process with an exit code and prints nothing: another program, which was
// run in its place, has said why.
func ExitQuietly(code int) error { return Exit{Code: code} }

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
	return UsageError(c, "unknown command %q for %q%s", args[0], c.CommandPath(), phrase.DidYouMean(", ", c.SuggestionsFor(args[0])))
}

// NoArgsBut refuses arguments, and says where what they may mean belongs.
func NoArgsBut(hint string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return UsageError(c, "unexpected argument %q: %s", args[0], hint)
		}
		return nil
	}
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

// BindRequest adds a flag for each of the named parameters of a request, to which it is given a
// pointer: name, help and default come from the tags of its fields.
func BindRequest(c *cobra.Command, request any, names ...string) {
	for _, name := range names {
		f := params.FlagOf(request, name)
		if f.Field.Type == reflect.TypeFor[time.Time]() {
			bindTime(c, f)
			continue
		}
		flag := c.Flags().VarPF(f, f.Field.Flag, f.Field.Short, f.Field.FlagHelp)
		if f.Field.Type.Kind() == reflect.Bool {
			flag.NoOptDefVal = "true"
		}
		if len(f.Field.Enum) > 0 {
			// The only error is that there is no such flag.
			_ = c.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(f.Field.Enum, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// Before has a function run with the arguments before a command starts, behind those there are.
func Before(c *cobra.Command, check func(args []string) error) {
	earlier := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(c, args); err != nil {
				return err
			}
		}
		return check(args)
	}
}
