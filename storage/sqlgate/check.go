package sqlgate

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Codes of ClickHouse's exceptions that the gate uses itself.
const (
	codeBadArguments   = 36
	codeSyntax         = 62
	codeUnknownFormat  = 73
	codeUnknownSetting = 115
	codeTimeout        = 159
	codeReadonly       = 164
	codeTooMany        = 202
	codeCancelled      = 394
	codeAccessDenied   = 497
	codeAuthentication = 516
	codeUnexpected     = 1001
)

// check decides which statements are allowed. It is immutable.
type check struct {
	database  string
	databases map[string]bool // lower-case names of the engine's other databases
	functions functionList
	refused   map[string]bool // lower-case names of the engine's functions that are not offered
}

func denied(format string, args ...any) error {
	return newError(codeAccessDenied, "ACCESS_DENIED", format+" (this endpoint only reads the store)", args...)
}

// kinds of nodes a query may have. Those that the rules below do not mention are harmless by themselves: they order, group and name.
var kinds = map[string]bool{ //nolint:gochecknoglobals // constant table
	"SelectWithUnionQuery": true, "SelectQuery": true, "SelectIntersectExceptQuery": true, "DescribeQuery": true,
	"ExpressionList": true, "TablesInSelectQuery": true, "TablesInSelectQueryElement": true, "TableExpression": true,
	"TableJoin": true, "ArrayJoin": true, "TableIdentifier": true, "SampleRatio": true, "Subquery": true,
	"Function": true, "Identifier": true, "Literal": true, "Asterisk": true, "QualifiedAsterisk": true,
	"ColumnsTransformerList": true, "ColumnsExceptTransformer": true, "ColumnsReplaceTransformer": true,
	"ColumnsReplaceTransformer::Replacement": true, "ColumnsRegexpMatcher": true, "ColumnsListMatcher": true,
	"OrderByElement": true, "WithElement": true, "WindowDefinition": true, "WindowListElement": true, "InterpolateElement": true,
}

// keywords after which a bracket does not begin a call.
var keywords = words(`ALL AND ANTI ANY ARRAY AS ASC BETWEEN BY COLUMNS CROSS CUBE DESC DESCRIBE DISTINCT EXCEPT FILL
	FIRST FROM GLOBAL GROUP GROUPING HAVING ILIKE IN INNER INTERPOLATE INTERSECT IS JOIN LEFT LIKE LIMIT MATERIALIZED NOT
	OFFSET ON OR ORDER OVER PREWHERE QUALIFY RECURSIVE REPLACE RIGHT ROLLUP SELECT SEMI SETS STEP TABLE TO TOTALS UNION USING
	WHERE WINDOW WITH`) //nolint:gochecknoglobals // constant table

// forbidden words have effects that the tree does not show.
var forbidden = words("INTO OUTFILE APPLY SETTINGS STREAM EXPLAIN") //nolint:gochecknoglobals // constant table

func words(s string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		out[w] = true
	}
	return out
}

// show reports whether a canonical text is one of the listings that Grafana's data source
// requests. The tree of a listing does not show its conditions, so the whole texts are compared.
func (c check) show(canonical string) bool {
	return slices.Contains([]string{
		"SHOW DATABASES", "SHOW TABLES", "SHOW TABLES FROM " + c.database, "SHOW TABLES FROM system",
	}, canonical)
}

// words checks a canonical text, as a second check for what the tree might not print. It returns how many SELECTs the text has.
func (c check) words(tokens []token) (selects int, err error) {
	if len(tokens) == 0 {
		return 0, denied("an empty query")
	}
	first := tokens[0]
	starts := first.kind == tokenName && (first.text == "SELECT" || first.text == "WITH" || first.text == "DESCRIBE") ||
		first.kind == tokenMark && first.text == "("
	if !starts {
		return 0, newError(codeReadonly, "READONLY", "only SELECT, DESCRIBE and listing databases and tables are answered here")
	}
	is := func(i int, mark string) bool {
		return i >= 0 && i < len(tokens) && tokens[i].kind == tokenMark && tokens[i].text == mark
	}
	for i, t := range tokens {
		switch {
		case t.kind != tokenName && t.kind != tokenQuoted:
			if t.kind == tokenMark && t.text == ";" {
				return 0, denied("more than one statement")
			}
			continue
		case t.kind == tokenName && t.text == "SELECT":
			selects++
		case t.kind == tokenName && forbidden[t.text]:
			return 0, denied("%s is not offered", t.text)
		}
		if is(i-1, ".") || is(i+1, ".") {
			continue // part of a longer name, which is not a function's
		}
		if is(i+1, "(") {
			keyword := t.kind == tokenName && keywords[t.text]
			if !keyword && !c.functions.allows(t.text) && !tableFunctions[strings.ToLower(t.text)] && !c.names(tokens, i) {
				return 0, c.noFunction(t.text)
			}
			continue
		}
		// A function can be passed by its bare name: arrayMap(file, …).
		if c.refused[strings.ToLower(t.text)] && !(t.kind == tokenName && keywords[t.text]) {
			return 0, denied("%q is the name of a function that is not offered; choose another alias", t.text)
		}
	}
	return selects, nil
}

