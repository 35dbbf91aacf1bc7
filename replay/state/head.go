package state

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// meta is the part of an object's metadata the store works with.
type meta struct {
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

// created returns the creation time, which the apiserver cuts to whole seconds, or the
// zero time when there is none.
func (m *meta) created() time.Time {
	t, err := time.Parse(time.RFC3339, m.CreationTimestamp)
	if err != nil {
		return time.Time{}
	}
	return t
}

// deletion returns the deletionTimestamp, or the zero time when there is none.
func (m *meta) deletion() time.Time {
	t, err := time.Parse(time.RFC3339, m.DeletionTimestamp)
	if err != nil {
		return time.Time{}
	}
	return t
}

// head is what must be read of any object before its kind matters.
type head struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   meta   `json:"metadata"`
	Spec       struct {
		Finalizers []string `json:"finalizers"`
	} `json:"spec"`
}

// group returns the API group of the object's apiVersion.
func (h *head) group() string {
	if i := strings.IndexByte(h.APIVersion, '/'); i >= 0 {
		return h.APIVersion[:i]
	}
	return ""
}

// gone tells whether a write that left the object in this form ended it: deletion had
// been asked for and nothing holds it back any more, so the storage layer removes it
// instead of writing it.
func (h *head) gone(res resource) bool {
	m := &h.Metadata
	if m.DeletionTimestamp == "" || len(m.Finalizers) > 0 || (m.GracePeriod != nil && *m.GracePeriod > 0) {
		return false
	}
	return res != resNamespace || len(h.Spec.Finalizers) == 0
}

// Members of objects, as readPlainly and readTimes know them.
var (
	headMembers = []string{"metadata", "spec", "kind", "apiVersion"}
	specMembers = []string{"finalizers"}
	metaMembers = []string{"creationTimestamp", "deletionTimestamp", "name", "namespace", "uid", "resourceVersion", "generateName", "finalizers",
		"deletionGracePeriodSeconds"}
)

// readTimesAlone reads an object of which only the metadata counts.
func readTimesAlone(p *jsontext.Plain, m *meta) bool {
	var ignored []string
	return p.Object(headMembers, func(i int) bool {
		switch i {
		case 0:
			return readTimes(p, m)
		case 1:
			return p.Object(specMembers, func(int) bool { return p.Texts(&ignored) })
		}
		_, ok := p.Bytes()
		return ok
	}) && p.Done()
}

// readPlainly reads an object as far as every kind has the same.
func (h *head) readPlainly(p *jsontext.Plain) bool {
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
func (m *meta) readPlainly(p *jsontext.Plain) bool {
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

// readHead reads the head of an object.
func readHead(raw []byte) (h head, err error) {
	if p := jsontext.NewPlain(raw); h.readPlainly(&p) {
		return h, nil
	}
	h = head{}
	err = json.Unmarshal(raw, &h)
	return h, err
}

// readTimes reads the times, and makes sure that the rest is of the right types.
func readTimes(p *jsontext.Plain, m *meta) bool {
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
