package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// observationVersion is the version of the observation encoding. A reader accepts this and
// every earlier one.
const observationVersion = 1

// ErrObservationVersion is returned for an observation written by a newer release.
var ErrObservationVersion = errors.New("unknown observation version")

// observationJSON is the stored form of an Observation.
type observationJSON struct {
	Version         int             `json:"v"`
	Source          string          `json:"source"`
	Resource        string          `json:"resource"`
	Namespace       string          `json:"namespace,omitempty"`
	Name            string          `json:"name,omitempty"`
	UID             string          `json:"uid,omitempty"`
	ResourceVersion string          `json:"resourceVersion,omitempty"`
	Deleted         bool            `json:"deleted,omitempty"`
	Unknown         bool            `json:"unknown,omitempty"`
	AllOf           bool            `json:"allOf,omitempty"`
	Complete        bool            `json:"complete,omitempty"`
	NotBefore       *time.Time      `json:"notBefore,omitempty"`
	NotAfter        *time.Time      `json:"notAfter,omitempty"`
	Since           *time.Time      `json:"since,omitempty"`
	Object          json.RawMessage `json:"object,omitempty"`
}

// at makes place for one of the times: not before, not after, since.
func (j *observationJSON) at(i int) *time.Time {
	t := new(time.Time)
	*[]**time.Time{&j.NotBefore, &j.NotAfter, &j.Since}[i] = t
	return t
}

// Append appends the observation's JSON encoding to dst. The encoding carries its version;
// equal observations have equal encodings. An Object that is not valid JSON cannot be
// stored and is written as unknown content.
func (o Observation) Append(dst []byte) []byte {
	j := observationJSON{
		Version: observationVersion, Source: o.Source.String(), Resource: o.Resource,
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		Deleted: o.Deleted, Unknown: o.Unknown, AllOf: o.AllOf, Complete: o.Complete, Object: o.Object,
		NotBefore: stored(o.NotBefore), NotAfter: stored(o.NotAfter), Since: stored(o.Since),
	}
	b, err := json.Marshal(j)
	if err != nil {
		j.Object, j.Unknown = nil, true
		if b, err = json.Marshal(j); err != nil {
			// Only a year outside [0,9999] is left to fail.
			j.NotBefore, j.NotAfter, j.Since = nil, nil, nil
			b, _ = json.Marshal(j)
		}
	}
	return append(dst, b...)
}

// stored returns a time as it is written, nil when it is zero.
func stored(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// DecodeObservation decodes what Append wrote. The result does not alias b.
func DecodeObservation(b []byte) (Observation, error) {
	var j observationJSON
	if q := (quick{b: b}); q.observation(&j) {
		j.Object = bytes.Clone(j.Object)
	} else {
		j = observationJSON{}
		if err := json.Unmarshal(b, &j); err != nil {
			return Observation{}, fmt.Errorf("decode observation: %w", err)
		}
	}
	if j.Version < 1 || j.Version > observationVersion {
		return Observation{}, fmt.Errorf("decode observation: version %d: %w", j.Version, ErrObservationVersion)
	}
	o := Observation{
		Resource: j.Resource, Namespace: j.Namespace, Name: j.Name, UID: j.UID,
		ResourceVersion: j.ResourceVersion, Deleted: j.Deleted, Unknown: j.Unknown,
		AllOf: j.AllOf, Complete: j.Complete, Object: j.Object,
	}
	switch j.Source {
	case "snapshot":
		o.Source = SourceSnapshot
	case "audit":
		o.Source = SourceAudit
	case "watch":
		o.Source = SourceWatch
	default:
		return Observation{}, fmt.Errorf("decode observation of %s: unknown source %q", j.Resource, j.Source)
	}
	for _, t := range []struct {
		from *time.Time
		to   *time.Time
	}{{j.NotBefore, &o.NotBefore}, {j.NotAfter, &o.NotAfter}, {j.Since, &o.Since}} {
		if t.from != nil {
			*t.to = t.from.UTC()
		}
	}
	return o, nil
}
