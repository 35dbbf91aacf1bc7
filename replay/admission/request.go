package admission

import (
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// Request is a request behind authorization, and what is known about it.
type Request struct {
	Attributes *verdict.Attributes
	Body       []byte           // of the request, as the apiserver recorded it; nil if it did not
	Written    []byte           // the object as it was stored, of a request that was admitted; nil if it is not recorded
	Node       bool             // the user is a node
	Decision   verdict.Decision // recorded, of authorization
	Code       int32            // of the response
	Message    string
	Received   time.Time
	State      State // nil: nothing is known
	Window     Window

	refusal refusal // worked out of it by Judge; here, so that a plugin's look at it allocates nothing
}

// State is what plugins ask about the cluster; *state.State is one.
type State interface {
	Namespace(name string, from, to time.Time) state.NamespaceAnswer
	// ServiceAccountIn reports whether an account was there; changed says that it was for a part.
	ServiceAccountIn(namespace, name string, from, to time.Time) (known state.Known, changed bool)
}

// Window bounds the time in which the apiserver may have looked. It is asked for where a moment
// does not explain the record.
type Window interface {
	Window() (from, to time.Time)
}
