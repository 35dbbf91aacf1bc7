package event

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// maxText bounds the texts of an event that is too large, except URI, user and groups, which identify a request and come in a header.
const maxText = 16 << 10

// maxShort is how much is left of a text that is longer.
const maxShort = 1 << 10

// shorten cuts the texts of an event that was too large: Kubernetes does not bound names of objects
// that come in a body, and apiservers repeat them in messages and annotations. A decision's reason
// that is cut no longer names a binding.
func shorten(e *Event) {
	if ref := e.ObjectRef; ref != nil && len(ref.Name) > maxText {
		short := *ref
		short.Name = ShortName(ref.Name)
		e.ObjectRef = &short
	}
	if s := e.ResponseStatus; s != nil && len(s.Raw) > maxText {
		e.ResponseStatus = &Status{Status: clip(s.Status), Message: clip(s.Message), Reason: clip(s.Reason), Code: s.Code}
	}
	for i := range e.Annotations {
		if a := &e.Annotations[i]; len(a.Value) > maxText {
			e.Annotations = e.Annotations.Set(a.Key, clip(a.Value))
		}
	}
}

// clip cuts a text that is too long, between characters.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return head(s, maxShort) + "…"
}

// ShortName returns a name or, if it is too long, its beginning and its digest, so that every event
// of it has the same.
func ShortName(name string) string {
	if len(name) <= maxText {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return head(name, 64) + "…sha256:" + hex.EncodeToString(sum[:16])
}

// head returns at most n bytes of a text, up to the end of a character.
func head(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// shortNamed returns a pruned object with its name shortened, if that is too long.
func shortNamed(object []byte) []byte {
	if len(object) <= maxText {
		return object
	}
	s := jsontext.Scanner{Buf: object}
	if s.Peek() != '{' {
		return object
	}
	s.Pos++
	for first := true; ; first = false {
		name, more := s.Member(first)
		if !more {
			return object
		}
		start := s.Pos
		if !s.Skip() {
			return object
		}
		if name != "metadata" || s.Pos-start <= maxText {
			continue
		}
		var metadata map[string]any
		if json.Unmarshal(object[start:s.Pos], &metadata) != nil {
			return object
		}
		own, _ := metadata["name"].(string)
		metadata["name"] = ShortName(own)
		short, err := json.Marshal(metadata)
		if err != nil {
			return object
		}
		return append(append(append(make([]byte, 0, len(object)), object[:start]...), short...), object[s.Pos:]...)
	}
}
