package replay

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// binds notes which roles the binding that the request writes gives. A binding names its role for
// life, and its patches do not; nor does an event that was recorded without its bodies.
func (t *trial) binds() {
	a := &t.v.Attributes
	key := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: a.Name}
	switch {
	case a.APIGroup != rbacv1.GroupName || a.Subresource != "" || !a.ResourceRequest:
		return
	case a.Resource == "rolebindings":
		key.Kind, key.Namespace = rbacindex.KindRoleBinding, a.Namespace
	case a.Resource != "clusterrolebindings":
		return
	}
	open := false
	switch a.Verb {
	case request.VerbCreate:
		open = len(t.e.RequestObject) == 0
	case request.VerbUpdate, request.VerbPatch:
		if open = t.base.View == nil; open {
			break
		}
		var refs []rbacindex.Key
		refs, open = t.base.View.RolesOf(key)
		for _, ref := range refs {
			t.v.Binds = append(t.v.Binds, ref.String())
		}
	}
	if open {
		t.v.Binds = append(t.v.Binds, verdict.BindsAny)
	}
}
