package registry

import (
	"fmt"
	"strings"
)

// kind is one of the kinds that are kept, and how objects of it are written.
type kind struct {
	resource   string // group resource, as the state and the registry's keys have it
	kind       string
	namespaced bool
	names      []string
	namespaces []string // in which they are made; nil is the usual ones
	// content returns the members of an object beside its metadata, beginning with a comma.
	content func(g *generator) string
	// change returns members that a patch or an update changes, without braces; "" if nothing can.
	change func(g *generator) string
	// operation is one of a JSON patch.
	operation string
	// special are requests of subresources and the like.
	special []func(g *generator, s *step, object string)
}

// group returns the API group.
func (k *kind) group() string {
	_, group, _ := strings.Cut(k.resource, ".")
	return group
}

// version returns the API group and version, as objects have it.
func (k *kind) version() string {
	if k.group() == "" {
		return "v1"
	}
	return k.group() + "/v1"
}

// path returns the path of an object, or without a name of its collection.
func (k *kind) path(namespace, name string) string {
	plural, _, _ := strings.Cut(k.resource, ".")
	path := "/api/v1"
	if group := k.group(); group != "" {
		path = "/apis/" + group + "/v1"
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + plural
	if name != "" {
		path += "/" + name
	}
	return path
}

// object returns an object.
func (k *kind) object(g *generator, namespace, name string) string {
	meta := `"name":"` + name + `"`
	if g.chance(6) {
		meta = `"generateName":"g-"`
	}
	if namespace != "" {
		meta += `,"namespace":"` + namespace + `"`
	}
	return fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{%s%s}%s}`, k.kind, k.version(), meta, g.metadata(), k.content(g))
}

const groupRBAC = "rbac.authorization.k8s.io"

// nothing returns the change of kinds of which no content is kept.
func nothing(*generator) string { return "" }

func empty(*generator) string { return "" }

func rules(g *generator) string {
	return `"rules":` + g.one("[]", `[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`,
		`[{"apiGroups":[""],"resources":["secrets"],"verbs":["list"]}]`)
}

func subjects(g *generator) string {
	return `"subjects":` + g.one(`[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]`,
		`[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"staff"}]`, "null")
}

func bound(role string) func(g *generator) string {
	return func(g *generator) string {
		return `,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"` + role + `","name":"` + g.one("a", "b") + `"},` + subjects(g)
	}
}

func rulesContent(g *generator) string { return "," + rules(g) }

// kinds are the kinds that are kept; the first is asked for most.
var kinds = []*kind{
	podKind,
	{resource: "roles." + groupRBAC, kind: "Role", namespaced: true, names: []string{"a", "b"}, content: rulesContent, change: rules,
		operation: `{"op":"replace","path":"/rules","value":[]}`},
	{resource: "clusterroles." + groupRBAC, kind: "ClusterRole", names: []string{"a", "b"}, content: rulesContent, change: rules,
		operation: `{"op":"replace","path":"/rules","value":[]}`},
	{resource: "rolebindings." + groupRBAC, kind: "RoleBinding", namespaced: true, names: []string{"a", "b"}, content: bound("Role"),
		change:    subjects,
		operation: `{"op":"replace","path":"/subjects","value":[]}`},
	{resource: "clusterrolebindings." + groupRBAC, kind: "ClusterRoleBinding", names: []string{"a", "b"}, content: bound("ClusterRole"),
		change:    subjects,
		operation: `{"op":"replace","path":"/subjects","value":[]}`},
}
