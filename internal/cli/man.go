package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NewMan returns the command that writes the manual of a program, a page a command, for who packs it.
func NewMan(version string) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages into a folder, which is made",
		Hidden: true,
		Args:   OneArg("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("write the manual: %w", err)
			}
			return manual(c.Root(), args[0], version)
		},
	}
}

// manual writes the pages of a command and of those below it.
func manual(c *cobra.Command, dir, version string) error {
	if c.Hidden {
		return nil
	}
	name := manName(c)
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(ManPage(c, version)), 0o644); err != nil {
		return fmt.Errorf("write the manual: %w", err)
	}
	var errs []error
	for _, sub := range c.Commands() {
		errs = append(errs, manual(sub, dir, version))
	}
	return errors.Join(errs...)
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// ManPage returns the manual page of a command, in the language of man(7). Texts keep their line breaks: they are laid out already.
func ManPage(c *cobra.Command, version string) string {
	c.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"Retrial\"\n.nh\n.ad l\n", strings.ToUpper(manName(c)), c.Root().Name()+" "+version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(c)), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.nf\n%s\n.fi\n", roff(c.UseLine()))
	section := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", title, roff(text))
		}
	}
	section("DESCRIPTION", cmp.Or(c.Long, c.Short))
	for _, list := range []struct {
		title string
		flags *pflag.FlagSet
	}{{"OPTIONS", c.NonInheritedFlags()}, {"GLOBAL OPTIONS", c.InheritedFlags()}} {
		if list.flags.HasAvailableFlags() {
			fmt.Fprintf(&b, ".SH %s\n", list.title)
			list.flags.VisitAll(func(f *pflag.Flag) { manFlag(&b, f) })
		}
	}
	section("EXAMPLES", c.Example)
	section("EXIT STATUS", `0  done
1  failed
2  the command line or the configuration is wrong
3  done, and found what --fail-on and its like name
4  nothing is stored under that name`)
	var also []string
	if c.HasParent() {
		also = append(also, manName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			also = append(also, manName(sub))
		}
	}
	for i, name := range also {
		also[i] = ".BR " + roff(name) + " (1)"
	}
	if len(also) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(also, "\n"))
	}
	return b.String()
}

// manFlag writes what a flag is.
func manFlag(b *strings.Builder, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	value, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff(name))
	if value != "" {
		fmt.Fprintf(b, " \\fI%s\\fR", roff(value))
	}
	if d := f.DefValue; d != "" && d != "false" && d != "[]" && d != "0" && d != "0s" && !strings.Contains(usage, "(default") {
		usage += " (default " + d + ")"
	}
	fmt.Fprintf(b, "\n%s\n", roff(usage))
}

// roff escapes a text for man(7): backslashes and hyphens anywhere, control characters at the beginning of a line.
func roff(text string) string {
	var b strings.Builder
	lines := bufio.NewScanner(strings.NewReader(text))
	for first := true; lines.Scan(); first = false {
		if !first {
			b.WriteByte('\n')
		}
		line := strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(lines.Text())
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		b.WriteString(line)
	}
	return b.String()
}
