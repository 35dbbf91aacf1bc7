package event

import (
	"errors"
	"fmt"
)

// Bodies are the lengths in bytes of an event's request and response object as AppendJSON
// writes them, 0 if absent or not known. Decoding with them need not search for the ends of
// what is most of an event.
type Bodies struct{ Request, Response int }

// BodiesOf returns the lengths of the bodies AppendJSON writes for an event.
func BodiesOf(e *Event) Bodies { return Bodies{len(e.RequestObject), len(e.ResponseObject)} }

// body consumes a body of so many bytes, or one whose end must be found if that is 0 or
// impossible.
func (d *decoder) body(size int) []byte {
	if end := d.Pos + size; size > 1 && end < len(d.Buf) && closes(d.Buf[d.Pos], d.Buf[end-1]) && (d.Buf[end] == ',' || d.Buf[end] == '}') {
		v := d.Buf[d.Pos:end:end]
		d.Pos = end
		return v
	}
	v, _ := d.Raw()
	return v
}

// closes reports whether a value that begins and ends with these bytes may be a whole one.
func closes(first, last byte) bool {
	switch first {
	case '{':
		return last == '}'
	case '[':
		return last == ']'
	}
	return first == '"' && last == '"'
}

// Decoder decodes events one after another. What they refer to is cut from shared memory, so
// that many of them need few allocations, and an event that is kept keeps its neighbours in
// memory. It is for one goroutine; the zero value is ready.
type Decoder struct {
	d      decoder
	blocks []block // not yet in use

	// What Reuse makes available again.
	ownBlocks []block
	ownStrs   []string
	ownPairs  []Pair
	ownExtra  []ExtraEntry
}

// Reuse gives the memory of the events decoded so far to the next ones: they and their lists must not be used any more, their strings may.
func (m *Decoder) Reuse() {
	d := &m.d
	clear(m.ownBlocks)
	m.blocks = m.ownBlocks
	m.ownStrs, m.ownPairs, m.ownExtra = again(m.ownStrs, d.usedStrs), again(m.ownPairs, d.usedPairs), again(m.ownExtra, d.usedExtra)
	d.strs, d.pairs, d.extra = m.ownStrs, m.ownPairs, m.ownExtra
	d.usedStrs, d.usedPairs, d.usedExtra = 0, 0, 0
	d.Buf = nil
}

// again returns a list of zero entries with room for as many as were used.
func again[T any](list []T, used int) []T {
	forget(list, used)
	return roomFor(list, used)
}

// decoderChunk is how many events a Decoder allocates memory for at once.
const decoderChunk = 64

// Decode decodes one event as the function [Decode] does. bodies are those of what AppendJSON
// wrote and say where its bodies end, which is then not checked; with the zero value raw may be
// any event.
func (m *Decoder) Decode(raw []byte, bodies Bodies) (*Event, error) {
	if len(m.blocks) == 0 {
		m.blocks = make([]block, decoderChunk)
		if m.ownBlocks == nil {
			m.ownBlocks = m.blocks
		}
	}
	d, b := &m.d, &m.blocks[0]
	d.Reset(raw, 1<<10)
	d.bodies, d.more = bodies, 4*decoderChunk
	if !d.event(b) || !d.End() {
		*b = block{}
		if bodies != (Bodies{}) {
			return m.Decode(raw, Bodies{}) // they may be wrong
		}
		return nil, d.Err
	}
	m.blocks = m.blocks[1:]
	return &b.event, nil
}

// Lists decodes lists of events, one after another, each into the memory of the one before:
// the events of a list are gone when the next is decoded. It is for one goroutine; the zero
// value is ready.
type Lists struct {
	d      decoder
	blocks []block
	items  []Item
	strs   []string
	pairs  []Pair
	extra  []ExtraEntry
}

// maxListEntries bounds how much memory of each kind a Lists keeps for the next list. An apiserver sends 400
// events at once by default.
const maxListEntries = 1 << 14

// Decode decodes an EventList as [DecodeList] does.
func (l *Lists) Decode(body []byte, visit func(Item) error) error {
	l.Forget()
	last := &l.d
	l.blocks, l.items = roomFor(l.blocks, last.usedBlocks), roomFor(l.items, last.usedBlocks)
	l.strs, l.pairs, l.extra = roomFor(l.strs, last.usedStrs), roomFor(l.pairs, last.usedPairs), roomFor(l.extra, last.usedExtra)
	d := newListDecoder(body)
	d.TakeOver(&last.Scanner)
	d.blocks, d.room, d.strs, d.pairs, d.extra = l.blocks, l.items[:0], l.strs, l.pairs, l.extra
	l.d = d
	return l.d.visit(visit)
}

// Forget releases the last list: its events, and the body they alias.
func (l *Lists) Forget() {
	d := &l.d
	forget(l.blocks, d.usedBlocks)
	forget(l.items, len(l.items))
	forget(l.strs, d.usedStrs)
	forget(l.pairs, d.usedPairs)
	forget(l.extra, d.usedExtra)
	d.Buf, d.blocks, d.room, d.strs, d.pairs, d.extra = nil, nil, nil, nil, nil, nil
}

func forget[T any](list []T, used int) { clear(list[:min(used, len(list))]) }

// roomFor returns a list with room for as many entries as were used, if they are not many
// more than usual, and a few more.
func roomFor[T any](list []T, used int) []T {
	if used <= cap(list) || used > maxListEntries {
		return list
	}
	return make([]T, used+used/4)
}

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
