package main

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// configVersion is a kind of the apiserver's own configuration files with the versions it is
// read in.
type configVersion struct {
	kind     string
	versions []string
}

// configVersions looks which versions of the configuration's API group have the kinds that
// decide who is let in and what is allowed.
func configVersions(apiserver module) []configVersion {
	const folder = "pkg/apis/apiserver"
	var out []configVersion
	for _, kind := range []string{"AuthenticationConfiguration", "AuthorizationConfiguration"} {
		c := configVersion{kind: kind}
		entries, err := os.ReadDir(filepath.Join(apiserver.dir, folder))
		if err != nil {
			return nil
		}
		for _, e := range entries {
			if !e.IsDir() || !strings.HasPrefix(e.Name(), "v") {
				continue
			}
			if s, err := parse(apiserver, folder+"/"+e.Name()); err == nil && s.declares(kind) {
				c.versions = append(c.versions, e.Name())
			}
		}
		if slices.Sort(c.versions); len(c.versions) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// declares reports whether the package has a type of that name.
func (s *source) declares(typeName string) bool {
	for _, f := range s.files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && t.Name.Name == typeName {
					return true
				}
			}
		}
	}
	return false
}
