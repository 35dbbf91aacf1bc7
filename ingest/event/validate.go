package event

import (
	"errors"
	"fmt"
)

// ErrNotEvent is wrapped by the errors of [Event.Validate].
var ErrNotEvent = errors.New("not an audit event")

// Validate returns an error for an object that lacks what makes an audit event: an auditID and a
// stage, which every version of the API has and every apiserver writes. Items of a list may omit
// kind and apiVersion, so any JSON object decodes into an event, if an empty one.
func (e *Event) Validate() error {
	lacks := "auditID"
	switch {
	case e.AuditID == "":
	case e.Stage == "":
		lacks = "stage"
	default:
		return nil
	}
	return fmt.Errorf("%w: it has no %s (want a JSON object of kind %s, apiVersion %s, with auditID and stage)",
		ErrNotEvent, lacks, Kind, APIVersion)
}

// DecodeValid decodes what must be an event and nothing else: [Decode] and [Event.Validate].
func DecodeValid(raw []byte) (*Event, error) {
	e, err := Decode(raw)
	if err == nil {
		err = e.Validate()
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}
