// Package admission tells what the admission phase of an apiserver did to a request: which plugin
// refused it, by the words of the refusal, and of plugins that can be evaluated again whether
// the record agrees.
//
// The package is pure.
package admission

import (
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// plugin is an admission plugin.
type plugin interface {
	// name is the plugin's, as --enable-admission-plugins has it.
	name() string
	// refused tells whether a refusal is in the plugin's words. A plugin's name is nowhere in an
	// event; message and code tell.
	refused(r *refusal) bool
}

// evaluated is a plugin that can be evaluated again.
type evaluated interface {
	plugin
	// judge says how its answer compares with the record, which adm has already.
	judge(q *Request, op Operation, adm *verdict.Admission)
}

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

// Judge fills adm, which is empty, with what admission did to a request. Neither is kept.
func (p *Plugins) Judge(q *Request, adm *verdict.Admission) {
	op := OperationOf(q.Attributes)
	if op != None && q.Decision == verdict.DecisionAllow && q.Code >= 400 {
		adm.Plugin = p.refusing(q.Code, q.Message, q.Node, q.Attributes)
	}
	adm.Recorded = recorded(op, q.Decision, q.Code, adm.Plugin)
	if q.Decision != verdict.DecisionAllow {
		return // admission never ran
	}
	for _, x := range p.evaluated {
		x.judge(q, op, adm)
	}
}

// refusal is the answer to a request that was refused.
type refusal struct {
	code           int32
	message, inner string // inner is what follows "is forbidden: "
	forbidden      bool
	node           bool
	a              *verdict.Attributes
}

// refusing attributes a refusal to a plugin, "" when none words it like that: API validation,
// conflicts, secondary authorization checks and handlers refuse too.
func (p *Plugins) refusing(code int32, message string, node bool, a *verdict.Attributes) string {
	if code < 400 || message == "" {
		return ""
	}
	r := refusal{code: code, message: message, node: node, a: a}
	_, r.inner, r.forbidden = strings.Cut(message, " is forbidden: ")
	r.inner = strings.TrimPrefix(r.inner, "[")
	if r.forbidden && strings.HasPrefix(r.inner, `User "`) {
		return "" // an authorization text: a secondary check
	}
	for _, x := range p.all {
		if x.refused(&r) {
			return x.name()
		}
	}
	return ""
}

// recorded says what admission did as far as the event tells: "" when it does not.
func recorded(op Operation, decision verdict.Decision, code int32, plugin string) string {
	switch {
	case decision == verdict.DecisionForbid, op == None && decision == verdict.DecisionAllow:
		return verdict.AdmissionNotRun
	case decision != verdict.DecisionAllow:
		return ""
	case plugin != "":
		return verdict.AdmissionRejected
	case code >= 200 && code < 300, code == 101:
		return verdict.AdmissionAdmitted
	}
	return ""
}
