package replay

import (
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// maxMissing bounds the objects one verdict names as missing.
const maxMissing = 8

// couldAllow names the unknown objects that could allow a request which the known ones do
// not, nil when there are none and the refusal is certain. res is the answer of the known
// ones.
//
// A binding nobody has seen could name anybody; a RoleBinding only in its own namespace. A
// role nobody has seen matters only to those a known binding gives it to.
func (m *moment) couldAllow(request *rbacindex.Attributes, res *rbacindex.Result) (missing []string) {
	view := m.view
	if view.Certain() {
		return nil
	}
	add := func(what string) {
		switch len(missing) {
		case maxMissing:
			missing = append(missing, "and more")
		case maxMissing + 1:
		default:
			missing = append(missing, what)
		}
	}
	for _, k := range res.Missing {
		if view.IsUnknown(k) {
			add(unknownName(k))
		}
	}
	for _, kind := range view.UnknownKinds {
		if kind == rbacindex.KindClusterRoleBinding || (kind == rbacindex.KindRoleBinding && request.Namespace != "") {
			add(unknownName(rbacindex.Key{Kind: kind}))
		}
	}
	for _, k := range view.Unknown {
		switch k.Kind {
		case rbacindex.KindClusterRoleBinding:
			add(unknownName(k))
		case rbacindex.KindRoleBinding:
			if request.Namespace != "" && (k.Namespace == request.Namespace || k.Namespace == "") {
				add(unknownName(k))
			}
		}
	}
	return missing
}

// unknownAmong names what is not known of the binding and the role a recorded reason names.
func (m *moment) unknownAmong(g namedGrant) (missing []string) {
	if m.view.Certain() {
		return nil
	}
	binding, role := g.keys()
	for _, k := range [...]rbacindex.Key{binding, role} {
		if m.view.IsUnknown(k) {
			missing = append(missing, unknownName(k))
		}
	}
	return missing
}

// unknownName words an unknown key: an object, the unnamed objects of a namespace, or all
// of a kind.
func unknownName(k rbacindex.Key) string {
	switch {
	case k.Name != "":
		return keyName(k)
	case k.Namespace != "":
		return k.Kind.String() + "s in " + k.Namespace
	}
	return "all " + k.Kind.String() + "s"
}

// changes names what makes a view in a window differ from the one before it.
func changes(view *state.View) string {
	text := ""
	for i, c := range view.Changed {
		switch {
		case i == 3:
			return text + " and more"
		case i > 0:
			text += ", "
		}
		text += c.String()
	}
	return text
}
