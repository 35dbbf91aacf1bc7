package cli

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// TestPagesAreAlignedAsTabwriterDoes draws random lines, and aligns them as the standard library does.
func TestPagesAreAlignedAsTabwriterDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var p Page
		var want bytes.Buffer
		w := tabwriter.NewWriter(&want, 0, 4, gap, ' ', 0)
		for range random.IntN(12) {
			if random.IntN(6) == 0 {
				_ = w.Flush()
				p.Table("")
			}
			var cells []string
			for range random.IntN(5) {
				cells = append(cells, strings.Repeat("é", random.IntN(4)))
			}
			line := strings.Join(cells, "\t") + "\n"
			p.Printf("%s", "")
			p.text.WriteString(line)
			fmt.Fprint(w, line)
		}
		_ = w.Flush()
		if got, _ := p.Texts(); got != want.String() {
			t.Fatalf("got\n%q\nwant\n%q", got, want.String())
		}
	}
}

// list prints a table as a command does.
func list(p *Page) {
	p.Printf("Two subjects\n\n")
	p.Table("SUBJECT\tMAY\tWHY")
	p.Named("User/alice", "User/bob", "User/alice")
	p.Printf("%s\t%s\t%s\n", "alice\x1b", "yes", "=a binding of ClusterRole/a-role-with-a-very-long-name, as everybody")
	p.Printf("%s\t%s\t%s\n", "bob", "no", "-")
	p.Printf("\nThat is all, and this line is longer than the terminal, which breaks it by itself.\n")
	p.Hint("hint: %s", "so")
}

func TestTablesFitTheTerminal(t *testing.T) {
	var p Page
	list(&p)
	for _, line := range strings.Split(p.render(style{width: 40}), "\n") {
		if n := utf8.RuneCountInString(line); n > 40 && !strings.HasPrefix(line, "That is all") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	text := p.render(style{width: 40, colour: true})
	for _, want := range []string{"\x1b[1mSUBJECT\x1b[0m", "\x1b[32myes\x1b[0m", "\x1b[31mno\x1b[0m", `alice\x1b`, "…"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if whole := p.render(style{}); strings.ContainsAny(whole, "…\x1b") {
		t.Errorf("cut or coloured without a terminal: %q", whole)
	}
}

func TestCSVAndNames(t *testing.T) {
	show := func(form string) string {
		var out, errs bytes.Buffer
		if err := Show(Streams{Out: &out, Err: &errs}, form, nil, list); err != nil {
			t.Fatal(err)
		}
		if form != "name" && errs.String() != "hint: so\n" {
			t.Errorf("%s: standard error has %q", form, errs.String())
		}
		return out.String()
	}
	rows, err := csv.NewReader(strings.NewReader(show("csv"))).ReadAll()
	if err != nil || len(rows) != 3 || !slices.Equal(rows[0], []string{"subject", "may", "why"}) ||
		!slices.Equal(rows[1], []string{`alice\x1b`, "yes", "'=a binding of ClusterRole/a-role-with-a-very-long-name, as everybody"}) ||
		!slices.Equal(rows[2], []string{"bob", "no", "-"}) {
		t.Errorf("CSV %q, error %v", rows, err)
	}
	if got := show("name"); got != "User/alice\nUser/bob\n" {
		t.Errorf("names %q", got)
	}
}

// TestProgressSaysALineFromTimeToTime: nothing of what is quick, a line every few seconds of what is not.
func TestProgressSaysALineFromTimeToTime(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 20, 11, 36, 0, 0, time.UTC)
	p := NewProgress(&out)
	p.now, p.next = func() time.Time { return now }, now.Add(sayEvery)
	for second := range 12 {
		p.At("events audit\x1b.log", int64(second)*1e6, 20e6, true)
		now = now.Add(time.Second)
	}
	p.At("judged", 3000, 12345, false)
	now = now.Add(sayEvery)
	p.At("judged", 6000, 12345, false)
	p.Close()
	want := "11:36:05 events audit\\x1b.log: 5.0 MB of 20.0 MB\n11:36:10 events audit\\x1b.log: 10.0 MB of 20.0 MB\n" +
		"11:36:17 judged: 6,000 events of 12,345 events\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
