package observe

import (
	"encoding/json"

	"github.com/retrial-io/retrial/ingest/event"
)

// Apiservers is not a resource of Kubernetes: the versions apiservers had, as their own requests show ([event.Sighting]).
const Apiservers = "apiservers"

// ServerName returns the name under which an apiserver is observed; server is as events carry it, "" if they do not say.
func ServerName(server string) string {
	if server == "" {
		return "kube-apiserver"
	}
	return "kube-apiserver/" + server
}

// Sighted is the stored form of a sighting.
type Sighted struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Minor   int    `json:"minor"`
}

// sighting returns what a request of an apiserver itself says of its version. Its time is the span in which all such requests say the same.
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
