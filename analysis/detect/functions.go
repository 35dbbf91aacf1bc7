package detect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Function is a function expressions may use beside those of the language. It returns a string.
type Function struct {
	Name   string
	Params []Variable
	Doc    string

	call func(args []ref.Val) string
}

// Functions returns the functions of the rule language that are not of CEL, in the order in which
// they are documented.
func Functions() []Function {
	return []Function{{
		"bindingText", variables("object", "resource", "ns", "name"), "which role a binding gives to whom, in words; what is not recorded is named so",
		func(args []ref.Val) string {
			return bindingText(args[0], wordOf(args[1]), wordOf(args[2]), wordOf(args[3]))
		},
	}, {
		"brief", []Variable{{Name: "name", Type: cel.DynType}}, "a name, cut to 80 bytes; empty for anything but a string",
		func(args []ref.Val) string { return brief(wordOf(args[0])) },
	}}
}

// variables returns those of the language that have these names.
func variables(names ...string) []Variable {
	out := make([]Variable, len(names))
	for i, name := range names {
		all := Variables()
		out[i] = all[slices.IndexFunc(all, func(v Variable) bool { return v.Name == name })]
	}
	return out
}

// String is the function with its parameters.
func (f *Function) String() string {
	names := make([]string, len(f.Params))
	for i := range f.Params {
		names[i] = f.Params[i].Name
	}
	return f.Name + "(" + strings.Join(names, ", ") + ")"
}

// option declares the function to CEL.
func (f *Function) option() cel.EnvOption {
	params := make([]*cel.Type, len(f.Params))
	for i := range f.Params {
		params[i] = f.Params[i].Type
	}
	return cel.Function(f.Name, cel.Overload(f.Name, params, cel.StringType, cel.FunctionBinding(func(args ...ref.Val) ref.Val {
		return types.String(f.call(args))
	})))
}

// maxNamed bounds the subjects that are named.
const maxNamed = 5

// maxBrief is how much of a name is told: clients may choose names of megabytes.
const maxBrief = 80

func brief(name string) string { return cutTo(name, maxBrief) }

// bindingText says which role a binding gives to whom. What it was written without, it is not said to have.
func bindingText(binding ref.Val, resource, ns, name string) string {
	role := textIn(binding, "roleRef", "name")
	if role == "" {
		role = "a role that is not recorded"
	}
	if own := textIn(binding, "metadata", "name"); own != "" {
		name = own
	}
	by := "ClusterRoleBinding " + brief(name)
	if resource == "rolebindings" {
		by = "RoleBinding " + brief(ns) + "/" + brief(name)
	}
	return "it gives " + brief(role) + " to " + subjectsOf(binding) + " by " + by
}

// subjectsOf names the subjects of a binding.
func subjectsOf(binding ref.Val) string {
	list, ok := memberOf(binding, "subjects").(traits.Lister)
	if !ok {
		return "nobody who is recorded"
	}
	n, _ := list.Size().(types.Int)
	if n == 0 {
		return "nobody who is recorded"
	}
	var names []string
	for i := range min(n, maxNamed) {
		s := list.Get(i)
		who := brief(textIn(s, "kind")) + " "
		if ns := textIn(s, "namespace"); ns != "" {
			who += brief(ns) + "/"
		}
		names = append(names, who+brief(textIn(s, "name")))
	}
	text := strings.Join(names, ", ")
	if n > maxNamed {
		text += " and " + strconv.FormatInt(int64(n-maxNamed), 10) + " more"
	}
	return text
}

// memberOf returns a member of a map, nil without one.
func memberOf(v ref.Val, name string) ref.Val {
	m, ok := v.(traits.Mapper)
	if !ok {
		return nil
	}
	member, _ := m.Find(types.String(name))
	return member
}

// textIn returns the string at the end of a path of members, "" without one.
func textIn(v ref.Val, path ...string) string {
	for _, name := range path {
		v = memberOf(v, name)
	}
	return wordOf(v)
}

// wordOf returns a value that is a string, "" of any other.
func wordOf(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}
