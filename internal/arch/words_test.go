package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// columns is how wide a line of Go may be; a tab counts for four. What cannot be broken counts for none: the tag of
// a field, and text in a raw string of several lines.
const columns = 140

// TestWords holds the Go of every folder, tests and nested modules too, to lines that fit and to comments and messages in English.
func TestWords(t *testing.T) {
	for _, file := range sources(t, true) {
		source, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if generated.Match(source) {
			continue
		}
		tokens := token.NewFileSet()
		syntax := parseInto(t, tokens, file, parser.ParseComments)
		lines := strings.Split(string(source), "\n")
		unbreakable(syntax, tokens, lines)
		for i, line := range lines {
			if n := width(line); n > columns {
				t.Errorf("%s:%d: the line has %d columns, more than %d", file, i+1, n, columns)
			}
		}
		if file == "internal/arch/words_test.go" {
			continue
		}
		check := func(at token.Pos, text string) {
			if words := germanic(text); words != "" {
				t.Errorf("%s:%d: %q is not English", file, tokens.Position(at).Line, words)
			}
		}
		for _, c := range syntax.Comments {
			check(c.Pos(), c.Text())
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := literal(e)
			check(e.Pos(), text)
			return !ok
		})
	}
}

// TestWordsOfDocuments holds documents, pages, manifests and scripts to English.
func TestWordsOfDocuments(t *testing.T) {
	root, files := filepath.Join("..", ".."), 0
	read := []string{".md", ".html", ".js", ".ts", ".tsx", ".css", ".yaml", ".sh", ".txtar"}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (notOurs(name) || name == "data" || name == "bin" || len(name) > 2 && name[0] == '.') {
			return filepath.SkipDir
		}
		if !slices.Contains(read, filepath.Ext(file)) || d.IsDir() {
			return nil
		}
		files++
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, paragraph := range blankLine.Split(string(text), -1) {
			if words := germanic(lineStart.ReplaceAllString(paragraph, " ")); words != "" {
				t.Errorf("%s: %q is not English", file, words)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("only %d files were found", files)
	}
}

// notOurs reports whether a folder holds what others wrote, or what is built of what is read here.
func notOurs(name string) bool { return name == "node_modules" || name == "dist" }

// TestGermanic: what is and what is not English.
func TestGermanic(t *testing.T) {
	for text, want := range map[string]string{
		"since: %q is no RFC 3339 time":                  "%q is no RFC",
		"3 lines are no events":                          "lines are no events",
		"a comment that\nis no\nmessage":                 "that is no message",
		"names a role of a kind there is not":            "there is not",
		"refused by a mode that there is not: %s":        "there is not",
		"a line is at most 3 MiB; this one is no fit":    "one is no fit",
		"594 requests count for nothing":                 "count for nothing",
		"the begin of the range":                         "the begin",
		"kept for ever":                                  "for ever",
		"whoever may write, writes as often as he likes": "he likes",
		"there is no event in it":                        "",
		"where (there is no key)":                        "",
		"There are no rules here":                        "",
		"the webhook is no longer asked":                 "",
		"the answer is no or unknown":                    "",
		"there is not enough room":                       "",
		"invalid time %q: want RFC 3339":                 "",
		"SELECT count() WHERE x IS NOT NULL":             "",
		"the user is not a node":                         "",
	} {
		if got := germanic(text); got != want {
			t.Errorf("germanic(%q) = %q, want %q", text, got, want)
		}
	}
}

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	blankLine = regexp.MustCompile(`\n\s*\n`)
	lineStart = regexp.MustCompile(`\n\s*(?://|#|\*)?`)

	isNo       = regexp.MustCompile(`(\S+) (?:is|are|was|were) no (\w+)`)
	thereIsNot = regexp.MustCompile(`(?i)there (?:is|are)(?: not|n.t)(?:$|[^a-z ])`)
	foreign    = regexp.MustCompile(`(?i)\bfor ever\b|\bthe begin\b|\bcounts? for nothing\b|\bhe likes\b`)
)

// germanic returns the words of a text that a native speaker would not write, "" for none: "VALUE is no THING", "of a kind there is not"
// and some that are German. "There is no THING" and "is no longer" are English.
func germanic(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, m := range isNo.FindAllStringSubmatch(text, -1) {
		subject := strings.FieldsFunc(strings.ToLower(m[1]), func(r rune) bool { return !unicode.IsLetter(r) })
		if !(len(subject) > 0 && subject[len(subject)-1] == "there") && !slices.Contains(english, m[2]) {
			return m[0]
		}
	}
	return strings.TrimRight(thereIsNot.FindString(text), ".,:;!?)\"'`") + foreign.FindString(text)
}

// english may follow "is no".
var english = []string{"longer", "more", "less", "later", "older", "larger", "smaller", "better", "or"}

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
