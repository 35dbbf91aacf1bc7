package authz

import (
	"slices"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/reason"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
)

// maxMissing bounds the objects one verdict names as missing.
const maxMissing = 8

// names are the objects that a verdict names as missing, each once.
type names []string

// add adds one, or says that there are more.
func (n *names) add(what string) {
	switch {
	case len(*n) > maxMissing || slices.Contains(*n, what):
	case len(*n) == maxMissing:
		*n = append(*n, "and more")
	default:
		*n = append(*n, what)
	}
}

// doubted adds the object that a key of View.Most is of, if it is in doubt.
func (n *names) doubted(view *state.View, k rbacindex.Key) {
	if object, ok := view.InDoubt(k); ok {
		n.add(DoubtedName(view, object))
	}
}

// couldAllow names the unknown objects that could allow a request which the known ones do
// not, nil if there are none and the refusal is certain. res is the answer of the known
// ones.
//
// A binding nobody has seen could name anybody; a RoleBinding only in its own namespace. A
// role nobody has seen matters only to those a known binding gives it to.
func couldAllow(view *state.View, request *rbacindex.Attributes, res *rbacindex.Result) []string {
	if view.Certain() {
		return nil
	}
	var missing names
	for _, k := range res.Missing {
		if view.IsUnknown(k) && !view.IsDoubted(k) {
			missing.add(UnknownName(k))
		}
	}
	if view.Most != nil {
		anybody := *request
		anybody.Groups = append(slices.Clip(request.Groups), content.GroupAnybody)
		perhaps := view.Most.Authorize(&anybody, nil)
		if perhaps.TooCostly {
			for _, k := range view.Doubted {
				missing.add(DoubtedName(view, k))
			}
		}
		for i := range perhaps.Grants {
			for _, k := range [...]rbacindex.Key{perhaps.Grants[i].BindingKey(), perhaps.Grants[i].RoleKey()} {
				missing.doubted(view, k)
			}
		}
	}
	for _, kind := range view.UnknownKinds {
		if kind == rbacindex.KindClusterRoleBinding || (kind == rbacindex.KindRoleBinding && request.Namespace != "") {
			missing.add(UnknownName(rbacindex.Key{Kind: kind}))
		}
	}
	for _, k := range view.Unknown {
		switch k.Kind {
		case rbacindex.KindClusterRoleBinding:
			missing.add(UnknownName(k))
		case rbacindex.KindRoleBinding:
			if request.Namespace != "" && (k.Namespace == request.Namespace || k.Namespace == "") {
				missing.add(UnknownName(k))
			}
		}
	}
	return missing
}

// UnknownName words an unknown key: an object, the unnamed objects of a namespace, or all
// of a kind.
func UnknownName(k rbacindex.Key) string {
	switch {
	case k.Name != "":
		return reason.ObjectName(k)
	case k.Namespace != "":
		return k.Kind.String() + "s in " + k.Namespace
	}
	return "all " + k.Kind.String() + "s"
}

// DoubtedName words an object that a view doubts: a write of it may have been done, or it holds more
// than was recorded.
func DoubtedName(view *state.View, k rbacindex.Key) string {
	why := state.LostAnswer
	if view.IsPart(k) {
		why = state.PartRecorded
	}
	return reason.ObjectName(k) + " (" + why + ")"
}