// names reports whether the bracket after token i lists the columns of a table that the token names: WITH t (a, b) AS.
func (c check) names(tokens []token, i int) bool {
	if c.refused[strings.ToLower(tokens[i].text)] {
		return false
	}
	depth := 0
	for j := i + 1; j < len(tokens); j++ {
		if tokens[j].kind != tokenMark {
			continue
		}
		switch tokens[j].text {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return j+1 < len(tokens) && tokens[j+1].kind == tokenName && tokens[j+1].text == "AS" &&
					j+2 < len(tokens) && tokens[j+2].text == "("
			}
		}
	}
	return false
}

func (c check) noFunction(name string) error {
	if c.refused[strings.ToLower(name)] {
		return denied("the function %q is not offered", name)
	}
	return newError(46, "UNKNOWN_FUNCTION", "the function %q does not exist or is not offered", name)
}

// tree checks a statement as the engine understands it. It returns how many SELECTs it has and the format it names, if any.
func (c check) tree(root *node) (selects int, format string, err error) {
	if root.kind != "SelectWithUnionQuery" && root.kind != "DescribeQuery" {
		return 0, "", newError(codeReadonly, "READONLY", "only SELECT, DESCRIBE and listing databases and tables are answered here")
	}
	for i, kid := range root.kids {
		switch {
		case i == 0 && (kid.kind == "ExpressionList" || kid.kind == "TableExpression"):
		case i > 0 && kid.kind == "Identifier" && format == "":
			format = kid.text
		case kid.kind == "Set":
			return 0, "", noSettings()
		default: // a file name
			return 0, "", denied("INTO OUTFILE is not offered")
		}
	}
	if err := c.node(root, true, &selects); err != nil {
		return 0, "", err
	}
	return selects, format, nil
}

func noSettings() error {
	return denied("SETTINGS in a query is not offered; send settings with the request")
}

// inFunctions take a table as their second argument, by name.
var inFunctions = words("in notIn globalIn globalNotIn nullIn notNullIn globalNullIn globalNotNullIn inIgnoreSet notInIgnoreSet " +
	//nolint:gochecknoglobals // constant table
	"globalInIgnoreSet globalNotInIgnoreSet nullInIgnoreSet notNullInIgnoreSet globalNullInIgnoreSet globalNotNullInIgnoreSet")

// castFunctions take a type as their second argument, by name. It must stand there: types are checked in the text.
//
//nolint:gochecknoglobals // constant table
var castFunctions = words("cast _cast accuratecast accuratecastordefault accuratecastornull reinterpret")

func (c check) node(n *node, root bool, selects *int) error {
	if !kinds[n.kind] {
		if n.kind == "Set" {
			return noSettings()
		}
		return denied("%s is not offered", n.kind)
	}
	switch n.kind {
	case "SelectWithUnionQuery":
		if !root && (len(n.kids) != 1 || n.kids[0].kind != "ExpressionList") {
			return denied("a clause of the whole query inside it is not offered")
		}
	case "SelectQuery":
		*selects++
	case "TableIdentifier":
		return c.table(n.text)
	case "Identifier":
		return c.identifier(n.text)
	case "TableExpression":
		for _, kid := range n.kids {
			if kid.kind != "Function" {
				continue
			}
			if !tableFunctions[strings.ToLower(kid.text)] {
				return denied("the table function %q is not offered", kid.text)
			}
			for _, below := range kid.kids {
				if err := c.node(below, false, selects); err != nil {
					return err
				}
			}
		}
	case "Function":
		if !c.functions.allows(n.text) {
			return c.noFunction(n.text)
		}
		if err := c.arguments(n); err != nil {
			return err
		}
	}
	for _, kid := range n.kids {
		if n.kind == "TableExpression" && kid.kind == "Function" {
			continue
		}
		if err := c.node(kid, false, selects); err != nil {
			return err
		}
	}
	return nil
}

// arguments checks the second argument of functions that accept more than values there.
func (c check) arguments(n *node) error {
	in, cast := inFunctions[n.text], castFunctions[strings.ToLower(n.text)]
	if !in && !cast {
		return nil
	}
	if len(n.kids) != 1 || n.kids[0].kind != "ExpressionList" || len(n.kids[0].kids) < 2 {
		return denied("the arguments of %s are not offered", n.text)
	}
	second := n.kids[0].kids[1]
	if cast && second.kind != "Literal" {
		return denied("a computed type is not offered")
	}
	if in && second.kind == "Identifier" {
		return c.table(second.text)
	}
	return nil
}

