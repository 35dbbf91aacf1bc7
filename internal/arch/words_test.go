package arch

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is how wide a line of Go may be; a tab counts for four. What cannot be broken counts for none: the tag of
// a field, and text in a raw string of several lines.
const columns = 140

// notYet has an empty file for every folder whose lines and messages are still to be read, a slash of its name
// written as a comma: whoever has read a folder deletes its file. A folder that needs it no more fails the test.
const notYet = "testdata/notyet"

// TestWords holds every folder, those of nested modules too, to lines that fit and messages in English.
func TestWords(t *testing.T) {
	faults := map[string][]string{}
	for _, file := range sources(t, true) {
		source, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if generated.Match(source) {
			continue
		}
		folder := filepath.ToSlash(filepath.Dir(file))
		add := func(line int, text string) {
			faults[folder] = append(faults[folder], file+":"+strconv.Itoa(line)+": "+text)
		}
		tokens := token.NewFileSet()
		syntax := parseInto(t, tokens, file, 0)
		lines := strings.Split(string(source), "\n")
		unbreakable(syntax, tokens, lines)
		for i, line := range lines {
			if n := width(line); n > columns {
				add(i+1, "the line has "+strconv.Itoa(n)+" columns, more than "+strconv.Itoa(columns))
			}
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := literal(e)
			if words := germanic(text); words != "" {
				add(tokens.Position(e.Pos()).Line, strconv.Quote(words)+" is not English")
			}
			return !ok
		})
	}
	waiting, err := filepath.Glob(notYet + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range waiting {
		folder := strings.ReplaceAll(filepath.Base(file), ",", "/")
		if faults[folder] == nil {
			t.Errorf("%s: every line fits and every message is English: delete internal/arch/%s", folder, filepath.ToSlash(file))
		}
		delete(faults, folder)
	}
	for _, found := range faults {
		for _, fault := range found {
			t.Error(fault)
		}
	}
}

// TestGermanic: what is and what is not a message in English.
func TestGermanic(t *testing.T) {
	for text, want := range map[string]string{
		"since: %q is no RFC 3339 time":               "%q is no RFC",
		"3 lines are no events":                       "lines are no events",
		"names a role of a kind there is not":         "there is not",
		"refused by a mode that there is not: %s":     "there is not",
		"there is no event in it":                     "",
		"There are no rules here":                     "",
		"the webhook is no longer asked":              "",
		"there is not enough room":                    "",
		"invalid time %q: want RFC 3339":              "",
		"SELECT count() WHERE x IS NOT NULL":          "",
		"the user is not a node":                      "",
		"a line is at most 3 MiB; this one is no fit": "one is no fit",
	} {
		if got := germanic(text); got != want {
			t.Errorf("germanic(%q) = %q, want %q", text, got, want)
		}
	}
}

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

	isNo       = regexp.MustCompile(`(\S+) (?:is|are|was|were) no (\w+)`)
	thereIsNot = regexp.MustCompile(`(?i)there (?:is|are) not(?:$|[^a-z ])`)
)

// germanic returns the words of a message that a native speaker would not write, "" for none: "VALUE is no
// THING" and "of a kind there is not". "There is no THING" and "is no longer" are English.
func germanic(message string) string {
	for _, m := range isNo.FindAllStringSubmatch(message, -1) {
		if !strings.EqualFold(m[1], "there") && !slices.Contains([]string{"longer", "more", "less"}, m[2]) {
			return m[0]
		}
	}
	return strings.TrimRight(thereIsNot.FindString(message), ".,:;!?)")
}

// literal returns the text of a string literal, or of several joined by +; what else is joined to them counts
// as one word. ok is false for every other expression.
func literal(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, lok := literal(e.X)
		right, rok := literal(e.Y)
		if !lok && !rok {
			return "", false
		}
		if !lok {
			left = "…"
		}
		if !rok {
			right = "…"
		}
		return left + right, true
	}
	return "", false
}

// unbreakable cuts what cannot be broken out of a file's lines: the tags of fields, and raw strings of several lines.
func unbreakable(file *ast.File, tokens *token.FileSet, lines []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				at := tokens.Position(n.Tag.Pos())
				lines[at.Line-1] = lines[at.Line-1][:at.Column-1]
				return false
			}
		case *ast.BasicLit:
			from, to := tokens.Position(n.Pos()), tokens.Position(n.End())
			if from.Line == to.Line {
				return true
			}
			lines[to.Line-1] = lines[to.Line-1][min(to.Column-1, len(lines[to.Line-1])):]
			for i := from.Line; i < to.Line-1; i++ {
				lines[i] = ""
			}
			lines[from.Line-1] = lines[from.Line-1][:min(from.Column-1, len(lines[from.Line-1]))]
		}
		return true
	})
}

// width returns how many columns a line takes.
func width(line string) int {
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}
