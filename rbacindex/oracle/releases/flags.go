package main

import (
	"go/ast"
	"slices"
	"strings"
)

// flag is a command-line flag of the kube-apiserver.
type flag struct {
	kind       string // bool, string, duration …; value for what parses itself
	deprecated bool
	source     string
}

// flagPackages are where a kube-apiserver's flags are declared, by module.
var flagPackages = []struct{ module, folder string }{
	{"k8s.io/kubernetes", "cmd/kube-apiserver/app/options"},
	{"k8s.io/kubernetes", "pkg/controlplane/apiserver/options"},
	{"k8s.io/kubernetes", "pkg/kubeapiserver/options"},
	{"k8s.io/kubernetes", "plugin/pkg/admission/defaulttolerationseconds"},
	{"k8s.io/apiserver", "pkg/server/options"},
	{"k8s.io/apiserver", "pkg/util/version"}, // in 1.31
	{"k8s.io/component-base", "cli/globalflag"},
	{"k8s.io/component-base", "compatibility"},
	{"k8s.io/component-base", "featuregate"},
	{"k8s.io/component-base", "logs"},
	{"k8s.io/component-base", "logs/api/v1"},
	{"k8s.io/component-base", "metrics"},
	{"k8s.io/component-base", "version/verflag"},
}

// foreign are options in those packages that belong to other servers: to aggregated ones, and
// to the scheduler and the controller manager.
var foreign = []string{"CoreAPIOptions", "DelegatingAuthenticationOptions", "DelegatingAuthorizationOptions",
	"DeprecatedInsecureServingOptions", "InsecureServingOptions"}

// flags collects the flags a package declares: fs.BoolVar(&x, "name", …), fs.Var(x, "name",
// …), flag.Int64("name", …) and what registers flags of other flag sets by name.
func (s *source) flags(into map[string]flag) {
	deprecated := map[string]bool{}
	for _, file := range s.names() {
		for _, d := range s.files[file].Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && slices.Contains(foreign, name(f.Recv.List[0].Type)) {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if name(call.Fun) == "MarkDeprecated" && len(call.Args) == 2 {
					if text, ok := s.text(call.Args[0]); ok {
						deprecated[text] = true
					}
				}
				names, kind := s.declared(call)
				for _, flagName := range names {
					if _, known := into[flagName]; !known {
						into[flagName] = flag{kind: kind, source: s.place(file)}
					}
				}
				return true
			})
		}
	}
	for flagName := range deprecated {
		if f, ok := into[flagName]; ok {
			f.deprecated = true
			into[flagName] = f
		}
	}
}

// kinds are the types of flags that are declared without a variable of their own.
var kinds = []string{"Bool", "Duration", "Int", "Int64", "String"}

// declared tells which flags a call declares; none for most calls.
func (s *source) declared(call *ast.CallExpr) (names []string, kind string) {
	method := name(call.Fun)
	at := 0 // of the name among the arguments
	base, isVar := strings.CutSuffix(strings.TrimSuffix(method, "P"), "Var")
	switch {
	case isVar && base == "":
		at, kind = 1, "value"
	case isVar:
		at, kind = 1, base
	case slices.Contains(kinds, method) && len(call.Args) == 3:
		kind = method
	case (method == "Register" || method == "register") && len(call.Args) == 2:
		at, kind = 1, "value"
	default:
		return nil, ""
	}
	if len(call.Args) <= at {
		return nil, ""
	}
	for _, flagName := range s.spelled(call.Args[at]) {
		if flagName != "" && strings.Trim(flagName, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
			names = append(names, flagName)
		}
	}
	return names, strings.ToLower(kind)
}

// auditBackends are what the audit flags are declared for in turn, by a format.
var auditBackends = []string{"log", "webhook"}

// spelled returns a flag's name: a string, or a format that makes one for each audit backend.
func (s *source) spelled(e ast.Expr) []string {
	if text, ok := s.text(e); ok {
		return []string{text}
	}
	call, ok := e.(*ast.CallExpr)
	if !ok || name(call.Fun) != "Sprintf" || len(call.Args) != 2 {
		return nil
	}
	var names []string
	if format, ok := s.text(call.Args[0]); ok {
		for _, backend := range auditBackends {
			names = append(names, strings.Replace(format, "%s", backend, 1))
		}
	}
	return names
}
