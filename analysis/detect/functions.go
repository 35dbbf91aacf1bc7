package detect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Function is a function that expressions may use in addition to those of CEL. It returns a string.
type Function struct {
	Name   string
	Params []Variable
	Doc    string

	call func(args []ref.Val) string
}

// Functions returns the functions of the rule language that CEL does not have, in the order in
// which they are documented.
func Functions() []Function {
	return []Function{{
		"bindingText", variables("object", "resource", "ns", "name"), "which role a binding gives to whom, in words; says " +
			"what is not recorded",
		func(args []ref.Val) string {
			return bindingText(args[0], wordOf(args[1]), wordOf(args[2]), wordOf(args[3]))
		},
	}, {
		"patchText", append(append(variables("object"), Variable{Name: "role", Type: cel.StringType}), variables("resource", "ns",
			"name")...),
		"the same for a binding that is patched, whose role is given; the subjects are those in the patch",
		func(args []ref.Val) string {
			return patchText(args[0], wordOf(args[1]), wordOf(args[2]), wordOf(args[3]), wordOf(args[4]))
		},
	}, {
		"brief", []Variable{{Name: "name", Type: cel.DynType}}, "a name, cut to 80 bytes; empty for anything but a string",
		func(args []ref.Val) string { return brief(wordOf(args[0])) },
	}}
}

// variables returns those variables of the language that have these names.
func variables(names ...string) []Variable {
	out := make([]Variable, len(names))
	for i, name := range names {
		all := Variables()
		out[i] = all[slices.IndexFunc(all, func(v Variable) bool { return v.Name == name })]
	}
	return out
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

// maxNamed bounds the subjects that are listed.
const maxNamed = 5

// maxBrief is how much of a name is shown: clients may choose names of megabytes.
const maxBrief = 80

func brief(name string) string { return cutTo(name, maxBrief) }

// bindingText describes which role a binding gives to whom, and what of it is not recorded.
func bindingText(binding ref.Val, resource, ns, name string) string {
	if own := textIn(binding, "metadata", "name"); own != "" {
		name = own
	}
	return grantText(textIn(binding, "roleRef", "name"), elements(memberOf(binding, "subjects")), resource, ns, name)
}

// patchText describes which role a patched binding gives to whom: the subjects in the patch.
func patchText(object ref.Val, role, resource, ns, name string) string {
	return grantText(role, elements(memberOf(object, "subjects")), resource, ns, name)
}

func grantText(role string, subjects []ref.Val, resource, ns, name string) string {
	role = cmp.Or(role, "a role that is not recorded")
	by := "ClusterRoleBinding " + brief(name)
	if resource == "rolebindings" {
		by = "RoleBinding " + brief(ns) + "/" + brief(name)
	}
	return "it gives " + brief(role) + " to " + subjectsText(subjects) + " by " + by
}

// subjectsText lists subjects.
func subjectsText(subjects []ref.Val) string {
	if len(subjects) == 0 {
		return "no recorded subject"
	}
	var names []string
	for _, s := range subjects[:min(len(subjects), maxNamed)] {
		who := brief(textIn(s, "kind")) + " "
		if ns := textIn(s, "namespace"); ns != "" {
			who += brief(ns) + "/"
		}
		names = append(names, who+brief(textIn(s, "name")))
	}
	text := strings.Join(names, ", ")
	if n := len(subjects) - len(names); n > 0 {
		text += " and " + strconv.Itoa(n) + " more"
	}
	return text
}

// elements returns the elements of a list, nil for anything else.
func elements(v ref.Val) []ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return nil
	}
	n, _ := list.Size().(types.Int)
	out := make([]ref.Val, n)
	for i := range out {
		out[i] = list.Get(types.Int(i))
	}
	return out
}

// memberOf returns a member of a map, nil if there is none.
func memberOf(v ref.Val, name string) ref.Val {
	m, ok := v.(traits.Mapper)
	if !ok {
		return nil
	}
	member, _ := m.Find(types.String(name))
	return member
}

// textIn returns the string at the end of a path of members, "" if there is none.
func textIn(v ref.Val, path ...string) string {
	for _, name := range path {
		v = memberOf(v, name)
	}
	return wordOf(v)
}

// wordOf returns a value that is a string, "" for any other.
func wordOf(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}
