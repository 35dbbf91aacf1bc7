// Package admission tells what the admission phase of an apiserver did to a request: which plugin
// refused it, by the words of the refusal, and of plugins that can be evaluated again whether
// the record agrees.
//
// The package is pure.
package admission

import (
	"slices"
	"time"

	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/release"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// Request is a request behind authorization, and what is known about it.
type Request struct {
	Attributes *verdict.Attributes
	Body       []byte           // of the request, as the apiserver recorded it; nil when it did not
	Written    []byte           // the object as it was stored, of a request that was admitted; nil when it is not recorded
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
	// ServiceAccountIn tells whether an account was there; changed says that it was for a part.
	ServiceAccountIn(namespace, name string, from, to time.Time) (known state.Known, changed bool)
}

// Window bounds the time in which the apiserver may have looked. It is asked for where a moment
// does not explain the record.
type Window interface {
	Window() (from, to time.Time)
}

// Plugins are those that are known, of one apiserver. They are safe for concurrent use.
type Plugins struct {
	all       []plugin
	evaluated []registered // of all; those that are switched off are not asked
}

// New returns the plugins of an apiserver; nil is one of which nothing is known, which has the
// plugins that are on by default.
func New(cfg *config.APIServer) *Plugins {
	p := &Plugins{}
	for _, r := range registry {
		r.off = !enabled(cfg, r.name())
		p.evaluated = append(p.evaluated, r)
		p.all = append(p.all, r.evaluated)
	}
	p.all = append(p.all, wordedPlugins()...)
	p.all = append(p.all, nodeRestriction{}) // its words are everybody's
	return p
}

// enabled tells whether a plugin is switched on.
func enabled(cfg *config.APIServer, plugin string) bool {
	minor, set := 0, config.Admission{}
	if cfg != nil {
		minor, set = cfg.Minor, cfg.Admission
	}
	switch {
	case slices.Contains(set.Enabled, plugin):
		return true
	case set.Exact || slices.Contains(set.Disabled, plugin):
		return false
	}
	return slices.Contains(release.Of(minor).Plugins, release.Plugin{Name: plugin, Default: true})
}

// Judge fills adm, which is empty, with what admission did to a request. q is not kept.
func (p *Plugins) Judge(q *Request, adm *verdict.Admission) {
	op := OperationOf(q.Attributes)
	if q.Attributes.Verb == request.VerbPatch && q.Code == 201 {
		op = Create // by an applied configuration
	}
	r := refusal{code: q.Code, message: q.Message, node: q.Node, a: q.Attributes}
	var by plugin
	if op != None && q.Decision == verdict.DecisionAllow {
		by, r.of = p.refusing(&r)
	}
	adm.Recorded = recorded(op, q.Decision, q.Code, by != nil)
	if q.Decision != verdict.DecisionAllow {
		return // admission never ran
	}
	if by != nil {
		r.by = by.name()
	}
	for i := range p.evaluated {
		if a := p.evaluated[i].compare(q, op, &r); a.Outcome != "" {
			adm.Answers = append(adm.Answers, a)
		}
	}
	if by != nil && adm.Of(r.by) == nil {
		adm.Answers = append(adm.Answers, verdict.AdmissionAnswer{Plugin: r.by, Name: r.of, Outcome: verdict.PluginRejected, Reason: r.words(), Code: q.Code})
	}
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
	case admitted(code):
		return verdict.AdmissionAdmitted
	}
	return ""
}

// admitted tells whether an answer's code shows that every plugin let the request pass.
func admitted(code int32) bool { return code >= 200 && code < 300 || code == 101 }
