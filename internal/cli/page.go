package cli

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/retrial-io/retrial/internal/safe"
)

// Page is what a command prints for people: lines, some of them in aligned columns, and hints about them, on standard error. Texts may be
// hostile, and are made safe for a terminal. The zero Page is empty.
type Page struct {
	text, hints bytes.Buffer
	columns     *tabwriter.Writer
}

// Printf adds lines. A tab ends a column, which is as wide as in the lines around that have it.
func (p *Page) Printf(format string, args ...any) {
	if p.columns == nil {
		p.Table("")
	}
	fmt.Fprintf(p.columns, format, safely(args)...)
}

// Table begins a table, apart from the one above, with its first line if there is one.
func (p *Page) Table(head string) {
	if p.columns == nil {
		p.columns = tabwriter.NewWriter(&p.text, 0, 4, 2, ' ', 0)
	}
	_ = p.columns.Flush() // to memory
	if head != "" {
		fmt.Fprintln(p.columns, head)
	}
}

// Field adds a line of a name and its value, nothing for an empty value.
func (p *Page) Field(name, format string, args ...any) {
	if text := strings.TrimSpace(fmt.Sprintf(format, args...)); text != "" {
		p.Printf("%s\t%s\n", name, text)
	}
}

// Hint adds a line about the page.
func (p *Page) Hint(format string, args ...any) { fmt.Fprintf(&p.hints, format+"\n", safely(args)...) }

// safely makes texts safe for a terminal.
func safely(args []any) []any {
	for i, a := range args {
		if v := reflect.ValueOf(a); v.Kind() == reflect.String {
			args[i] = safe.Text(v.String())
		}
	}
	return args
}

// Texts returns the lines and the hints.
func (p *Page) Texts() (lines, hints string) {
	p.Table("")
	return p.text.String(), p.hints.String()
}

// Show prints an answer in the form asked for, as a table by the function.
func Show(s Streams, form string, answer any, table func(*Page)) error {
	if form != "table" {
		return PrintAs(s.Out, form, answer)
	}
	var p Page
	table(&p)
	p.Table("")
	_, err := p.text.WriteTo(s.Out)
	_, hinting := p.hints.WriteTo(s.Err)
	return errors.Join(err, hinting)
}
