package cli

import (
	"encoding/csv"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// block is lines that are aligned with each other.
type block struct {
	lines [][]string // cells; all but the last of a line end a column
	head  int        // the line that names the columns, -1 for none
	open  bool       // the last line has no line break
}

func blockOf(text string, head bool) block {
	b := block{head: -1, open: !strings.HasSuffix(text, "\n")}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if head && b.head < 0 && line != "" {
			b.head = len(b.lines)
		}
		b.lines = append(b.lines, strings.Split(line, "\t"))
	}
	return b
}

// style is how a page looks.
type style struct {
	width  int // of the terminal, 0 for none
	colour bool
}

const (
	gap       = 2 // spaces between columns
	leastCell = 8 // runes that are left of a cell where the terminal is narrow
)

// render writes the lines, each column as wide as its widest cell in the lines around that have it. On a terminal the cells of a table
// with a head are cut so that its lines fit.
func (b *block) render(out *strings.Builder, s style) {
	if b.head >= 0 && s.width > 0 {
		b.fit(s.width)
	}
	widths := make([][]int, len(b.lines))
	b.align(widths, 0, len(b.lines), 0)
	for i, cells := range b.lines {
		for j, cell := range cells {
			if s.colour && b.head >= 0 {
				out.WriteString(paint(cell, i == b.head))
			} else {
				out.WriteString(cell)
			}
			if j < len(widths[i]) {
				out.WriteString(strings.Repeat(" ", widths[i][j]-utf8.RuneCountInString(cell)))
			}
		}
		if i < len(b.lines)-1 || !b.open {
			out.WriteByte('\n')
		}
	}
}

// align enters the widths of a column, and of those behind it, in lines from one to before another.
func (b *block) align(widths [][]int, from, to, column int) {
	for i := from; i < to; i++ {
		if len(b.lines[i])-1 <= column {
			continue
		}
		end, width := i, 0
		for ; end < to && len(b.lines[end])-1 > column; end++ {
			width = max(width, utf8.RuneCountInString(b.lines[end][column]))
		}
		for k := i; k < end; k++ {
			widths[k] = append(widths[k], width+gap)
		}
		b.align(widths, i, end, column+1)
		i = end
	}
}

// fit cuts the widest cells until lines with columns fit the terminal, if that can be.
func (b *block) fit(terminal int) {
	var widest []int
	for _, cells := range b.lines {
		for j, cell := range cells {
			if len(cells) == 1 {
				continue // no column
			}
			if j == len(widest) {
				widest = append(widest, 0)
			}
			widest[j] = max(widest[j], utf8.RuneCountInString(cell))
		}
	}
	total := func(most int) (sum int) {
		for _, w := range widest {
			sum += min(w, most) + gap
		}
		return sum - gap
	}
	most := terminal
	for most > leastCell && total(most) > terminal {
		most--
	}
	for i, cells := range b.lines {
		for j, cell := range cells {
			if r := []rune(cell); len(cells) > 1 && len(r) > most {
				b.lines[i][j] = string(r[:most-1]) + "…"
			}
		}
	}
}

// colours are of cells that say how something ended, and of signs, as codes of terminals.
var colours = map[string]string{ //nolint:gochecknoglobals // constant table
	"critical": "1;31", "high": "31", "medium": "33", "error": "31", "warning": "33",
	"forbid": "31", "no": "31", "drift": "31", "failed": "31", "lost": "31", "-": "31",
	"allow": "32", "yes": "32", "match": "32", "ok": "32", "accepted": "32", "+": "32",
	"ambiguous": "33", "indeterminate": "33", "unknown": "33", "none": "33",
}

// paint colours a cell of a table.
func paint(cell string, head bool) string {
	code := colours[cell]
	if head && strings.TrimSpace(cell) != "" {
		code = "1"
	}
	if code == "" {
		return cell
	}
	return "\x1b[" + code + "m" + cell + "\x1b[0m"
}

// paintHint colours the word before the colon of a hint.
func paintHint(line string) string {
	for word, code := range map[string]string{"hint:": "36", "warning:": "33"} {
		if rest, ok := strings.CutPrefix(line, word); ok {
			return "\x1b[" + code + "m" + word + "\x1b[0m" + rest
		}
	}
	return line
}

// csv writes the page's first table that has a head, and those with the same; of a page without, its names and values. more says that the
// page has other tables.
func (p *Page) csv(out io.Writer) (more bool, err error) {
	w := csv.NewWriter(out)
	var head []string
	var fields [][]string
	for _, b := range p.blocks() {
		if b.head < 0 {
			fields = append(fields, b.lines...)
			continue
		}
		columns := b.lines[b.head]
		switch {
		case head == nil:
			head = columns
			err = w.Write(lower(columns))
		case !slices.Equal(head, columns):
			more = true
			continue
		}
		for _, cells := range b.lines[b.head+1:] {
			if err == nil && len(cells) == len(columns) && strings.Join(cells, "") != "" {
				err = w.Write(calculable(cells))
			}
		}
	}
	if head == nil {
		err = w.Write([]string{"name", "value"})
		for _, cells := range fields {
			if err == nil && len(cells) == 2 {
				err = w.Write(calculable([]string{strings.TrimSpace(cells[0]), cells[1]}))
			}
		}
	}
	w.Flush()
	if err == nil {
		err = w.Error()
	}
	return more, err
}

func lower(columns []string) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = strings.ToLower(strings.TrimSpace(c))
	}
	return out
}

// calculable writes cells so that a spreadsheet takes none for a formula.
func calculable(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		if out[i] = strings.TrimSpace(c); len(out[i]) > 1 && strings.ContainsRune("=+-@", rune(out[i][0])) {
			out[i] = "'" + out[i]
		}
	}
	return out
}
