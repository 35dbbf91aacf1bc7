package implied

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// pluginOwners is the admission plugin that asks about owner references; it is off by default.
const pluginOwners = "OwnerReferencesPermissionEnforcement"

// owners derives what changing owner references takes where the plugin is on: delete on the
// object, and for references that newly block deletion update on the owner's finalizers. Bodies
// that show no owner references imply nothing here: whether one took them away cannot be told.
func (d *derivation) owners() {
	admission := &d.cfg.Admission
	if !slices.Contains(admission.Enabled, pluginOwners) || slices.Contains(admission.Disabled, pluginOwners) ||
		d.a.Subresource == "status" && d.a.Resource == "pods" && d.a.APIGroup == "" {
		return
	}
	var o struct {
		Metadata struct {
			OwnerReferences []struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Name       string `json:"name"`
				Block      bool   `json:"blockOwnerDeletion"`
			} `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if len(d.e.RequestObject) == 0 || json.Unmarshal(d.e.RequestObject, &o) != nil || len(o.Metadata.OwnerReferences) == 0 {
		return
	}
	perhaps := ""
	if d.a.Verb != request.VerbCreate {
		perhaps = onlyChanged
		c := Check{Name: verdict.CheckOwnerDelete, Perhaps: perhaps, Attributes: *d.a}
		c.Attributes.Verb = request.VerbDelete
		d.add(c)
	}
	anything := verdict.Attributes{Verb: request.VerbUpdate, ResourceRequest: true, APIGroup: "*", APIVersion: "*",
		Resource: "*", Subresource: "finalizers", Name: "*"}
	for _, ref := range o.Metadata.OwnerReferences {
		if !ref.Block {
			continue
		}
		c := Check{Name: verdict.CheckOwnerFinalizers, Perhaps: perhaps, Attributes: anything}
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		resource, namespaced, ok := "", false, false
		if err == nil {
			resource, namespaced, ok = builtIn(gv, ref.Kind)
		}
		if !ok {
			c.Open = []string{"the resource of kind " + ref.Kind + " in " + ref.APIVersion}
		} else {
			own := verdict.Attributes{Verb: request.VerbUpdate, ResourceRequest: true, APIGroup: gv.Group, APIVersion: gv.Version,
				Resource: resource, Subresource: "finalizers", Name: ref.Name}
			if namespaced {
				own.Namespace = d.a.Namespace
			}
			c.Attributes, c.Or = own, []verdict.Attributes{anything}
		}
		d.add(c)
	}
}
