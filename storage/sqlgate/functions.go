package sqlgate

import (
	_ "embed"
	"strings"
)

//go:embed functions.txt
var functionsText string

// functionList is what may be called, in lower case: the engine's names that differ only in case
// mean the same (a test checks that).
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
			for _, name := range strings.Fields(line) {
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

// systemTables list the tables and what may be called; the query builder of Grafana's data
// source reads them.
//
//nolint:gochecknoglobals // constant table
var systemTables = map[string]bool{"tables": true, "columns": true, "databases": true, "functions": true, "one": true, "numbers": true,
	"time_zones": true}
