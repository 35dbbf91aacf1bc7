package observe

import (
	"github.com/retrial-io/retrial/ingest/event"
)

// shown translates a request that found a role or binding: to what it holds, if the answer was recorded, else to its existence.
func shown(e *event.Event) ([]Observation, error) {
	t, ok := parseTarget(e.RequestURI)
	if !ok {
		return nil, nil
	}
	w := write{event: e, target: t, base: Observation{
		Source: SourceRead, Resource: t.res.String(), Namespace: t.namespace, Name: t.name,
		NotBefore: e.RequestReceivedTimestamp, NotAfter: e.StageTimestamp,
	}}
	there := w.base
	there.Unchanged = true
	if there.Name == "" {
		there.Name = e.ObjectRef.Name
	}
	if e.Verb != "get" {
		return []Observation{there}, nil
	}
	a, err := w.answer(e.ResponseObject)
	if err != nil || a.raw == nil || a.head.Metadata.ResourceVersion == "" {
		return []Observation{there}, err
	}
	o := w.observe(&a)
	o.ResourceVersion, o.Object = a.head.Metadata.ResourceVersion, a.raw
	return []Observation{o, there}, nil
}
