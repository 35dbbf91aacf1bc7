// Package forget takes the contents out of stored observations of policy, of which a store keeps so many
// bytes (docs/adr/0076). A State that reads what is left knows that it does not know the rest.
package forget

import (
	"encoding/json"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/replay/state/observe"
)

// maxForgotten bounds an observation whose object is an outline. Larger ones have no object at all.
const maxForgotten = 2 << 10

// outline is what stays of a role or binding, or of a patch of one, whose rules or subjects are forgotten: the role that a binding names
// for life, and that there was more, as of one that was cut out of its event. Forgotten tells it from bodies that were recorded so.
type outline struct {
	APIVersion string          `json:"apiVersion,omitempty"`
	Kind       string          `json:"kind,omitempty"`
	RoleRef    *rbacv1.RoleRef `json:"roleRef,omitempty"`
	Cut        bool            `json:"cut"`
	Forgotten  bool            `json:"forgotten"`
}

// Content returns an encoded observation of an object without what it says the object held. That the object was written then, and its
// version, stays: a State that is told so knows that it does not know the content. Of a write that may not have been done, and of a patch,
// an outline stays, so that it concerns no more than the object could decide; of what a read showed, that the object was there.
func Content(observation []byte) ([]byte, error) {
	o, err := observe.Decode(observation)
	switch {
	case err != nil:
		return nil, err
	case o.Object == nil:
		return o.Append(nil), nil
	case o.Source == observe.SourceRead:
		o.ResourceVersion, o.UID, o.Unchanged = "", "", true
	case !o.Deleted && (o.Unknown || o.Patch):
		full := o
		if o.Object = outlineOf(o.Object); o.Object != nil {
			if forgotten := o.Append(nil); len(forgotten) <= maxForgotten {
				return forgotten, nil
			}
		}
		o = full
		o.Patch = true
	case !o.Unchanged && !o.Deleted:
		o.Unknown = true
	}
	o.Object = nil
	return o.Append(nil), nil
}

// outlineOf returns the outline of a body, nil where it cannot be read.
func outlineOf(body []byte) []byte {
	var out outline
	if len(body) > 0 && body[0] == '{' {
		if json.Unmarshal(body, &out) != nil {
			return nil
		}
	}
	out.Cut, out.Forgotten = true, true
	raw, err := json.Marshal(&out)
	if err != nil {
		return nil
	}
	return raw
}
