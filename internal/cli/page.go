package cli

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/internal/safe"
)

// Page is what a command prints for people: lines, some of them in aligned columns, and hints about them, on standard error. Texts may be
// hostile, and are made safe for a terminal. The zero Page is empty. What it prints as a table it prints as CSV as well, and the names of
// what the table lists alone.
type Page struct {
	form        string
	text, hints bytes.Buffer
	tables      []start // in the order of the text
	names       []string
}

// start is where lines begin that are aligned with each other.
type start struct {
	at   int
	head bool // the first of them, behind empty ones, names the columns
}

// Printf adds lines. A tab ends a column, which is as wide as in the lines around that have it.
func (p *Page) Printf(format string, args ...any) { fmt.Fprintf(&p.text, format, safely(args)...) }

// Table begins a table, apart from the one above, with its first line if there is one.
func (p *Page) Table(head string) {
	p.tables = append(p.tables, start{p.text.Len(), head != ""})
	if head != "" {
		p.text.WriteString(head + "\n")
	}
}

// Wide reports whether a table is to have all columns it can have, and whole cells.
func (p *Page) Wide() bool { return p.form == "wide" || p.Flat() }

// Flat reports whether each line of a table is to be whole without the others: what it has in common with the line above is not left out.
func (p *Page) Flat() bool { return p.form == "csv" }

// Named adds the names of what the page lists.
func (p *Page) Named(names ...string) {
	for _, name := range names {
		if name = safe.Text(name); !slices.Contains(p.names, name) {
			p.names = append(p.names, name)
		}
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
func (p *Page) Texts() (lines, hints string) { return p.render(style{}), p.hints.String() }

// blocks returns the lines that are aligned with each other, as their cells, and the ends of each line that has a line break.
func (p *Page) blocks() (out []block) {
	text, from, head := p.text.String(), 0, false
	for _, next := range append(p.tables, start{at: len(text)}) {
		if next.at > from {
			out = append(out, blockOf(text[from:next.at], head))
		}
		from, head = next.at, next.head
	}
	return out
}

// render lays the page out.
func (p *Page) render(s style) string {
	var out strings.Builder
	for _, b := range p.blocks() {
		b.render(&out, s)
	}
	return out.String()
}
