// Package patchops reads the operations of a JSON patch (RFC 6902) as apiservers do, with the library that they
// use: a patch whose answer was lost, or not recorded, is judged by what it says.
package patchops

import (
	"encoding/json"
	"strings"
)

// Operation is one operation of a JSON patch.
type Operation struct {
	Op, Path, From string
	Value          json.RawMessage // nil without one
	Raw            json.RawMessage // all of it
}

// Read reads a JSON patch; false if the body is none. Names of members count as they are spelt, of several
// the last, and nothing of a pointer before its first slash.
func Read(body []byte) (ops []Operation, ok bool) {
	var raws []json.RawMessage
	if json.Unmarshal(body, &raws) != nil {
		return nil, false
	}
	for _, raw := range raws {
		op := Operation{Raw: raw}
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return nil, false
		}
		for name, into := range map[string]*string{"op": &op.Op, "path": &op.Path, "from": &op.From} {
			if members[name] != nil && json.Unmarshal(members[name], into) != nil {
				return nil, false
			}
		}
		op.Value, op.Path, op.From = members["value"], pointer(op.Path), pointer(op.From)
		ops = append(ops, op)
	}
	return ops, true
}

func pointer(path string) string {
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[i:]
	}
	return ""
}

// Moves reports whether the operation takes its value from elsewhere in the object.
func (op *Operation) Moves() bool { return op.Op == "move" || op.Op == "copy" }

// Reaches reports whether a JSON pointer points to a member of the object ("/rules"), or into it.
func Reaches(path, member string) bool {
	rest, ok := strings.CutPrefix(path, member)
	return ok && (rest == "" || rest[0] == '/')
}
