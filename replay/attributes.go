package replay

import (
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// objectRefContradicts reports whether the recorded objectRef names something else than
// the URI. Fields the URI leaves empty are completed from the body and prove nothing.
func objectRefContradicts(ref *event.ObjectRef, a *verdict.Attributes) bool {
	if ref == nil || !a.ResourceRequest {
		return false
	}
	differs := func(uri, ref string) bool { return uri != "" && uri != ref }
	return differs(a.Resource, ref.Resource) || differs(a.Subresource, ref.Subresource) || differs(a.Namespace, ref.Namespace) ||
		differs(a.Name, ref.Name) || differs(a.APIGroup, ref.APIGroup) || differs(a.APIVersion, ref.APIVersion)
}
