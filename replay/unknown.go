package replay

import (
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/reason"
	"github.com/retrial-io/retrial/replay/state"
)

// unknownAmong names what is not known of the binding and the role a recorded reason names.
func unknownAmong(view *state.View, g reason.Named) (missing []string) {
	if view.Certain() {
		return nil
	}
	binding, role := g.Keys()
	for _, k := range [...]rbacindex.Key{binding, role} {
		switch {
		case view.IsDoubted(k):
			missing = append(missing, authz.DoubtedName(view, k))
		case view.IsUnknown(k):
			missing = append(missing, authz.UnknownName(k))
		}
	}
	return missing
}