// identifier checks a name that stands for a value. It can be a function's, inserted by a parameter, which the text does not show; or a
// table's, since WITH gives tables other names: WITH system.users AS t.
func (c check) identifier(name string) error {
	if c.refused[strings.ToLower(name)] {
		return c.noFunction(name)
	}
	first, rest, long := strings.Cut(name, ".")
	if !long || !c.databases[strings.ToLower(first)] {
		return nil
	}
	second, _, _ := strings.Cut(rest, ".")
	return c.table(first + "." + second)
}

// table checks a table's name: one of the store's, or one of a few of the engine's. A name
// without a database is the store's or the query's own, as that is the session's database.
func (c check) table(name string) error {
	parts := strings.Split(name, ".")
	for _, p := range parts {
		if p == "" || strings.ContainsFunc(p, func(r rune) bool { return r < 0x80 && !nameByte(byte(r)) && r != ' ' }) {
			return denied("the table name %q is not offered", name)
		}
	}
	switch {
	case len(parts) == 1, len(parts) == 2 && parts[0] == c.database, len(parts) == 2 && parts[0] == "system" && systemTables[parts[1]]:
		return nil
	}
	return denied("the table %q is not offered", name)
}

// node is one line of the engine's EXPLAIN AST with the lines below it.
type node struct {
	kind string // "Function"
	text string // "sum"; empty for most kinds
	kids []*node
}

// maxNodes bounds the tree: far more than a dashboard's query has.
const maxNodes = 20000

// parseTree parses the lines of EXPLAIN AST: a space of indentation per level, the kind, the
// text, and in brackets at the end the alias and the number of children.
func parseTree(lines []string) (*node, error) {
	if len(lines) == 0 || len(lines) > maxNodes {
		return nil, fmt.Errorf("the syntax tree has %d nodes, too many", len(lines))
	}
	var path []*node // from the root to the node before
	for _, line := range lines {
		rest := strings.TrimLeft(line, " ")
		depth := len(line) - len(rest)
		n := &node{}
		n.kind, n.text, _ = strings.Cut(rest, " ")
		switch {
		case n.kind == "Literal": // keeps what looks like brackets
		case strings.HasPrefix(n.text, "(alias "), strings.HasPrefix(n.text, "(children "):
			n.text = ""
		default:
			n.text, _, _ = strings.Cut(n.text, " (alias ")
			n.text, _, _ = strings.Cut(n.text, " (children ")
		}
		if depth > len(path) || depth == 0 && len(path) > 0 {
			return nil, fmt.Errorf("the syntax tree is malformed")
		}
		path = path[:depth]
		if depth > 0 {
			parent := path[depth-1]
			parent.kids = append(parent.kids, n)
		}
		path = append(path, n)
	}
	return path[0], nil
}

//go:embed functions.txt
var functionsText string

// functionList is what may be called, in lower case: the engine's names that differ only in case mean the same (a test checks that).
type functionList struct{ scalar, aggregate map[string]bool }

func parseFunctions(text string) functionList {
	l := functionList{map[string]bool{}, map[string]bool{}}
	into := l.scalar
	for line := range strings.Lines(text) {
		switch line = strings.TrimRight(line, "\n"); {
		case strings.HasPrefix(line, "#"):
		case line == "scalar":
			into = l.scalar
		case line == "aggregate":
			into = l.aggregate
		default:
			for name := range strings.FieldsSeq(line) {
				into[strings.ToLower(name)] = true
			}
		}
	}
	return l
}

// combinators an aggregate function may carry, as suffixes.
//
//nolint:gochecknoglobals // constant table
var combinators = []string{"if", "array", "map", "state", "merge", "foreach", "distinct", "ordefault", "ornull", "resample", "argmin",
	"argmax", "simplestate", "tuple", "null"}

// allows reports whether a function may be called.
func (l functionList) allows(name string) bool {
	name = strings.ToLower(name)
	return l.scalar[name] || l.allowsAggregate(name)
}

func (l functionList) allowsAggregate(name string) bool {
	if l.aggregate[name] {
		return true
	}
	for _, c := range combinators {
		if base, ok := strings.CutSuffix(name, c); ok && base != "" && l.allowsAggregate(base) {
			return true
		}
	}
	return false
}

// tableFunctions are those that make rows from their arguments alone.
//
//nolint:gochecknoglobals // constant table
var tableFunctions = map[string]bool{"numbers": true, "numbers_mt": true, "generateseries": true, "generate_series": true, "values": true}

// systemTables list the tables and what may be called; the query builder of Grafana's data source reads them.
//
//nolint:gochecknoglobals // constant table
var systemTables = map[string]bool{"tables": true, "columns": true, "databases": true, "functions": true, "one": true, "numbers": true,
	"time_zones": true}
