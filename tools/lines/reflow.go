package main

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"
	"unicode/utf8"
)

// width is how many columns a line may take, a tab being four.
const width = 140

// reflowed counts the lines of a Go source, empty ones included, when paragraphs of comments and code that gofmt leaves wrapped
// wherever it was wrapped are filled to width.
func reflowed(source []byte) (int, error) {
	joins, err := joinedLines(source)
	if err != nil {
		return 0, err
	}
	lines := strings.Split(strings.TrimSuffix(string(source), "\n"), "\n")
	n := 0
	for i := 0; i < len(lines); i++ {
		first := strings.TrimRight(lines[i], " \t")
		indent := columns(first) - columns(strings.TrimLeft(first, "\t"))
		if strings.HasPrefix(strings.TrimLeft(first, "\t"), "//") {
			text := 0 // of the paragraph at hand
			for ; i < len(lines) && strings.HasPrefix(strings.TrimLeft(lines[i], "\t"), "//"); i++ {
				body := strings.TrimPrefix(strings.TrimLeft(lines[i], "\t")[len("//"):], " ")
				if body != "" && !strings.ContainsRune(" \t*#|-", rune(body[0])) {
					text += min(text, 1) + columns(body)
					continue
				}
				n += filled(text, width-indent-len("// ")) + 1
				text = 0
			}
			n += filled(text, width-indent-len("// "))
			i--
			continue
		}
		text := columns(first)
		for i+1 < len(lines) && joins[i+1] {
			i++
			text += 1 + columns(strings.TrimSpace(lines[i]))
		}
		n += 1 + filled(max(text-width, 0), width-indent-columns("\t"))
	}
	return n, nil
}

// filled returns how many lines text takes.
func filled(text, width int) int { return (text + width - 1) / width }

func columns(s string) int { return utf8.RuneCountInString(s) + 3*strings.Count(s, "\t") }

// joinedLines returns the lines, by number, whose end is only a place where an expression or a list was wrapped.
func joinedLines(source []byte) (map[int]bool, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", source, 0)
	if err != nil {
		return nil, err
	}
	// What gofmt, or the grammar, lets nothing follow on the same line.
	opens := map[int]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			opens[files.Position(n.Lparen).Offset] = n.Lparen.IsValid()
		case *ast.BlockStmt:
			opens[files.Position(n.Lbrace).Offset] = true
		case *ast.StructType:
			opens[files.Position(n.Fields.Opening).Offset] = true
		case *ast.InterfaceType:
			opens[files.Position(n.Methods.Opening).Offset] = true
		case *ast.CaseClause:
			opens[files.Position(n.Colon).Offset] = true
		case *ast.CommClause:
			opens[files.Position(n.Colon).Offset] = true
		}
		return true
	})
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	joins := map[int]bool{}
	end := 0 // line on which the token before ended, 0 where nothing may be joined to it
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return joins, nil
		}
		hard := tok == token.COMMENT || tok == token.SEMICOLON && text == "\n"
		if line := file.Line(pos); !hard && end != 0 && line == end+1 {
			joins[end] = true
		}
		end = 0
		if !hard && !opens[file.Offset(pos)] {
			end = file.Line(pos) + strings.Count(text, "\n")
		}
	}
}
