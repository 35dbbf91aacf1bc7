package detect

import (
	"bytes"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/retrial-io/retrial/ingest/event"
)

// bodyVariables are the variables that hold request or response bodies.
//
//nolint:gochecknoglobals // constant table
var bodyVariables = []string{"object", "written", "requestObject", "requestPatch", "responseObject"}

// needleGuard returns the guard of an expression that can hold only if one of the texts it compares
// with occurs in a body: if none does it is false, and the body need not be parsed. An expression
// that would fail on such a body is false as well.
func needleGuard(e celast.Expr) guard {
	texts := needlesOf(e, bodyVariables)
	if len(texts) == 0 {
		return nil
	}
	needles := make([][]byte, len(texts))
	for i, s := range texts {
		needles[i] = []byte(s)
	}
	return func(in *input) known {
		if mayHave(in.event, needles) {
			return unknown
		}
		return isFalse
	}
}

// mayHave reports whether a body holds one of the texts, or a text written in a way that hides it.
func mayHave(e *event.Event, needles [][]byte) bool {
	for _, body := range [...][]byte{e.RequestObject, e.ResponseObject} {
		for _, n := range needles {
			if bytes.Contains(body, n) {
				return true
			}
		}
		if bytes.Contains(body, []byte(`\u`)) || bytes.Contains(body, []byte(`\/`)) {
			return true
		}
	}
	patch := bytes.TrimLeft(e.RequestObject, " \t\r\n")
	return len(patch) > 0 && patch[0] == '[' && bytes.Contains(patch, []byte(`"from"`)) // moved from elsewhere
}

// needlesOf returns texts of which a body holds at least one if the expression is true; none:
// nothing is known. vars are names of what comes from bodies.
func needlesOf(e celast.Expr, vars []string) []string {
	switch e.Kind() {
	case celast.ComprehensionKind:
		return needlesOfExists(e.AsComprehension(), vars)
	case celast.CallKind:
	default:
		return nil
	}
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		if n := needlesOf(args[0], vars); n != nil {
			return n
		}
		return needlesOf(args[1], vars)
	case operators.LogicalOr:
		a, b := needlesOf(args[0], vars), needlesOf(args[1], vars)
		if a == nil || b == nil {
			return nil
		}
		return append(slices.Clone(a), b...)
	case operators.Equals:
		if fromBody(args[1], vars) {
			args = []celast.Expr{args[1], args[0]}
		}
		if fromBody(args[0], vars) {
			return plainTexts(args[1])
		}
	case operators.In:
		if fromBody(args[1], vars) {
			return plainTexts(args[0])
		}
		if fromBody(args[0], vars) && args[1].Kind() == celast.ListKind {
			return plainTexts(args[1].AsList().Elements()...)
		}
	case "startsWith", "endsWith", "contains":
		if call.IsMemberFunction() && fromBody(call.Target(), vars) {
			return plainTexts(args[0])
		}
	}
	return nil
}

// needlesOfExists is needlesOf for list.exists(x, condition), as its macro expands.
func needlesOfExists(c celast.ComprehensionExpr, vars []string) []string {
	step := c.LoopStep()
	if !fromBody(c.IterRange(), vars) || c.HasIterVar2() || step.Kind() != celast.CallKind ||
		step.AsCall().FunctionName() != operators.LogicalOr ||
		c.Result().Kind() != celast.IdentKind || c.Result().AsIdent() != c.AccuVar() || c.AccuInit().Kind() != celast.LiteralKind ||
		c.AccuInit().AsLiteral() != types.False {
		return nil
	}
	so, condition := step.AsCall().Args()[0], step.AsCall().Args()[1]
	if so.Kind() != celast.IdentKind || so.AsIdent() != c.AccuVar() {
		return nil
	}
	return needlesOf(condition, append(slices.Clone(vars), c.IterVar()))
}

// fromBody reports whether every value that an expression can have was in a body, or is empty.
func fromBody(e celast.Expr, vars []string) bool {
	switch e.Kind() {
	case celast.IdentKind:
		return slices.Contains(vars, e.AsIdent())
	case celast.SelectKind:
		return !e.AsSelect().IsTestOnly() && fromBody(e.AsSelect().Operand(), vars)
	case celast.ListKind:
		return !slices.ContainsFunc(e.AsList().Elements(), func(x celast.Expr) bool { return !fromBody(x, vars) })
	case celast.CallKind:
		call := e.AsCall()
		switch args := call.Args(); call.FunctionName() {
		case operators.OptSelect, operators.Index, operators.OptIndex:
			return fromBody(args[0], vars)
		case operators.Add:
			return fromBody(args[0], vars) && fromBody(args[1], vars)
		case "orValue":
			return fromBody(call.Target(), vars) && isEmpty(args[0])
		}
	}
	return false
}

// isEmpty reports whether an expression is the literal "", [] or {}.
func isEmpty(e celast.Expr) bool {
	switch e.Kind() {
	case celast.LiteralKind:
		return e.AsLiteral() == types.String("")
	case celast.ListKind:
		return e.AsList().Size() == 0
	case celast.MapKind:
		return e.AsMap().Size() == 0
	}
	return false
}

// plainTexts returns the texts of literals, nil unless all are texts that JSON writes as they are,
// or with an escape that mayHave looks for.
func plainTexts(list ...celast.Expr) []string {
	var out []string
	for _, e := range list {
		if e.Kind() != celast.LiteralKind {
			return nil
		}
		s, ok := e.AsLiteral().(types.String)
		if !ok || s == "" || strings.ContainsFunc(string(s), func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
			return nil
		}
		out = append(out, string(s))
	}
	return out
}
