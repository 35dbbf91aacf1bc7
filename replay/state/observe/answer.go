package observe

import (
	"encoding/json"

	"github.com/retrial-io/retrial/replay/state/kept"
)

// Kinds that an apiserver may answer with instead of the object's own, if the client asks by its Accept header, as Kubernetes' garbage
// collector does.
const (
	kindTable   = "Table"
	kindPartial = "PartialObjectMetadata"
	kindStatus  = "Status"
)

// answer is the apiserver's answer to a write of one object. The zero answer says nothing about the object.
type answer struct {
	head kept.Head
	raw  []byte // the object; nil when only its metadata was answered, or nothing
	read []byte // what is read of it
	// partial says that head holds the object's metadata and nothing else.
	partial bool
	ended   string // the uid of the object that a Status says was deleted
}

// tells reports whether the answer is about the object.
func (a *answer) tells() bool { return a.raw != nil || a.partial }

// answer reads a body the apiserver answered with: an object, a Table with one row, the metadata
// alone, or a Status. Anything else says nothing.
func (w *write) answer(body []byte) (answer, error) {
	if len(body) == 0 {
		return answer{}, nil
	}
	read := w.read(body)
	h, err := kept.ReadHead(read)
	if err != nil {
		return answer{}, err
	}
	switch h.Kind {
	case kindTable:
		var table struct {
			Rows []struct {
				Object json.RawMessage `json:"object"`
			} `json:"rows"`
		}
		if err := json.Unmarshal(body, &table); err != nil {
			return answer{}, err
		}
		if len(table.Rows) != 1 || len(table.Rows[0].Object) == 0 {
			return answer{}, nil
		}
		body = table.Rows[0].Object
		read = w.read(body)
		if h, err = kept.ReadHead(read); err != nil {
			return answer{}, err
		}
	case kindStatus, "": // the status of an event has no kind
		var s statusObject
		if err := json.Unmarshal(read, &s); err != nil {
			return answer{}, err
		}
		if s.Status == "Success" {
			return answer{ended: s.Details.UID}, nil
		}
		return answer{}, nil
	}
	if h.Metadata.Name == "" || h.Metadata.UID == "" {
		return answer{}, nil
	}
	switch {
	case h.Kind == kindPartial:
		return answer{head: h, partial: true}, nil
	case kept.ResourceOfKind(h.Group(), h.Kind) == w.target.res:
		return answer{head: h, raw: body, read: read}, nil
	}
	return answer{}, nil
}

// observe returns an observation of the object an answer is about.
func (w *write) observe(a *answer) Observation {
	o := w.base
	o.Name, o.UID = a.head.Metadata.Name, a.head.Metadata.UID
	if w.target.res.Namespaced() && a.head.Metadata.Namespace != "" {
		o.Namespace = a.head.Metadata.Namespace
	}
	return o
}

// metadata returns the stored form of an object of which only the metadata is known.
func (w *write) metadata(m *kept.Meta) ([]byte, error) {
	if w.target.res.Reduces() {
		return kept.Encode(&kept.Head{Kind: w.target.res.ObjectKind(), Metadata: *m}, &kept.Facts{Bare: true})
	}
	return json.Marshal(struct {
		Metadata kept.Meta `json:"metadata"`
	}{kept.Meta{CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, GracePeriod: m.GracePeriod,
		Finalizers: m.Finalizers}})
}
