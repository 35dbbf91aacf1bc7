package admission

import (
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// Operation is what plugins see of a request; the zero value is "not admitted".
type Operation uint8

// Operations.
const (
	None Operation = iota
	Create
	Update
	Delete
	Connect
)

// OperationOf says which admission operation a request is. Reads are not admitted, and
// connections are whatever the verb.
func OperationOf(a *verdict.Attributes) Operation {
	if !a.ResourceRequest {
		return None
	}
	if a.APIGroup == "" {
		switch a.Subresource {
		case "exec", "attach", "portforward":
			if a.Resource == "pods" {
				return Connect
			}
		case "proxy":
			switch a.Resource {
			case "pods", "services", "nodes":
				return Connect
			}
		}
	}
	switch a.Verb {
	case request.VerbCreate:
		return Create
	case request.VerbUpdate, request.VerbPatch:
		return Update
	case request.VerbDelete, request.VerbDeleteCollection:
		return Delete
	}
	return None
}
