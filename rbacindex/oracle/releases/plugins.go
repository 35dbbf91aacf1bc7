package main

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
)

// plugin is an admission plugin.
type plugin struct {
	name string
	on   bool // by default
}

// plugins reads the admission plugins in the order in which they are asked.
func plugins(kubernetes, apiserver module) ([]plugin, error) {
	s, err := parse(kubernetes, "pkg/kubeapiserver/options")
	if err != nil {
		return nil, err
	}
	f := s.files["plugins.go"]
	if f == nil {
		return nil, fmt.Errorf("%s is not there", s.place("plugins.go"))
	}
	imported := map[string]string{} // path by name
	for _, imp := range f.Imports {
		at, _ := literal(imp.Path)
		as := path.Base(at)
		if imp.Name != nil {
			as = imp.Name.Name
		}
		imported[as] = at
	}
	named := func(e ast.Expr) (string, error) {
		sel, ok := e.(*ast.SelectorExpr)
		if !ok {
			return "", fmt.Errorf("no name of a package's")
		}
		m, folder := kubernetes, ""
		if folder, ok = strings.CutPrefix(imported[name(sel.X)], kubernetes.path+"/"); !ok {
			m = apiserver
			if folder, ok = strings.CutPrefix(imported[name(sel.X)], apiserver.path+"/"); !ok {
				return "", fmt.Errorf("%s is of another module", name(sel.X))
			}
		}
		p, err := parse(m, folder)
		if err != nil {
			return "", err
		}
		text, ok := p.consts[sel.Sel.Name]
		if !ok {
			return "", fmt.Errorf("%s.%s is not a string", name(sel.X), sel.Sel.Name)
		}
		return text, nil
	}
	var order []string
	on := map[string]bool{}
	for _, d := range f.Decls {
		var failed error
		collect := func(list []ast.Expr, use func(string)) {
			for _, e := range list {
				text, err := named(e)
				if err != nil {
					failed = err
				}
				use(text)
			}
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if n.Names[0].Name == "AllOrderedPlugins" {
					collect(n.Values[0].(*ast.CompositeLit).Elts, func(text string) { order = append(order, text) })
				}
			case *ast.AssignStmt:
				if name(n.Lhs[0]) == "defaultOnPlugins" {
					collect(n.Rhs[0].(*ast.CallExpr).Args, func(text string) { on[text] = true })
				}
			}
			return true
		})
		if failed != nil {
			return nil, failed
		}
	}
	var out []plugin
	for _, text := range order {
		out = append(out, plugin{text, on[text]})
	}
	if len(out) == 0 || len(on) == 0 {
		return nil, fmt.Errorf("%s names no plugins", s.place("plugins.go"))
	}
	return out, nil
}
