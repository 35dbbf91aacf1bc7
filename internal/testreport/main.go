// Command testreport reads `go test -json` and prints what a person wants to see of it: one
// line a package, everything a failed test wrote, and at the end every test that was
// skipped, with its reason. Nothing is skipped in silence. It ends with 1 when a test failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is one line of go test -json (see `go doc test2json`).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// key names a test; Test is empty for what the package itself says.
type key struct{ Package, Test string }

func main() { os.Exit(report(os.Stdin, os.Stdout)) }

func report(in io.Reader, out io.Writer) int {
	said := map[key]*strings.Builder{}
	var passed, failed int
	var skipped []string
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // what the go command says outside of tests
			continue
		}
		k := key{e.Package, e.Test}
		switch e.Action {
		case "output":
			if said[k] == nil {
				said[k] = &strings.Builder{}
			}
			said[k].WriteString(e.Output)
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "build-fail":
			failed++
		case "pass", "fail", "skip":
			text := ""
			if said[k] != nil {
				text = said[k].String()
			}
			delete(said, k)
			if e.Test == "" {
				packageLine(out, e, text)
				if e.Action == "fail" {
					failed++ // counted once more than its tests: a crash has no test
				}
				continue
			}
			switch e.Action {
			case "pass":
				passed++
			case "fail":
				failed++
				fmt.Fprint(out, text)
			case "skip":
				skipped = append(skipped, fmt.Sprintf("skipped %s %s: %s", shorten(e.Package), e.Test, reason(text)))
			}
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(out, "testreport:", err)
		failed++
	}
	slices.Sort(skipped)
	for _, s := range skipped {
		fmt.Fprintln(out, s)
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, len(skipped))
	if failed > 0 {
		return 1
	}
	return 0
}

func packageLine(out io.Writer, e event, text string) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(out, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
	case "fail":
		fmt.Fprintf(out, "%sFAIL  %s  %.1fs\n", text, e.Package, e.Elapsed)
	}
}

// shorten leaves the module's name out.
func shorten(pkg string) string {
	return strings.TrimPrefix(pkg, "github.com/retrial-io/retrial/")
}

// reason is what t.Skip was given: the last line that is not the framework's own.
func reason(text string) string {
	found := "no reason given"
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			if _, after, ok := strings.Cut(line, ".go:"); ok {
				_, line, _ = strings.Cut(after, ": ")
			}
			found = line
		}
	}
	return found
}
