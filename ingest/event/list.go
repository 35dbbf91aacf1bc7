package event

import (
	"errors"
	"fmt"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// ErrNotEventList is wrapped by every error of DecodeList that rejects the whole body.
var ErrNotEventList = errors.New("not an " + APIVersion + " " + ListKind)

// Item is one item of an EventList.
type Item struct {
	Index int    // position in items
	Raw   []byte // the item's text, part of the body
	Event *Event // nil if Err is not
	Err   error  // *jsontext.Error: JSON, but not an event; offsets count from the body's start

	plain []byte // see plain.go
}

// DecodeList decodes an EventList, as the audit webhook posts it, and passes every item to
// visit in order. Events alias the body.
//
// A body that is not an EventList as a whole (not JSON, truncated, another kind, items that are
// not an array) gives an error that wraps ErrNotEventList before any item is visited. An item
// that is JSON but not an event is visited with Err set and does not affect its neighbours. An
// error of visit ends the iteration and is returned unchanged.
func DecodeList(body []byte, visit func(Item) error) error {
	d := newListDecoder(body)
	return d.visit(visit)
}

func newListDecoder(body []byte) decoder {
	return decoder{Scanner: jsontext.NewScanner(body, 8<<10), more: min(max(len(body)/200, 8), 256)}
}

// visit decodes the list and visits its items.
func (d *decoder) visit(visit func(Item) error) error {
	items, ok := d.eventList()
	if !ok || !d.End() {
		return fmt.Errorf("%w: %w", ErrNotEventList, d.Err)
	}
	for i := range items {
		if err := visit(items[i]); err != nil {
			return err
		}
	}
	return nil
}

// eventList decodes the list at the position.
func (d *decoder) eventList() ([]Item, bool) {
	if !d.Open('{', "object") {
		return nil, false
	}
	var (
		items             []Item
		kind, apiVersion  string
		kindAt, versionAt int
	)
	for first := true; ; first = false {
		name, more := d.Member(first)
		if !more {
			break
		}
		switch name {
		case "kind":
			kindAt = d.Pos
			kind = d.text()
		case "apiVersion":
			versionAt = d.Pos
			apiVersion = d.text()
		case "items":
			items = d.items()
		case "metadata":
			if c := d.Peek(); c != '{' && c != 'n' {
				d.Unexpected(d.Pos, "object")
			} else {
				d.Skip()
			}
		default:
			if !d.Skip() {
				return nil, false
			}
		}
		if !d.in(name) {
			return nil, false
		}
	}
	if d.Err != nil {
		return nil, false
	}
	if kind != ListKind {
		d.Fail(kindAt, "not "+ListKind)
		return nil, d.in("kind")
	}
	if apiVersion != APIVersion {
		d.Fail(versionAt, "not "+APIVersion)
		return nil, d.in("apiVersion")
	}
	return items, true
}

// The names of the members an apiserver always writes make up over a hundred bytes. A list
// of many items much shorter than that holds no events, and would take memory a hundred
// times its size.
const (
	crowdedFrom = 4096
	crowdedSize = 64
)

// items decodes the items array, or null.
func (d *decoder) items() []Item {
	if d.Null() || !d.Open('[', "array") {
		return nil
	}
	items := d.room
	for first := true; d.Element(first); first = false {
		if len(items) >= crowdedFrom && d.Pos < len(items)*crowdedSize {
			d.Fail(d.Pos, "too many items for their size")
			return nil
		}
		if len(d.blocks) == 0 {
			d.blocks = make([]block, d.expect(len(items)))
		}
		start := d.Pos
		b := &d.blocks[0]
		e := &b.event
		var bad error
		var plain []byte
		if d.event(b) {
			plain = d.plain()
			d.blocks = d.blocks[1:]
			d.usedBlocks++
		} else {
			// Not an event; if it is not even JSON, the list ends here.
			bad = d.Err
			e, d.Err = nil, nil
			*b = block{}
			d.Pos = start
			if !d.Skip() {
				return nil
			}
		}
		if cap(items) == 0 {
			items = make([]Item, 0, d.expect(0))
		}
		items = append(items, Item{Index: len(items), Raw: d.Buf[start:d.Pos:d.Pos], Event: e, Err: bad, plain: plain})
	}
	return items
}

// expect estimates how many more events the rest of the buffer holds, by their usual size and those so far; a wrong one costs memory.
func (d *decoder) expect(seen int) int {
	size := 1000
	if seen > 0 {
		size = max(200, d.Pos/seen)
	}
	return min(256, (len(d.Buf)-d.Pos)/size+1)
}
