package implied

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// websocket derives create on a pod's connection that was asked for by GET: the way of
// websockets. Asked for by POST it was authorized as create already.
func (d *derivation) websocket() {
	if d.a.Resource != "pods" || d.a.APIGroup != "" {
		return
	}
	switch d.a.Subresource {
	case "exec", "attach", "portforward":
	default:
		return
	}
	on, perhaps := d.feature("AuthorizePodWebsocketUpgradeCreatePermission", "1.35")
	if !on {
		return
	}
	c := Check{Name: verdict.CheckWebsocket, Attributes: *d.a, Perhaps: perhaps}
	c.Attributes.Verb = request.VerbCreate
	d.add(c)
}

// annotationUnsafe is written when a delete is to ignore read errors and the feature is on.
const annotationUnsafe = "apiserver.k8s.io/unsafe-delete-ignore-read-error"

// unsafeDelete derives the right to delete what cannot be read.
func (d *derivation) unsafeDelete() {
	const option = "ignoreStoreReadErrorWithClusterBreakingPotential"
	if !bytes.Contains(d.e.RequestObject, []byte(option)) && !strings.Contains(d.e.RequestURI, option) {
		return
	}
	if d.a.Subresource != "" {
		return // refused for its form
	}
	var o struct {
		Ignore bool `json:"ignoreStoreReadErrorWithClusterBreakingPotential"`
	}
	if len(d.e.RequestObject) > 0 {
		if json.Unmarshal(d.e.RequestObject, &o) != nil || !o.Ignore {
			return
		}
	} else if u, err := url.ParseRequestURI(d.e.RequestURI); err != nil || !truth(u.Query()[option]) {
		return
	}
	c := Check{Name: verdict.CheckUnsafeDelete, Attributes: *d.a}
	c.Attributes.Verb = "unsafe-delete-ignore-read-errors"
	if _, on := d.e.Annotations.Get(annotationUnsafe); !on {
		if d.cfg != nil && !d.cfg.Enabled("AllowUnsafeMalformedObjectDeletion") {
			return
		}
		if d.cfg == nil {
			c.Perhaps = "without the feature AllowUnsafeMalformedObjectDeletion the option is ignored"
		}
	}
	d.add(c)
}

// truth reads a parameter as the apiserver reads a boolean: anything but "0" and "false" is true,
// being there without a value too.
func truth(values []string) bool {
	return len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// audience derives the right of a node to a token for an audience that its pod does not mount.
// Which it mounts is not known.
func (d *derivation) audience() {
	u := d.e.EffectiveUser()
	if d.a.Verb != request.VerbCreate || len(d.e.RequestObject) == 0 || !strings.HasPrefix(u.Username, authn.PrefixNode) ||
		!slices.Contains(u.Groups, authn.GroupNodes) {
		return
	}
	if on, _ := d.feature("ServiceAccountNodeAudienceRestriction", "1.32"); !on {
		return
	}
	var o struct {
		Spec struct {
			Audiences []string `json:"audiences"`
		} `json:"spec"`
	}
	if json.Unmarshal(d.e.RequestObject, &o) != nil || len(o.Spec.Audiences) > 1 {
		return // refused for its form
	}
	c := Check{Name: verdict.CheckTokenAudience, Perhaps: "an audience that the pod mounts needs no such right",
		Attributes: verdict.Attributes{
			Verb: "request-serviceaccounts-token-audience", ResourceRequest: true, APIVersion: "v1", Namespace: d.a.Namespace,
			Name: d.a.Name,
		}}
	if len(o.Spec.Audiences) == 1 {
		c.Attributes.Resource = o.Spec.Audiences[0]
	}
	d.add(c)
}
