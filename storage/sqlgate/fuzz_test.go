package sqlgate

import (
	"strings"
	"testing"
)

// FuzzText: whatever text comes, reading it ends without a panic, and what is admitted has
// no name of a refused function and no forbidden word outside of quotes.
func FuzzText(f *testing.F) {
	for _, s := range []string{"SELECT 1", "SELECT `a b`, 'it\\'s', 1.5 FROM retrial.t WHERE f(x) > 0", "WITH a AS (SELECT 1) SELECT " +
		"file('x')", "'", "`", "\\", "SELECT 1 INTO OUTFILE 'x'", "-- x"} {
		f.Add(s)
	}
	c := check{database: "retrial", functions: parseFunctions(functionsText), refused: map[string]bool{"file": true}}
	f.Fuzz(func(t *testing.T, s string) {
		tokens, err := lex(s)
		if err != nil {
			return
		}
		if _, err := c.words(tokens); err != nil {
			return
		}
		for i, tok := range tokens {
			part := i > 0 && tokens[i-1].text == "." || i+1 < len(tokens) && tokens[i+1].text == "."
			if (tok.kind == tokenName || tok.kind == tokenQuoted) && strings.EqualFold(tok.text, "file") && !part {
				t.Errorf("admitted: %q", s)
			}
			if tok.kind == tokenName && forbidden[tok.text] && !part {
				t.Errorf("admitted: %q", s)
			}
		}
	})
}

// FuzzTree: whatever the lines, reading them ends without a panic, and an admitted tree has
// nothing but known kinds.
func FuzzTree(f *testing.F) {
	f.Add("SelectWithUnionQuery (children 1)\n ExpressionList (children 1)\n  SelectQuery (children 1)\n" +
		"   ExpressionList (children 1)\n    Function file (children 1)")
	f.Add("SelectWithUnionQuery (children 2)\n ExpressionList\n Identifier JSON")
	f.Add("DescribeQuery (children 1)\n TableExpression (children 1)\n  TableIdentifier system.users (alias x)")
	f.Add("A\n  B")
	c := check{database: "retrial", functions: parseFunctions(functionsText), refused: map[string]bool{"file": true}}
	f.Fuzz(func(t *testing.T, s string) {
		root, err := parseTree(strings.Split(s, "\n"))
		if err != nil {
			return
		}
		if _, _, err := c.tree(root); err != nil {
			return
		}
		for _, line := range strings.Split(s, "\n") {
			kind, _, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
			if !kinds[kind] {
				t.Errorf("admitted %q", line)
			}
		}
	})
}
