// Package cli is what the commands of Retrial's programs share: standard streams, exit codes and
// errors that carry one, errors of a command line, output formats, and progress bars.
package cli

import (
	"fmt"
	"io"
)

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

// Unwrap returns the error the code goes with.
func (e Exit) Unwrap() error { return e.err }

// Streams are the process's standard streams; commands use no others, so that tests see all
// they print.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// ExitWith returns err with the exit code a process ends with.
func ExitWith(code int, err error) error { return Exit{Code: code, err: err} }

// ExitQuietly ends the process with an exit code and prints nothing: another program, which was
// run in its place, has said why.
func ExitQuietly(code int) error { return Exit{Code: code} }
