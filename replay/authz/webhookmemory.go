package authz

import (
	"encoding/binary"
	"hash/maphash"
	"regexp"
	"sync/atomic"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// hookState reports whether a webhook is asked about a request.
type hookState uint8

const (
	hookAsked   hookState = iota
	hookSkipped           // a match condition is false
	hookFailed            // a match condition failed, none is false
)

// hookMemory remembers what match conditions came to. Conditions read a few fields of a review
// (groups, a namespace), so that nearly all requests of a log are one of few to them, and
// running them costs fifty times what looking it up does.
//
// It is a table of fixed size: what falls on one place replaces what was there. Readers and
// writers take no lock.
type hookMemory struct {
	fields uint16 // which the conditions read, see the field constants
	seed   maphash.Seed
	table  []atomic.Pointer[hookMemo]
}

// hookMemo is one remembered answer. It is never changed.
type hookMemo struct {
	key   string
	state hookState
}

// hookPlaces is how many answers are remembered; longestKey how long a request may be to be.
const (
	hookPlaces = 4096
	longestKey = 512
)

// Fields of a review.
const (
	fieldUser uint16 = 1 << iota
	fieldUID
	fieldGroups
	fieldExtra
	fieldNamespace
	fieldVerb
	fieldGroup
	fieldVersion
	fieldResource
	fieldSubresource
	fieldName
	fieldPath
	fieldSelectors
	everyField = 1<<iota - 1
)

// fieldNames returns the words by which an expression reads a field. A word that stands for
// something else, or within a string, only makes the memory more careful than it need be.
func fieldNames() map[string]uint16 {
	return map[string]uint16{
		"user": fieldUser, "uid": fieldUID, "groups": fieldGroups, "extra": fieldExtra, "namespace": fieldNamespace, "verb": fieldVerb,
		"group": fieldGroup, "version": fieldVersion, "resource": fieldResource, "subresource": fieldSubresource, "name": fieldName,
		"path": fieldPath, "fieldSelector": fieldSelectors, "labelSelector": fieldSelectors,
		"dyn": everyField, // takes the types away by which alone fields are reached by name
	}
}

// reads finds out which fields the conditions read, and makes the table.
func (m *hookMemory) reads(conditions []string) {
	names := fieldNames()
	words := regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	for _, c := range conditions {
		for _, word := range words.FindAllString(c, -1) {
			m.fields |= names[word]
		}
	}
	m.seed, m.table = maphash.MakeSeed(), make([]atomic.Pointer[hookMemo], hookPlaces)
}

// of returns what is remembered of a request, or evaluates it.
func (m *hookMemory) of(u *event.User, a *verdict.Attributes, evaluate func(*event.User, *verdict.Attributes) hookState) hookState {
	var buf [longestKey]byte
	key := m.key(buf[:0], u, a)
	if len(key) > longestKey {
		return evaluate(u, a)
	}
	place := &m.table[maphash.Bytes(m.seed, key)%hookPlaces]
	if memo := place.Load(); memo != nil && memo.key == string(key) {
		return memo.state
	}
	state := evaluate(u, a)
	place.Store(&hookMemo{string(key), state})
	return state
}

// key appends what the conditions read of a request, each text behind its length. It stops
// when it has become too long to be remembered.
func (m *hookMemory) key(key []byte, u *event.User, a *verdict.Attributes) []byte {
	text := func(field uint16, s string) {
		if m.fields&field != 0 && len(key) <= longestKey {
			if len(s) > longestKey {
				s = s[:longestKey] // the key is too long with it anyway
			}
			key = append(binary.AppendUvarint(key, uint64(len(s))), s...)
		}
	}
	kind := byte(0)
	if a.ResourceRequest {
		kind = 1
	}
	key = append(key, kind)
	text(fieldUser, u.Username)
	text(fieldUID, u.UID)
	if m.fields&fieldGroups != 0 {
		key = binary.AppendUvarint(key, uint64(len(u.Groups)))
		for _, g := range u.Groups {
			text(fieldGroups, g)
		}
	}
	if m.fields&fieldExtra != 0 {
		key = binary.AppendUvarint(key, uint64(len(u.Extra)))
		for _, e := range u.Extra {
			text(fieldExtra, e.Key)
			key = binary.AppendUvarint(key, uint64(len(e.Values)))
			for _, v := range e.Values {
				text(fieldExtra, v)
			}
		}
	}
	text(fieldVerb, a.Verb)
	if !a.ResourceRequest {
		text(fieldPath, a.Path)
		return key
	}
	text(fieldNamespace, a.Namespace)
	text(fieldGroup, a.APIGroup)
	text(fieldVersion, a.APIVersion)
	text(fieldResource, a.Resource)
	text(fieldSubresource, a.Subresource)
	text(fieldName, a.Name)
	text(fieldSelectors, a.FieldSelector)
	text(fieldSelectors, a.LabelSelector)
	return key
}
