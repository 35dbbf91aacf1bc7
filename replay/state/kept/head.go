package kept

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// Meta is the part of an object's metadata the store works with.
type Meta struct {
	Name              string   `json:"name,omitempty"`
	GenerateName      string   `json:"generateName,omitempty"`
	Namespace         string   `json:"namespace,omitempty"`
	UID               string   `json:"uid,omitempty"`
	ResourceVersion   string   `json:"resourceVersion,omitempty"`
	CreationTimestamp string   `json:"creationTimestamp,omitempty"`
	DeletionTimestamp string   `json:"deletionTimestamp,omitempty"`
	GracePeriod       *int64   `json:"deletionGracePeriodSeconds,omitempty"`
	Finalizers        []string `json:"finalizers,omitempty"`
}

// Created returns the creation time, which the apiserver cuts to whole seconds, zero without one.
func (m *Meta) Created() time.Time {
	t, err := time.Parse(time.RFC3339, m.CreationTimestamp)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Deletion returns the deletionTimestamp, zero without one.
func (m *Meta) Deletion() time.Time {
	t, err := time.Parse(time.RFC3339, m.DeletionTimestamp)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Head is what must be read of any object before its kind matters.
type Head struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   Meta   `json:"metadata"`
	Spec       struct {
		Finalizers []string `json:"finalizers"`
	} `json:"spec"`
}

// Group returns the API group of the object's apiVersion.
func (h *Head) Group() string {
	if i := strings.IndexByte(h.APIVersion, '/'); i >= 0 {
		return h.APIVersion[:i]
	}
	return ""
}

// Gone reports whether a write that left the object in this form ended it: deletion had been requested and nothing holds it back, so the
// storage layer removes it instead of writing it.
func (h *Head) Gone(res Resource) bool {
	m := &h.Metadata
	if m.DeletionTimestamp == "" || len(m.Finalizers) > 0 || (m.GracePeriod != nil && *m.GracePeriod > 0) {
		return false
	}
	return res != ResNamespace || len(h.Spec.Finalizers) == 0
}

// Members of objects, as readPlainly and readTimes know them.
var (
	headMembers = []string{"metadata", "spec", "kind", "apiVersion"}
	specMembers = []string{"finalizers"}
	metaMembers = []string{"creationTimestamp", "deletionTimestamp", "name", "namespace", "uid", "resourceVersion", "generateName",
		"finalizers",
		"deletionGracePeriodSeconds"}
)

// ReadTimesAlone reads the metadata of an object, and skips the rest.
func ReadTimesAlone(p *jsontext.Plain, m *Meta) bool {
	var ignored []string
	return p.Object(headMembers, func(i int) bool {
		switch i {
		case 0:
			return ReadTimes(p, m)
		case 1:
			return p.Object(specMembers, func(int) bool { return p.Texts(&ignored) })
		}
		_, ok := p.Bytes()
		return ok
	}) && p.Done()
}

// readPlainly reads the members that all kinds share.
func (h *Head) readPlainly(p *jsontext.Plain) bool {
	return p.Object(headMembers, func(i int) bool {
		switch i {
		case 0:
			return h.Metadata.readPlainly(p)
		case 1:
			return p.Object(specMembers, func(int) bool { return p.Texts(&h.Spec.Finalizers) })
		case 2:
			return p.Text(&h.Kind)
		}
		return p.Text(&h.APIVersion)
	}) && p.Done()
}

// readPlainly reads all of the metadata.
func (m *Meta) readPlainly(p *jsontext.Plain) bool {
	texts := [...]*string{&m.CreationTimestamp, &m.DeletionTimestamp, &m.Name, &m.Namespace, &m.UID, &m.ResourceVersion, &m.GenerateName}
	return p.Object(metaMembers, func(i int) bool {
		switch {
		case i < len(texts):
			return p.Text(texts[i])
		case i == len(texts):
			return p.Texts(&m.Finalizers)
		}
		m.GracePeriod = new(int64)
		return p.Integer(m.GracePeriod)
	})
}

// ReadHead reads the head of an object.
func ReadHead(raw []byte) (h Head, err error) {
	if p := jsontext.NewPlain(raw); h.readPlainly(&p) {
		return h, nil
	}
	h = Head{}
	err = json.Unmarshal(raw, &h)
	return h, err
}

// ReadTimes reads the times, and checks the types of the rest.
func ReadTimes(p *jsontext.Plain, m *Meta) bool {
	return p.Object(metaMembers, func(i int) bool {
		switch i {
		case 0, 1:
			s, ok := p.Bytes()
			if i == 0 {
				m.CreationTimestamp = string(s)
			} else {
				m.DeletionTimestamp = string(s)
			}
			return ok
		case 7, 8:
			return false // being deleted: rare
		}
		_, ok := p.Bytes()
		return ok
	})
}
