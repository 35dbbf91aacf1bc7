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

// known is what a guard knows of an expression's value.
type known int8

const (
	unknown known = iota
	isFalse
	isTrue
)

func knownOf(b bool) known {
	if b {
		return isTrue
	}
	return isFalse
}

// guard computes the value of a bool expression without the interpreter, as far as that goes:
// comparisons of variables, or of what a condition chooses among them, with constants, and their
// conjunctions and disjunctions. If the value is unknown the expression is run. CEL's && and ||
// ignore an error if the other side decides, so a guard that decides is never contradicted.
type guard func(*input) known

// guardOf returns the guard of an expression, nil if it would know nothing.
func guardOf(e celast.Expr) guard { return guardIn(e, true) }

// guardIn is guardOf with bodies: an expression that is false may also fail, so that needleGuard
// suffices. It does not where its negation is needed.
func guardIn(e celast.Expr, bodies bool) guard {
	g := plainGuard(e, bodies)
	if g == nil && bodies {
		g = needleGuard(e)
	}
	return g
}

// plainGuard returns the guard of comparisons of variables and of what joins them.
func plainGuard(e celast.Expr, bodies bool) guard {
	switch e.Kind() {
	case celast.IdentKind:
		if flag := flags[e.AsIdent()]; flag != nil {
			return func(in *input) known { return knownOf(flag(in)) }
		}
	case celast.CallKind:
		call := e.AsCall()
		switch args := call.Args(); call.FunctionName() {
		case operators.LogicalAnd:
			return joined(guardIn(args[0], bodies), guardIn(args[1], bodies), isFalse)
		case operators.LogicalOr:
			return joined(guardIn(args[0], bodies), guardIn(args[1], bodies), isTrue)
		case operators.LogicalNot:
			return not(guardIn(args[0], false))
		case operators.Equals:
			return either(textGuard(args[0], args[1], func(v, c string) bool { return v == c }), codeGuard(args, func(v, c int64) bool {
				return v == c
			}))
		case operators.NotEquals:
			return either(textGuard(args[0], args[1], func(v, c string) bool { return v != c }), codeGuard(args, func(v, c int64) bool {
				return v != c
			}))
		case operators.GreaterEquals:
			return codeGuard(args, func(v, c int64) bool { return v >= c })
		case operators.Less:
			return codeGuard(args, func(v, c int64) bool { return v < c })
		case operators.In:
			return listGuard(args[0], args[1])
		case "startsWith":
			return textGuard(call.Target(), args[0], strings.HasPrefix)
		case "endsWith":
			return textGuard(call.Target(), args[0], strings.HasSuffix)
		}
	}
	return nil
}

// textGuess is to string expressions what a guard is to bool ones: a variable, the most frequent
// group key, or one chosen by a condition.
type textGuess func(*input) (string, bool)

// guessOf returns the guess of an expression, nil if it would know nothing.
func guessOf(e celast.Expr) textGuess {
	switch e.Kind() {
	case celast.IdentKind:
		if text := texts[e.AsIdent()]; text != nil {
			return func(in *input) (string, bool) { return text(in), true }
		}
	case celast.CallKind:
		if call := e.AsCall(); call.FunctionName() == operators.Conditional {
			args := call.Args()
			return chosen(guardIn(args[0], false), guessOf(args[1]), guessOf(args[2]))
		}
	}
	return nil
}

func chosen(condition guard, then, otherwise textGuess) textGuess {
	if condition == nil {
		return nil
	}
	return func(in *input) (string, bool) {
		guess := then
		switch condition(in) {
		case isFalse:
			guess = otherwise
		case unknown:
			guess = nil
		}
		if guess == nil {
			return "", false
		}
		return guess(in)
	}
}

// joined evaluates && or ||: decides is the value of either side that decides.
func joined(a, b guard, decides known) guard {
	if a == nil {
		a, b = b, a
	}
	switch {
	case a == nil:
		return nil
	case b == nil:
		return func(in *input) known {
			if a(in) == decides {
				return decides
			}
			return unknown
		}
	}
	return func(in *input) known {
		x := a(in)
		if x == decides {
			return decides
		}
		if y := b(in); y == decides || x != unknown {
			return y
		}
		return unknown
	}
}

func not(g guard) guard {
	if g == nil {
		return nil
	}
	return func(in *input) known {
		switch g(in) {
		case isTrue:
			return isFalse
		case isFalse:
			return isTrue
		}
		return unknown
	}
}

// textGuard compares a string with a constant.
func textGuard(value, constant celast.Expr, holds func(v, c string) bool) guard {
	if value == nil || constant.Kind() != celast.LiteralKind {
		return nil
	}
	text := guessOf(value)
	c, ok := constant.AsLiteral().(types.String)
	if text == nil || !ok {
		return nil
	}
	return func(in *input) known {
		if v, ok := text(in); ok {
			return knownOf(holds(v, string(c)))
		}
		return unknown
	}
}

func either(a, b guard) guard {
	if a != nil {
		return a
	}
	return b
}

// codeGuard compares the status code, the only number, with a constant.
func codeGuard(args []celast.Expr, holds func(v, c int64) bool) guard {
	if args[0].Kind() != celast.IdentKind || args[0].AsIdent() != "code" || args[1].Kind() != celast.LiteralKind {
		return nil
	}
	c, ok := args[1].AsLiteral().(types.Int)
	if !ok {
		return nil
	}
	return func(in *input) known { return knownOf(holds(int64(in.event.Code()), int64(c))) }
}

// listGuard looks a string variable up in a list of constants.
func listGuard(variable, list celast.Expr) guard {
	if variable.Kind() != celast.IdentKind || list.Kind() != celast.ListKind {
		return nil
	}
	text := texts[variable.AsIdent()]
	var values []string
	for _, e := range list.AsList().Elements() {
		if e.Kind() != celast.LiteralKind {
			return nil
		}
		c, ok := e.AsLiteral().(types.String)
		if !ok {
			return nil
		}
		values = append(values, string(c))
	}
	if text == nil {
		return nil
	}
	return func(in *input) known { return knownOf(slices.Contains(values, text(in))) }
}

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
