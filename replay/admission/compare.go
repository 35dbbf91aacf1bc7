package admission

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// compare evaluates a plugin and says how its answer compares with the record. What it saw at the
// request's arrival is the answer if that agrees. Else it may have looked at any time in the window,
// a patch may have been one that creates, and what it looked at may have been changed before.
func (p *registered) compare(q *Request, op Operation, r *refusal) verdict.AdmissionAnswer {
	a := verdict.AdmissionAnswer{Plugin: p.name()}
	refused := r.by == a.Plugin
	if refused {
		a.Name, a.Code = r.of, q.Code
	} else if p.use == assumedOff {
		return a
	}
	ans := p.answer(q, op, q.Body, false)
	a.Outcome = p.outcome(ans, q, op, r)
	try := func(other said) {
		if outcome := p.outcome(other, q, op, r); outcome != "" && outcome != verdict.PluginDrift {
			ans, a.Outcome = other, outcome
		}
	}
	if a.Outcome == verdict.PluginDrift && p.use != off {
		if wide := p.answer(q, op, q.Body, true); wide.answer == changing || wide.answer == unknown {
			try(wide)
		}
	}
	if a.Outcome == verdict.PluginDrift && p.use != off && q.Attributes.Verb == request.VerbPatch && op == Update && refused {
		try(p.answer(q, Create, q.Body, false))
	}
	if a.Outcome == verdict.PluginDrift && ans.open && (ans.excludes == "" || !strings.HasSuffix(q.Message, ans.excludes)) {
		final := said{answer: unknown, missing: missingFinal}
		if len(q.Written) > 0 {
			final = p.answer(q, op, q.Written, true)
		}
		try(final)
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
	if p.use == off {
		return said{}
	}
	ans := p.ask(q, op, body, q.Received, q.Received)
	if wide {
		from, to := q.Window.Window()
		if floor := q.Received.Add(ans.wait); to.Before(floor) {
			to = floor
		}
		ans = p.ask(q, op, body, from, to)
	}
	// What was admitted had been decoded.
	if x, ok := p.evaluated.(partial); ok && !admitted(q.Code) && ans.answer != unasked && ans.answer != unknown && !x.decodes(body) {
		return said{answer: unknown, missing: missingBody}
	}
	return ans
}

// outcome compares an answer with the record.
func (p *registered) outcome(ans said, q *Request, op Operation, r *refusal) string {
	refused, passed := r.by == p.name(), p.passed(q, op, r)
	switch ans.answer {
	case unasked, passes:
		switch {
		case refused:
			return verdict.PluginDrift
		case ans.answer == passes:
			return verdict.PluginPass
		}
		return ""
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

// passed reports whether the record proves that the plugin let the request pass. Errors from before
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

// admitted reports whether an answer's code shows that every plugin let the request pass.
func admitted(code int32) bool { return code >= 200 && code < 300 || code == 101 }
