package observe

import (
	"encoding/json"

	"github.com/retrial-io/retrial/ingest/event"
)

// Apiservers is no resource of Kubernetes: the versions apiservers had, as their own requests
// show ([event.Sighting]).
const Apiservers = "apiservers"

// ServerName returns the name of the observations of an apiserver, which events carry as their
// Server; "" is where that says nothing.
func ServerName(server string) string {
	if server == "" {
		return "kube-apiserver"
	}
	return "kube-apiserver/" + server
}

// Sighted is what is stored of a sighting.
type Sighted struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Minor   int    `json:"minor"`
}

// sighting returns what a request of an apiserver itself says of its version. Its time is that
// of the span in which it says the same as every other.
func sighting(e *event.Event) (Observation, bool) {
	version, minor, ok := event.Sighting(e)
	if !ok {
		return Observation{}, false
	}
	object, err := json.Marshal(Sighted{Kind: "APIServer", Version: version, Minor: minor})
	if err != nil {
		return Observation{}, false
	}
	from := e.RequestReceivedTimestamp.Truncate(event.SightingEvery)
	return Observation{
		Source: SourceAudit, Resource: Apiservers, Name: ServerName(e.Server), Object: object,
		NotBefore: from, NotAfter: from.Add(event.SightingEvery),
	}, true
}
