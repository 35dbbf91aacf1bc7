package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/retrial-io/retrial/internal/safe"
)

// look says how output looks on a terminal.
type look struct {
	colour string // auto, always, never
}

// colourForms are the values of --color.
var colourForms = []string{"auto", "always", "never"} //nolint:gochecknoglobals // constant table

// WithLook adds to a program the flag that says whether output has colours, and returns streams that follow it. Without it output is as if
// there were no terminal.
func (s Streams) WithLook(root *cobra.Command) Streams {
	s.look = &look{colour: "auto"}
	root.PersistentFlags().Var((*colourFlag)(&s.look.colour), "color",
		"colours: auto (on a terminal, unless NO_COLOR is set), always, never")
	// The only error is that there is no such flag.
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colourForms, cobra.ShellCompDirectiveNoFileComp))
	return s
}

type colourFlag string

func (f *colourFlag) String() string { return string(*f) }

func (f *colourFlag) Type() string { return "when" }

func (f *colourFlag) Set(text string) error {
	if !slices.Contains(colourForms, text) {
		return fmt.Errorf("want %s", strings.Join(colourForms, ", "))
	}
	*f = colourFlag(text)
	return nil
}

// coloured reports whether what is written to w has colours.
func (s Streams) coloured(w io.Writer) bool {
	switch {
	case s.look == nil || s.look.colour == "never":
		return false
	case s.look.colour == "always":
		return true
	}
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// style returns how a page on standard output looks, wide if its lines may be longer than those of the terminal.
func (s Streams) style(wide bool) style {
	out := style{colour: s.coloured(s.Out)}
	if f, ok := s.Out.(*os.File); ok && s.look != nil && !wide {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			out.width = width
		}
	}
	return out
}

// write writes to standard output, through a pager on a terminal.
func (s Streams) write(text []byte) error {
	if s.look != nil && isTerminal(s.Out) && isTerminal(s.In) {
		if shown, err := s.page(text); shown || err != nil {
			return err
		}
	}
	_, err := s.Out.Write(text)
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// page shows a text in the pager; shown is false if there is none. Who leaves it early has seen enough.
func (s Streams) page(text []byte) (shown bool, err error) {
	command, own := os.LookupEnv("RETRIAL_PAGER")
	if !own {
		command = cmp.Or(os.Getenv("PAGER"), "less -FRX")
	}
	if program, _, _ := strings.Cut(strings.TrimSpace(command), " "); program == "" || program == "cat" {
		return false, nil
	} else if _, err := exec.LookPath(program); err != nil && !own {
		return false, nil
	}
	c := exec.Command("sh", "-c", command)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(text), s.Out, s.Err
	c.Env = os.Environ()
	if os.Getenv("LESS") == "" {
		c.Env = append(c.Env, "LESS=FRX")
	}
	if err := c.Run(); err != nil && !errors.Is(err, syscall.EPIPE) {
		return true, fmt.Errorf("pager %s: %w; RETRIAL_PAGER names another, cat is none", SafeLines(command), err)
	}
	return true, nil
}

// Painted returns a word that says how something ended, of at least so many columns, in its colour where standard output has colours.
func (s Streams) Painted(word string, columns int) string {
	word = safe.Text(word)
	space := strings.Repeat(" ", max(0, columns-utf8.RuneCountInString(word)))
	if s.coloured(s.Out) {
		word = paint(word, false)
	}
	return word + space
}
