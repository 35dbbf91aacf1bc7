package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is a module of a release, with its sources.
type module struct{ path, version, dir string }

// fetch brings a module's sources.
func fetch(path, version string) (module, error) {
	out, err := exec.Command("go", "mod", "download", "-json", path+"@"+version).Output()
	var answer struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &answer); jsonErr == nil && answer.Error != "" {
		return module{}, fmt.Errorf("%s@%s: %s", path, version, answer.Error)
	}
	if err != nil {
		return module{}, fmt.Errorf("%s@%s: %w", path, version, err)
	}
	return module{path, version, answer.Dir}, nil
}

// staged returns the version of the modules of a release that Kubernetes publishes beside its own:
// v0.36.3 for v1.36.3.
func staged(version string) string { return "v0" + strings.TrimPrefix(version, "v1") }

// source is a package's files, without its tests.
type source struct {
	module module
	folder string
	files  map[string]*ast.File // by name
	consts map[string]string    // strings and booleans, by name
}

// parse reads a package; there is none when its folder is not there.
func parse(m module, folder string) (*source, error) {
	s := &source{module: m, folder: folder, files: map[string]*ast.File{}, consts: map[string]string{}}
	names, err := filepath.Glob(filepath.Join(m.dir, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.files[filepath.Base(name)] = f
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, value := range spec.Values {
				if text, ok := literal(value); ok {
					s.consts[spec.Names[i].Name] = text
				} else if id, ok := value.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
					s.consts[spec.Names[i].Name] = id.Name
				}
			}
			return true
		})
	}
	return s, nil
}

// place names a file as people look it up: path@version/folder/file.
func (s *source) place(file string) string {
	return s.module.path + "@" + s.module.version + "/" + s.folder + "/" + file
}

func (s *source) names() []string {
	var out []string
	for name := range s.files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// text returns the value of a string: written out, or a constant of the package.
func (s *source) text(e ast.Expr) (string, bool) {
	if id, ok := e.(*ast.Ident); ok {
		v, found := s.consts[id.Name]
		return v, found
	}
	return literal(e)
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// name returns the last part of an identifier: Default of Default, PluginName of gc.PluginName.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return name(e.X)
	}
	return ""
}
