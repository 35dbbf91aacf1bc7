package implied

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// claimStatus is what of a resource claim's status is authorized apart.
type claimStatus struct {
	Allocation  json.RawMessage `json:"allocation"`
	ReservedFor json.RawMessage `json:"reservedFor"`
	Devices     []struct {
		Driver string `json:"driver"`
	} `json:"devices"`
}

// claim derives what writing a resource claim's status takes: binding for allocation and
// reservation, and for each driver whose devices change a verb that says on which node.
func (d *derivation) claim() {
	on, perhaps := d.feature("DRAResourceClaimGranularStatusAuthorization", "1.36")
	if !on || d.a.Verb == request.VerbCreate {
		return
	}
	perhaps = cmp.Or(perhaps, onlyChanged)
	var o struct {
		Status claimStatus `json:"status"`
	}
	body := d.e.RequestObject
	if len(body) == 0 {
		d.add(Check{Name: verdict.CheckClaimBinding, Perhaps: perhaps, Open: []string{d.lacksBody()}})
		return
	}
	patch := d.a.Verb == request.VerbPatch
	if json.Unmarshal(body, &o) != nil {
		if p, ok := d.patched(); ok && p.touches("status") {
			d.add(Check{Name: verdict.CheckClaimBinding, Perhaps: perhaps, Open: []string{"what the patch makes of the claim's status"}})
		}
		return
	}
	if len(o.Status.Allocation) > 0 || len(o.Status.ReservedFor) > 0 {
		c := Check{Name: verdict.CheckClaimBinding, Perhaps: perhaps, Attributes: *d.a}
		c.Attributes.Subresource, c.Attributes.Namespace, c.Attributes.Name = "binding", "", ""
		d.add(c)
	}
	if !patch && (len(o.Status.Allocation) == 0 || string(o.Status.Allocation) == "null") {
		return // devices of a claim that is not allocated are dropped
	}
	near := d.near(o.Status.Allocation)
	var seen []string
	for _, device := range o.Status.Devices {
		if slices.Contains(seen, device.Driver) {
			continue
		}
		seen = append(seen, device.Driver)
		c := Check{Name: verdict.CheckClaimDriver, Perhaps: perhaps, Attributes: *d.a}
		c.Attributes.Subresource, c.Attributes.Name = "driver", device.Driver
		c.Attributes.Verb = "arbitrary-node:" + d.a.Verb
		if near {
			c.Or = []verdict.Attributes{c.Attributes}
			c.Attributes.Verb = "associated-node:" + d.a.Verb
		}
		d.add(c)
	}
}

// near reports whether the user is a service account that runs on the node the claim is allocated
// for. Of a patch without the allocation it is taken to be: that only adds a way to pass.
func (d *derivation) near(allocation json.RawMessage) bool {
	u := d.e.EffectiveUser()
	node := u.Extra.Get(event.ExtraNodeName)
	if _, _, ok := authn.ServiceAccountUsername(u.Username); !ok || len(node) != 1 {
		return false
	}
	if len(allocation) == 0 {
		return true
	}
	var o struct {
		NodeSelector struct {
			Terms []struct {
				Expressions []json.RawMessage `json:"matchExpressions"`
				Fields      []struct {
					Key      string   `json:"key"`
					Operator string   `json:"operator"`
					Values   []string `json:"values"`
				} `json:"matchFields"`
			} `json:"nodeSelectorTerms"`
		} `json:"nodeSelector"`
	}
	if json.Unmarshal(allocation, &o) != nil || len(o.NodeSelector.Terms) != 1 {
		return false
	}
	term := o.NodeSelector.Terms[0]
	if len(term.Expressions) != 0 || len(term.Fields) != 1 {
		return false
	}
	f := term.Fields[0]
	return f.Key == "metadata.name" && f.Operator == "In" && len(f.Values) == 1 && f.Values[0] == node[0]
}
