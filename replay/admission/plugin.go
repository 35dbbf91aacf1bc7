package admission

import (
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// plugin is an admission plugin that is known by the words of its refusals.
type plugin interface {
	// name is the plugin's, as --enable-admission-plugins has it.
	name() string
	// refused reports whether a refusal is in the plugin's words, and which of its policies, webhooks
	// or quotas it names. A plugin's name is nowhere in an event; message and code tell.
	refused(r *refusal) (of string, ok bool)
}

// evaluated is a plugin that can be evaluated again.
type evaluated interface {
	plugin
	// ask evaluates it for a request whose object is body, with what it may have seen between two
	// moments. It knows nothing of what was recorded of the answer.
	ask(q *Request, op Operation, body []byte, from, to time.Time) said
}

// partial is an evaluated plugin that reads parts of a body, and so answers for some that an apiserver
// cannot decode as a whole.
type partial interface {
	decodes(body []byte) bool
}

// registered is a plugin as an apiserver has it, and what the comparison has to know of it besides its answers.
type registered struct {
	evaluated
	// validates: it is asked in the second pass, which sees the object as mutating webhooks and
	// policies leave it, behind the object's own validation.
	validates bool
	// behind are the plugins that may refuse before it is asked.
	behind []string
	use    use
}

// use is whether an apiserver has a plugin switched on.
type use uint8

const (
	on use = iota
	off
	assumedOff // by default, where nobody gave the configuration: a refusal in its words shows that it is on
)

// said is what a plugin that is evaluated answers. The zero value is that it does not look at
// such a request.
type said struct {
	answer
	// code and words are of its refusal: the response's code, and how the message ends.
	code  int32
	words string
	// missing is what its answer would take to be known.
	missing string
	// wait is how long behind a request's arrival the plugin may still look.
	wait time.Duration
	// open: what the answer rests on may have been changed by mutating webhooks and policies
	// before the plugin looked last. excludes ends the message of a refusal that contradicts it
	// all the same.
	open     bool
	excludes string
}

// answer is what kind of answer it is.
type answer uint8

const (
	unasked  answer = iota // the plugin does not look at the request
	passes                 // it lets it pass, certainly
	refuses                // it refuses it, certainly
	changing               // what it looks at changed meanwhile: either
	unknown                // what it looks at is not known
)

// What is missing where bodies are not recorded.
const (
	missingBody  = "the body of the request is not recorded"
	missingFinal = "what mutating webhooks and policies made of the object is not recorded"
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
	switch sub := a.Subresource; {
	case !a.ResourceRequest:
		return None
	case a.APIGroup == "" && a.Resource == "pods" && (sub == "exec" || sub == "attach" || sub == "portforward"),
		a.APIGroup == "" && (a.Resource == "pods" || a.Resource == "services" || a.Resource == "nodes") && sub == "proxy":
		return Connect
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

// refusal is the answer to a request that was refused, and who refused it as far as that is told.
type refusal struct {
	code           int32
	message, inner string // inner is what follows "is forbidden: "
	forbidden      bool
	node           bool
	a              *verdict.Attributes
	by, of         string // the plugin, "" for none, and its policy, webhook or quota
}

// words returns what the plugin said.
func (r *refusal) words() string {
	if r.forbidden {
		return verdict.Clip(r.inner)
	}
	return verdict.Clip(r.message)
}

// begins reports whether a text begins with one of others.
func begins(text string, with ...string) bool {
	return slices.ContainsFunc(with, func(w string) bool { return strings.HasPrefix(text, w) })
}

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
