package implied

import (
	"bytes"
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/internal/patchops"
)

// member is a member of an object that a check looks at, and what it is decoded into.
type member struct {
	name string
	into any
}

// read decodes the value of the member.
func (m *member) read(value []byte) (ok bool) {
	if rules, is := m.into.(*[]rbacv1.PolicyRule); is {
		*rules, ok = readRules(value)
		return ok
	}
	return json.Unmarshal(value, m.into) == nil
}

// written decodes members of what a request wrote: of the request body of a create or update, of a patch of the object it made, as far as
// the event shows it. ok is false if it does not, or when the body has another shape. Of the rest of a body nothing is decoded: most of it
// is metadata.
//
// The object in the response is what the request wrote, completed: it says nothing about the
// checks. A refused request has none: a Status is not such an object.
func (d *derivation) written(kind string, members ...member) (ok bool) {
	if d.a.Verb == "patch" {
		return decode(d.e.ResponseObject, kind, members...)
	}
	return decode(d.e.RequestObject, "", members...)
}

// decode decodes members of an object. It is false for what is not an object, for one of another
// kind (any will do for ""), and for members of another shape.
func decode(object []byte, kind string, members ...member) bool {
	is, shaped := kind == "", true
	read := jsontext.Members(object, func(name string, value []byte) bool {
		if name == "kind" && !is {
			is = len(value) == len(kind)+2 && string(value[1:len(value)-1]) == kind
			return is
		}
		for i := range members {
			if members[i].name == name && value != nil {
				shaped = members[i].read(value)
			}
		}
		return shaped
	})
	return read && shaped && is
}

// patchDocument is the body of a patch. Its type is not recorded: an array is a JSON patch, an
// object is a merge patch, a strategic merge patch or an applied configuration.
type patchDocument struct {
	members map[string]json.RawMessage // of an object
	paths   []string                   // of a JSON patch
	ops     []patchops.Operation       // of a JSON patch
}

// about returns the operations of a JSON patch that work on members of the object, and on nothing else, as a JSON patch.
func (p *patchDocument) about(members ...string) []byte {
	var out []json.RawMessage
	for _, op := range p.ops {
		for _, m := range members {
			if below(op.Path, m) && (op.From == "" || below(op.From, m)) {
				out = append(out, op.Raw)
			}
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil // was JSON before
	}
	return raw
}

// below reports whether a JSON pointer points to a member of the object, or into it.
func below(path, member string) bool {
	return patchops.Reaches(path, "/"+member)
}

// patched reads the patch document; false if the event does not hold it.
func (d *derivation) patched() (p patchDocument, ok bool) {
	body := bytes.TrimLeft(d.e.RequestObject, " \t\r\n")
	switch {
	case len(body) == 0:
		return p, false
	case body[0] == '{':
		return p, json.Unmarshal(body, &p.members) == nil
	case body[0] != '[':
		return p, false
	}
	if p.ops, ok = patchops.Read(body); !ok {
		return p, false
	}
	for _, op := range p.ops {
		p.paths = append(p.paths, op.Path)
		if op.From != "" {
			p.paths = append(p.paths, op.From)
		}
	}
	return p, true
}

// collected reports whether a patch touches nothing but what the garbage collector writes: owner references, finalizers and managed fields.
func (p *patchDocument) collected() bool {
	if p.members == nil {
		return len(p.paths) > 0 && !slices.ContainsFunc(p.paths, func(path string) bool { return !collectedPath(path) })
	}
	for name, raw := range p.members {
		switch name {
		case "apiVersion", "kind":
			continue
		case "metadata":
		default:
			return false
		}
		var meta map[string]json.RawMessage
		if json.Unmarshal(raw, &meta) != nil {
			return false
		}
		for name := range meta {
			switch name {
			case "name", "namespace", "uid", "resourceVersion", "ownerReferences", "finalizers", "managedFields":
			case "$setElementOrder/finalizers", "$setElementOrder/ownerReferences", "$deleteFromPrimitiveList/finalizers", "$patch":
			default:
				return false
			}
		}
	}
	// A configuration applied without its other fields takes those away that it owned.
	_, applied := p.members["apiVersion"]
	return !applied
}

func collectedPath(path string) bool {
	return below(path, "metadata/ownerReferences") || below(path, "metadata/finalizers") || below(path, "metadata/managedFields") ||
		path == "/metadata/uid" || path == "/metadata/resourceVersion" // tests before a change
}

// touches reports whether a patch says anything about a member of the object, "spec" for example.
func (p *patchDocument) touches(member string) bool {
	if _, ok := p.members[member]; ok {
		return true
	}
	return slices.ContainsFunc(p.paths, func(path string) bool { return path == "" || below(path, member) })
}
