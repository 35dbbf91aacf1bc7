package detect

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/verdict"
)

// Limits on expressions. Without loops and regular expressions the work is bounded by the
// size of the text; with them it is counted while the expression runs.
const (
	maxExprBytes = 4096
	maxCost      = 100_000
)

// language compiles expressions.
type language struct{ env *cel.Env }

func newEnv() (*language, error) {
	opts := []cel.EnvOption{ext.Strings(), ext.Sets(), ext.Lists(), cel.OptionalTypes()}
	for _, v := range Variables() {
		opts = append(opts, cel.Variable(v.Name, v.Type))
	}
	for _, f := range Functions() {
		opts = append(opts, f.option())
	}
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return nil, err
	}
	return &language{env}, nil
}

// tooCostly reports whether an expression was stopped because a request is too large for it.
func tooCostly(err error) bool {
	var stopped interpreter.EvalCancelledError
	return errors.As(err, &stopped) && stopped.Cause == interpreter.CostLimitExceeded
}

// expr is one compiled expression. It reads what it can without the interpreter.
type expr struct {
	prog  cel.Program
	text  textGuess // nil if it knows nothing
	guard guard     // nil if it knows nothing
	names []string  // of the variables, each once
}

// compile returns the expression, whose type must be want. where names the file and member.
func (l *language) compile(where, text string, want *cel.Type) (*expr, error) {
	if len(text) > maxExprBytes {
		return nil, fmt.Errorf("%s: longer than %d bytes", where, maxExprBytes)
	}
	ast, issues := l.env.CompileSource(common.NewStringSource(text, where))
	if issues.Err() != nil {
		return nil, issues.Err() // names line and column
	}
	if !ast.OutputType().IsExactType(want) {
		return nil, fmt.Errorf("%s: type is %s, want %s", where, ast.OutputType(), want)
	}
	opts := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	root := celast.NavigateAST(ast.NativeRep())
	if len(celast.MatchDescendants(root, celast.KindMatcher(celast.ComprehensionKind)))+
		len(celast.MatchDescendants(root, celast.FunctionMatcher("matches"))) > 0 {
		opts = append(opts, cel.CostLimit(maxCost))
	}
	prog, err := l.env.Program(ast, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	var names []string
	for _, e := range celast.MatchDescendants(root, celast.KindMatcher(celast.IdentKind)) {
		if name := e.AsIdent(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return &expr{prog: prog, text: guessOf(ast.NativeRep().Expr()), guard: guardOf(ast.NativeRep().Expr()), names: names}, nil
}

func (e *expr) bool(in *input) (bool, error) {
	if e.guard != nil {
		if k := e.guard(in); k != unknown {
			return k == isTrue, nil
		}
	}
	v, _, err := e.prog.Eval(in)
	if err != nil {
		return false, err
	}
	return v == types.True, nil
}

func (e *expr) string(in *input) (string, error) {
	if e.text != nil {
		if s, ok := e.text(in); ok {
			return s, nil
		}
	}
	v, _, err := e.prog.Eval(in)
	if err != nil {
		return "", err
	}
	s, ok := v.(types.String)
	if !ok {
		return "", errors.New("not a string")
	}
	return string(s), nil
}

type resourceKey struct{ group, resource, subresource string }

// program is a compiled rule.
type program struct {
	rule      Rule
	expr      *expr // nil selects everything
	group     []*expr
	counts    []countProgram
	about     *expr // nil for who made the request
	says      *expr // nil for nothing
	markNames []string
	reads     []string // the variables it reads, sorted
}

type countProgram struct {
	where, distinct *expr // nil if not given
	atLeast         int
	after           bool
}

// threshold returns what the store counts for it: distinct values only if they follow from what the
// store can count.
func (c *countProgram) threshold() verdict.Threshold {
	t := verdict.Threshold{AtLeast: c.atLeast}
	if c.distinct != nil && !slices.ContainsFunc(c.distinct.names, func(name string) bool { return !codec.Countable(name) }) {
		t.Distinct = c.distinct.names
	}
	return t
}

func compile(l *language, file string, r Rule) (*program, error) {
	p := &program{rule: r, markNames: markNames(&r)}
	var errs []error
	one := func(member, text string, want *cel.Type) *expr {
		if text == "" {
			return nil
		}
		e, err := l.compile(file+": "+member, text, want)
		if err != nil {
			errs = append(errs, err)
		}
		return e
	}
	p.expr = one("expr", r.Expr, cel.BoolType)
	for i, g := range r.GroupBy {
		p.group = append(p.group, one(fmt.Sprintf("groupBy[%d]", i), g, cel.StringType))
	}
	for i, c := range r.Counts {
		p.counts = append(p.counts, countProgram{
			where:    one(fmt.Sprintf("counts[%d].where", i), c.Where, cel.BoolType),
			distinct: one(fmt.Sprintf("counts[%d].distinct", i), c.Distinct, cel.StringType),
			atLeast:  c.AtLeast,
			after:    c.After,
		})
	}
	p.about, p.says = one("about", r.About, cel.StringType), one("says", r.Says, cel.StringType)
	p.reads = p.variables()
	return p, errors.Join(errs...)
}

// variables returns the variables that its expressions name and its Match compares.
func (p *program) variables() []string {
	all := map[string]bool{}
	add := func(e *expr) {
		if e != nil {
			for _, name := range e.names {
				all[name] = codec.Askable(name) // others are computed for the expression alone
			}
		}
	}
	for _, e := range append([]*expr{p.expr, p.about, p.says}, p.group...) {
		add(e)
	}
	for _, c := range p.counts {
		add(c.where)
		add(c.distinct)
	}
	if len(p.rule.Match.Groups) > 0 {
		all["groups"], all["impersonatedGroups"] = true, true
	}
	if len(p.rule.Match.Annotations) > 0 {
		all["annotations"] = true
	}
	if len(p.rule.Match.Identity) > 0 {
		all["verdict.identity"] = true
	}
	maps.DeleteFunc(all, func(_ string, read bool) bool { return !read })
	return slices.Sorted(maps.Keys(all))
}

// index sorts the rules and files them under the resources they name.
func index(byID map[string]*program) *Set {
	s := &Set{byRes: map[resourceKey][]*program{}}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		p := byID[id]
		s.rules = append(s.rules, p)
		if len(p.rule.Match.Resources) == 0 {
			s.any = append(s.any, p)
		}
		for _, r := range p.rule.Match.Resources {
			k := parseResource(r)
			s.byRes[k] = append(s.byRes[k], p)
		}
	}
	return s
}

// only returns a set of one of its rules.
func (s *Set) only(id string) *Set {
	for _, p := range s.rules {
		if p.rule.ID == id {
			return index(map[string]*program{id: p})
		}
	}
	return index(nil)
}

// parseResource reads resource[/subresource][.group]. Neither resource nor subresource has a
// dot in its name.
func parseResource(s string) resourceKey {
	name, group, _ := strings.Cut(s, ".")
	resource, sub, _ := strings.Cut(name, "/")
	return resourceKey{group, resource, sub}
}

// matches compares the rule's Match, except for resources.
func (p *program) matches(in *input) bool {
	m := &p.rule.Match
	return has(m.Verbs, in.event.Verb) &&
		has(m.Stages, string(in.event.Stage)) &&
		(len(m.Recorded) == 0 || slices.Contains(m.Recorded, in.verdict.Recorded.String())) &&
		(len(m.Outcomes) == 0 || slices.Contains(m.Outcomes, in.verdict.Outcome.String())) &&
		(len(m.Groups) == 0 || in.inGroup(m.Groups)) &&
		(len(m.Annotations) == 0 || in.annotated(m.Annotations)) &&
		(len(m.Identity) == 0 || slices.ContainsFunc(in.verdict.Identity, func(i string) bool { return slices.Contains(m.Identity, i) }))
}

func has(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
