// Package admission tells what the admission phase of an apiserver did to a request: which plugin
// refused it, by the words of the refusal, and of plugins that can be evaluated again whether
// the record agrees.
//
// The package is pure.
package admission

import (
	"cmp"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state"
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
	// ask evaluates it for a request, with what it may have seen between two moments.
	ask(q *Request, op Operation, from, to time.Time) said
	// wait is how long after a request's arrival the plugin may still look.
	wait() time.Duration
}

// said is what a plugin that is evaluated answers. The zero value is that it does not look at
// such a request.
type said struct {
	answer
	// code and words are of its refusal: the response's code, and how the message ends.
	code  int32
	words string
	// name of the policy or quota that decides.
	name string
	// missing is what its answer would take to be known.
	missing string
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

// Request is a request behind authorization, and what is known about it.
type Request struct {
	Attributes *verdict.Attributes
	Node       bool             // the user is a node
	Decision   verdict.Decision // recorded, of authorization
	Code       int32            // of the response
	Message    string
	Received   time.Time
	State      State // nil: nothing is known
	Window     Window
}

// State is what plugins ask about the cluster; *state.State is one.
type State interface {
	Namespace(name string, from, to time.Time) state.NamespaceAnswer
}

// Window bounds the time in which the apiserver may have looked. It is asked for where a moment
// does not explain the record.
type Window interface {
	Window() (from, to time.Time)
}

// Plugins are all that are known. They are safe for concurrent use.
type Plugins struct {
	all       []plugin
	evaluated []evaluated // of all
}

// New returns the plugins, in the order in which a refusal is held to their words.
func New() *Plugins {
	all := append([]plugin{namespaceLifecycle{}}, wordedPlugins()...)
	p := &Plugins{all: append(all, nodeRestriction{})}
	for _, x := range p.all {
		if x, ok := x.(evaluated); ok {
			p.evaluated = append(p.evaluated, x)
		}
	}
	return p
}

// Judge fills adm, which is empty, with what admission did to a request. q is not kept.
func (p *Plugins) Judge(q *Request, adm *verdict.Admission) {
	op := OperationOf(q.Attributes)
	var refused plugin
	var named string
	r := refusal{code: q.Code, message: q.Message, node: q.Node, a: q.Attributes}
	if op != None && q.Decision == verdict.DecisionAllow {
		refused, named = p.refusing(&r)
	}
	adm.Recorded = recorded(op, q.Decision, q.Code, refused != nil)
	if q.Decision != verdict.DecisionAllow {
		return // admission never ran
	}
	for _, x := range p.evaluated {
		a := verdict.AdmissionAnswer{Plugin: x.name()}
		if refused != nil && x.name() == refused.name() {
			refused, a.Name, a.Code = nil, named, q.Code
		}
		if compare(x, q, op, adm.Recorded, &a); a.Outcome != "" {
			if a.Code != 0 {
				a.Reason = r.words()
			}
			adm.Answers = append(adm.Answers, a)
		}
	}
	if refused != nil {
		adm.Answers = append(adm.Answers, verdict.AdmissionAnswer{
			Plugin: refused.name(), Name: named, Outcome: verdict.PluginRejected, Reason: r.words(), Code: q.Code,
		})
	}
}

// compare evaluates a plugin and says in a how its answer compares with the record. What it saw at
// the request's arrival is the answer if it agrees; else it may have looked at any time in the window.
func compare(x evaluated, q *Request, op Operation, recorded string, a *verdict.AdmissionAnswer) {
	ans := x.ask(q, op, q.Received, q.Received)
	outcome := outcomeOf(ans, q, recorded, a.Code != 0)
	if outcome == verdict.PluginDrift {
		from, to := q.Window.Window()
		if floor := q.Received.Add(x.wait()); to.Before(floor) {
			to = floor
		}
		if wide := x.ask(q, op, from, to); wide.answer == changing || wide.answer == unknown {
			ans, outcome = wide, outcomeOf(wide, q, recorded, a.Code != 0)
		}
	}
	if a.Outcome = outcome; outcome != verdict.PluginPass {
		a.Name = cmp.Or(a.Name, ans.name)
		a.Reason = cmp.Or(ans.missing, ans.words)
	}
}

// outcomeOf compares an answer with the record. Errors from before the plugins (a body that
// does not decode, a resource that is not served, an object that is not there) leave the
// question open; what comes after them proves that the plugin let the request pass.
func outcomeOf(ans said, q *Request, recorded string, refused bool) string {
	passed := recorded == verdict.AdmissionAdmitted || (recorded == verdict.AdmissionRejected && !refused) || q.Code == 409 || q.Code == 422
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

// refusal is the answer to a request that was refused.
type refusal struct {
	code           int32
	message, inner string // inner is what follows "is forbidden: "
	forbidden      bool
	node           bool
	a              *verdict.Attributes
}

// words are what the plugin said.
func (r *refusal) words() string {
	if r.forbidden {
		return verdict.Clip(r.inner)
	}
	return verdict.Clip(r.message)
}

// refusing attributes a refusal to a plugin, nil when none words it like that: API validation,
// conflicts, secondary authorization checks and handlers refuse too.
func (p *Plugins) refusing(r *refusal) (by plugin, of string) {
	if r.code < 400 || r.message == "" {
		return nil, ""
	}
	_, r.inner, r.forbidden = strings.Cut(r.message, " is forbidden: ")
	r.inner = strings.TrimPrefix(r.inner, "[")
	if r.forbidden && strings.HasPrefix(r.inner, `User "`) {
		return nil, "" // an authorization text: a secondary check
	}
	for _, x := range p.all {
		if of, ok := x.refused(r); ok {
			return x, verdict.Clip(of)
		}
	}
	return nil, ""
}

// recorded says what admission did as far as the event tells: "" when it does not.
func recorded(op Operation, decision verdict.Decision, code int32, refused bool) string {
	switch {
	case decision == verdict.DecisionForbid, op == None && decision == verdict.DecisionAllow:
		return verdict.AdmissionNotRun
	case decision != verdict.DecisionAllow:
		return ""
	case refused:
		return verdict.AdmissionRejected
	case code >= 200 && code < 300, code == 101:
		return verdict.AdmissionAdmitted
	}
	return ""
}
