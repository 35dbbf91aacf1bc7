package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// head is the part of an object's metadata that is read.
type head struct {
	Metadata struct {
		Name              string    `json:"name"`
		Namespace         string    `json:"namespace,omitempty"`
		UID               string    `json:"uid"`
		ResourceVersion   string    `json:"resourceVersion"`
		CreationTimestamp time.Time `json:"creationTimestamp"`
		// DeletionTimestamp and the managed fields' times are not part of a bare object.
		DeletionTimestamp *time.Time `json:"deletionTimestamp,omitempty"`
		ManagedFields     []struct {
			Time *time.Time `json:"time"`
		} `json:"managedFields,omitempty"`
	} `json:"metadata"`
}

func headOf(raw []byte) (head, error) {
	var h head
	if err := json.Unmarshal(raw, &h); err != nil {
		return head{}, fmt.Errorf("%w: object: %w", errMalformed, err)
	}
	if h.Metadata.Name == "" || h.Metadata.ResourceVersion == "" {
		return head{}, fmt.Errorf("%w: object without name or resourceVersion", errMalformed)
	}
	return h, nil
}

// since returns the lower bound of the object's last write, from the floor and the apiserver's times in it. owned: no client can set it.
//
// Times in managed fields are the apiserver's unless a client sent others: future ones are ignored, and no later floor rests on them.
func (h *head) since(added bool, floor, now time.Time) (at time.Time, owned bool) {
	if created := h.Metadata.CreationTimestamp; added && !created.IsZero() {
		return created, true
	}
	at, owned = floor, true
	if d := h.Metadata.DeletionTimestamp; d != nil && d.After(at) && !d.After(now) {
		at = *d
	}
	for _, m := range h.Metadata.ManagedFields {
		if m.Time != nil && m.Time.After(at) && !m.Time.After(now) {
			at, owned = *m.Time, false
		}
	}
	return at, owned
}

// bare returns the object without its content.
func (h *head) bare(k Kind) ([]byte, error) {
	b := *h
	b.Metadata.DeletionTimestamp, b.Metadata.ManagedFields = nil, nil
	return json.Marshal(struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		head
	}{k.Kind, k.APIVersion, b})
}

// kindPartial is the kind of objects of which only the metadata was requested.
const kindPartial = "PartialObjectMetadata"

// whole returns a PartialObjectMetadata under its own kind.
func (k Kind) whole(item []byte) ([]byte, error) {
	var partial struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(item, &partial); err != nil {
		return nil, fmt.Errorf("%w: metadata of an object: %w", errMalformed, err)
	}
	return json.Marshal(struct {
		Kind       string          `json:"kind"`
		APIVersion string          `json:"apiVersion"`
		Metadata   json.RawMessage `json:"metadata"`
	}{k.Kind, k.APIVersion, partial.Metadata})
}

// named returns the item of a list with the kind and apiVersion that items lack.
func (k Kind) named(item []byte) ([]byte, error) {
	item = bytes.TrimSpace(item)
	if len(item) < 2 || item[0] != '{' {
		return nil, fmt.Errorf("%w: list item is not an object", errMalformed)
	}
	var own struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(item, &own); err != nil {
		return nil, fmt.Errorf("%w: list item: %w", errMalformed, err)
	}
	switch own.Kind {
	case kindPartial:
		return k.whole(item)
	case "":
	default:
		return item, nil
	}
	out := make([]byte, 0, len(item)+len(k.Kind)+len(k.APIVersion)+32)
	out = fmt.Appendf(out, `{"kind":"%s","apiVersion":"%s"`, k.Kind, k.APIVersion)
	if rest := bytes.TrimSpace(item[1:]); rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, item[1:]...), nil
}
