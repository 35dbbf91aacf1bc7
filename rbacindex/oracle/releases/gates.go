package main

import (
	"fmt"
	"go/ast"
	"strconv"
	"strings"
)

// gate is a feature gate as a release has it.
type gate struct {
	stage      string // alpha, beta, ga, deprecated
	on, locked bool
}

// gates reads the tables of feature gates in a package: maps of a feature to its
// specification, or to a list of one for each version it changed in.
func (s *source) gates(minor int, into map[string]gate) error {
	for _, file := range s.names() {
		var failed error
		ast.Inspect(s.files[file], func(n ast.Node) bool {
			table, ok := n.(*ast.CompositeLit)
			if !ok || failed != nil || !isGateTable(table.Type) {
				return failed == nil
			}
			for _, e := range table.Elts {
				entry := e.(*ast.KeyValueExpr)
				g, known, err := s.gateOf(entry.Value, minor)
				if err != nil {
					failed = fmt.Errorf("%s: %s: %w", s.place(file), name(entry.Key), err)
					return false
				}
				if !known {
					continue
				}
				feature := name(entry.Key)
				if text, ok := s.consts[feature]; ok {
					feature = text
				}
				into[feature] = g
			}
			return false
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}

// isGateTable: map[featuregate.Feature]featuregate.FeatureSpec or …VersionedSpecs.
func isGateTable(e ast.Expr) bool {
	m, ok := e.(*ast.MapType)
	return ok && name(m.Key) == "Feature" && (name(m.Value) == "FeatureSpec" || name(m.Value) == "VersionedSpecs")
}

// gateOf reads one specification; of several the last that the release has come to. A gate of
// a later release is not known.
func (s *source) gateOf(e ast.Expr, minor int) (g gate, known bool, err error) {
	spec, ok := e.(*ast.CompositeLit)
	if !ok {
		return g, false, fmt.Errorf("no literal")
	}
	if len(spec.Elts) > 0 {
		if _, several := spec.Elts[0].(*ast.CompositeLit); several {
			for _, one := range spec.Elts {
				holds, err := inForce(one.(*ast.CompositeLit), minor)
				if err != nil {
					return g, false, err
				}
				if !holds {
					continue
				}
				if g, known, err = s.gateOf(one, minor); err != nil {
					return g, false, err
				}
			}
			return g, known, nil
		}
	}
	g.stage = "ga"
	for _, e := range spec.Elts {
		field := e.(*ast.KeyValueExpr)
		switch name(field.Key) {
		case "Default", "LockToDefault":
			text := name(field.Value)
			if constant, ok := s.consts[text]; ok {
				text = constant
			}
			v, err := strconv.ParseBool(text)
			if err != nil {
				return g, false, fmt.Errorf("%s is not written out", name(field.Key))
			}
			if name(field.Key) == "Default" {
				g.on = v
			} else {
				g.locked = v
			}
		case "PreRelease":
			g.stage = strings.ToLower(name(field.Value))
		}
	}
	return g, true, nil
}

// inForce reports whether a specification has begun by a release: its Version is
// version.MustParse("1.36") or older, and so is, by one more, the MinCompatibilityVersion it asks
// for, if it does: an apiserver is compatible with the release before its own unless told.
func inForce(spec *ast.CompositeLit, minor int) (bool, error) {
	begun := false
	for _, e := range spec.Elts {
		field := e.(*ast.KeyValueExpr)
		call, ok := field.Value.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			continue
		}
		text, _ := literal(call.Args[0])
		since, err := minorOf(text)
		switch {
		case err != nil:
			return false, err
		case name(field.Key) == "Version":
			begun = since <= minor
		case name(field.Key) == "MinCompatibilityVersion" && since > minor-1:
			return false, nil
		}
	}
	return begun, nil
}

func minorOf(version string) (int, error) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(version, "v"), "1.")
	if !ok {
		return 0, fmt.Errorf("invalid version %q: want 1.MINOR", version)
	}
	rest, _, _ = strings.Cut(rest, ".")
	return strconv.Atoi(rest)
}
