package admission

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// plugin is an admission plugin that is known by the words of its refusals.
type plugin interface {
	// name is the plugin's, as --enable-admission-plugins has it.
	name() string
	// refused tells whether a refusal is in the plugin's words, and which of its policies, webhooks
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

// traits are what the comparison has to know of a plugin besides its answers.
type traits struct {
	// validates: it is asked in the second pass, which sees the object as mutating webhooks and
	// policies leave it, behind the object's own validation.
	validates bool
	// behind are the plugins that may refuse before it is asked.
	behind []string
}

// registered is a plugin with its traits, as an apiserver has it.
type registered struct {
	evaluated
	traits
	off bool // it is switched off
}

// registry has the plugins that are evaluated again, in the order in which they are asked.
var registry = []registered{ //nolint:gochecknoglobals // constant table
	{evaluated: namespaceLifecycle{}},
	{evaluated: serviceAccount{}, traits: traits{behind: []string{verdict.PluginNamespaceLifecycle, "NamespaceAutoProvision", "LimitRanger"}}},
	{evaluated: certificateSubject{}, traits: traits{validates: true}},
}

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

const (
	missingBody  = "the body of the request is not recorded"
	missingFinal = "what mutating webhooks and policies made of the object is not recorded"
)

// compare evaluates a plugin and says how its answer compares with the record. What it saw at the
// request's arrival is the answer if that agrees. Else it may have looked at any time in the window,
// a patch may have been one that creates, and what it looked at may have been changed before.
func (p *registered) compare(q *Request, op Operation, r *refusal) verdict.AdmissionAnswer {
	a := verdict.AdmissionAnswer{Plugin: p.name()}
	refused := r.by == a.Plugin
	if refused {
		a.Name, a.Code = r.of, q.Code
	}
	ans := p.answer(q, op, q.Body, false)
	a.Outcome = p.outcome(ans, q, op, r)
	try := func(other said) {
		if outcome := p.outcome(other, q, op, r); outcome != "" && outcome != verdict.PluginDrift {
			ans, a.Outcome = other, outcome
		}
	}
	if a.Outcome == verdict.PluginDrift && !p.off {
		if wide := p.answer(q, op, q.Body, true); wide.answer == changing || wide.answer == unknown {
			try(wide)
		}
	}
	if a.Outcome == verdict.PluginDrift && !p.off && q.Attributes.Verb == request.VerbPatch && op == Update && refused {
		try(p.answer(q, Create, q.Body, false))
	}
	if a.Outcome == verdict.PluginDrift && ans.open && (ans.excludes == "" || !strings.HasSuffix(q.Message, ans.excludes)) {
		switch final := p.answer(q, op, q.Written, true); {
		case len(q.Written) > 0:
			try(final)
		default:
			try(said{answer: unknown, missing: missingFinal})
		}
	}
	switch {
	case refused:
		a.Reason = r.words()
	case a.Outcome != verdict.PluginPass:
		a.Reason = cmp.Or(ans.missing, ans.words)
	}
	return a
}

// answer asks the plugin with what it may have seen at the request's arrival, or in the window.
func (p *registered) answer(q *Request, op Operation, body []byte, wide bool) said {
	if p.off {
		return said{}
	}
	ans := p.ask(q, op, body, q.Received, q.Received)
	if !wide {
		return ans
	}
	from, to := q.Window.Window()
	if floor := q.Received.Add(ans.wait); to.Before(floor) {
		to = floor
	}
	return p.ask(q, op, body, from, to)
}

// outcome compares an answer with the record.
func (p *registered) outcome(ans said, q *Request, op Operation, r *refusal) string {
	refused, passed := r.by == p.name(), p.passed(q, op, r)
	switch ans.answer {
	case unasked:
		if refused {
			return verdict.PluginDrift
		}
		return ""
	case passes:
		if refused {
			return verdict.PluginDrift
		}
		return verdict.PluginPass
	case changing:
		if refused || passed {
			return verdict.PluginAmbiguous
		}
		return ""
	case unknown:
		return verdict.PluginIndeterminate
	}
	switch {
	case refused && q.Code == ans.code && strings.HasSuffix(q.Message, ans.words):
		return verdict.PluginMatch
	case refused, passed:
		return verdict.PluginDrift
	}
	return ""
}

// passed tells whether the record proves that the plugin let the request pass. Errors from before
// the plugins (a body that does not decode, a resource that is not served, an object that is not
// there) leave the question open; what comes behind it proves it.
func (p *registered) passed(q *Request, op Operation, r *refusal) bool {
	switch {
	case admitted(q.Code):
		return true
	case p.validates:
		return op == Create && q.Code == 409 && r.by == "" // found out where the object is written
	case r.by != "":
		return r.by != p.name() && !slices.Contains(p.behind, r.by)
	}
	return q.Code == 409 || q.Code == 422
}
