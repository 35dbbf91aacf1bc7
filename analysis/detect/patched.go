package detect

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/internal/patchops"
)

// anyText stands for a text that a JSON patch moves from an unrecorded place.
const anyText = "?"

// An apiserver refuses patches with more operations; deeper pointers reach nothing that a rule reads.
const (
	maxOperations = 10_000
	maxPointer    = 12
)

// place is a place in an object: what a patch put there and below it.
type place struct {
	value any  // nil if nothing was put there
	is    bool // something was put there
	below map[string]*place
	order []string // of the children
}

// patchedObject returns a JSON patch as an object: each value at the place where an operation puts it. It has no
// more than the patch does; a list has the elements that are added to it, and an element has what is put into it.
// What is moved or copied from elsewhere may be anything.
func patchedObject(body []byte) map[string]any {
	ops, ok := patchops.Read(body)
	if !ok || len(ops) > maxOperations {
		return map[string]any{}
	}
	root := &place{}
	for i := range ops {
		op := &ops[i]
		at, ok := pointerOf(op.Path)
		if !ok {
			continue
		}
		switch {
		case op.Op == "add", op.Op == "replace":
			v, ok := jsontext.Value(op.Value)
			if !ok && json.Unmarshal(op.Value, &v) != nil {
				continue
			}
			root.put(at, withoutNulls(v))
		case op.Moves():
			from, ok := pointerOf(op.From)
			if v := root.find(from); ok && v != nil && v.is {
				root.put(at, v.whole())
			} else if v := anyAt(at); v != nil {
				root.put(at, v)
			}
		}
	}
	object, _ := root.whole().(map[string]any)
	if object == nil {
		return map[string]any{}
	}
	return object
}

// pointerOf returns the names of a JSON pointer, false for one that is too long.
func pointerOf(pointer string) ([]string, bool) {
	if pointer == "" {
		return nil, true
	}
	if strings.Count(pointer, "/") > maxPointer {
		return nil, false
	}
	names := strings.Split(pointer[1:], "/")
	for i, name := range names {
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	}
	return names, true
}

// isIndex reports whether a name in a pointer is that of a list element.
func isIndex(name string) bool {
	_, err := strconv.Atoi(strings.TrimPrefix(name, "-"))
	return err == nil || strings.HasPrefix(name, "-")
}

func (p *place) put(at []string, value any) {
	for i, name := range at {
		if isIndex(name) && i == len(at)-1 {
			name = "-" + strconv.Itoa(len(p.order)) // one more, whatever is there
		}
		next := p.below[name]
		if next == nil {
			if next = (&place{}); p.below == nil {
				p.below = map[string]*place{}
			}
			p.below[name], p.order = next, append(p.order, name)
		}
		p = next
	}
	*p = place{value: value, is: true}
}

// find returns a place, nil if nothing was put there.
func (p *place) find(at []string) *place {
	for _, name := range at {
		if p = p.below[name]; p == nil {
			return nil
		}
	}
	return p
}

// whole returns the value at the place with everything below it.
func (p *place) whole() any {
	if len(p.order) == 0 {
		return p.value
	}
	list, isList := p.value.([]any)
	if isList = isList || p.value == nil && isIndex(p.order[0]); isList {
		out := append([]any{}, list...)
		for _, name := range p.order {
			out = append(out, p.below[name].whole())
		}
		return out
	}
	out := map[string]any{}
	if had, ok := p.value.(map[string]any); ok {
		maps.Copy(out, had)
	}
	for _, name := range p.order {
		out[name] = p.below[name].whole()
	}
	return out
}

// anyAt returns what may be put anywhere in the rules of a role, or in the subjects of a binding, by a move from
// an unrecorded place; nil elsewhere.
func anyAt(at []string) any {
	if len(at) == 0 {
		return map[string]any{"rules": anyAt([]string{"rules"}), "subjects": anyAt([]string{"subjects"})}
	}
	depths := map[string][]any{
		"rules":    {[]any{map[string]any{"verbs": []any{anyText}}}, map[string]any{"verbs": []any{anyText}}, []any{anyText}, anyText},
		"subjects": {[]any{map[string]any{"name": anyText}}, map[string]any{"name": anyText}, anyText},
	}[at[0]]
	if len(at) > len(depths) {
		return nil
	}
	return depths[len(at)-1]
}
