package authn

import (
	"github.com/retrial-io/retrial/ingest/event"
)

// Presented is what an event says of the credential that its user came with.
type Presented struct {
	ID          string // the credential as contradictions and lineages name it, "" for none
	Token       bool   // a token with an id of its own
	Certificate bool
	Pod, PodUID string // what the token is bound to
	Node        string
	Kubelet     bool // the user is a node's kubelet, by name and group
}

// PresentedBy returns what an event says of the credential that its user came with. It allocates only where the ID has to be composed.
func PresentedBy(e *event.Event) Presented {
	x := subjectOf(e, nil, 0, 0)
	return Presented{
		ID: x.credential(), Token: x.jti, Certificate: x.fingerprint,
		Pod: x.podName, PodUID: x.podUID, Node: x.nodeName, Kubelet: x.kind == kindNode && x.nodes,
	}
}
