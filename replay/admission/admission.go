// Package admission tells what the admission phase of an apiserver did to a request: which plugin
// refused it, by the words of the refusal, and of plugins that can be evaluated again whether
// the record agrees.
//
// The package is pure.
package admission

import (
	"slices"
	"strings"

	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/release"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// Plugins are those that are known, of one apiserver. They are safe for concurrent use.
type Plugins struct {
	all       []plugin
	evaluated []registered // of all; those that are off are not asked
}

// New returns the plugins of an apiserver as it is configured.
func New(cfg *config.APIServer) *Plugins {
	return plugins(cfg, off)
}

// Assume returns the plugins of an apiserver whose configuration nobody gave: those that the release
// has on by default, and of the others whatever shows. The minor version 0 is one that nobody knows.
func Assume(minor int) *Plugins {
	return plugins(&config.APIServer{Minor: minor}, assumedOff)
}

// plugins returns the plugins that are known, each on, or otherwise used.
func plugins(cfg *config.APIServer, otherwise use) *Plugins {
	p := &Plugins{}
	for _, r := range registry {
		if r.use = otherwise; enabled(cfg, r.name()) {
			r.use = on
		}
		p.evaluated = append(p.evaluated, r)
		p.all = append(p.all, r.evaluated)
	}
	p.all = append(append(p.all, wordedPlugins()...), nodeRestriction{}) // its words are everybody's
	return p
}

// enabled reports whether a plugin is switched on.
func enabled(cfg *config.APIServer, plugin string) bool {
	switch set := &cfg.Admission; {
	case slices.Contains(set.Enabled, plugin):
		return true
	case set.Exact || slices.Contains(set.Disabled, plugin):
		return false
	}
	return slices.Contains(release.Of(cfg.Minor).Plugins, release.Plugin{Name: plugin, Default: true})
}

// Judge fills adm, which is empty, with what admission did to a request. q is not kept.
func (p *Plugins) Judge(q *Request, adm *verdict.Admission) {
	op := OperationOf(q.Attributes)
	if q.Attributes.Verb == request.VerbPatch && q.Code == 201 {
		op = Create // by an applied configuration
	}
	if op == None || q.Decision != verdict.DecisionAllow {
		adm.Recorded = recorded(op, q.Decision, q.Code, false)
		return // admission never ran: no plugin is asked
	}
	r := &q.refusal
	*r = refusal{code: q.Code, message: q.Message, node: q.Node, a: q.Attributes}
	r.by, r.of = p.refusing(r)
	adm.Recorded = recorded(op, q.Decision, q.Code, r.by != "")
	for i := range p.evaluated {
		if a := p.evaluated[i].compare(q, op, r); a.Outcome != "" {
			adm.Answers = append(adm.Answers, a)
		}
	}
	if r.by != "" && adm.Of(r.by) == nil {
		adm.Answers = append(adm.Answers, verdict.AdmissionAnswer{Plugin: r.by, Name: r.of, Outcome: verdict.PluginRejected,
			Reason: r.words(), Code: q.Code})
	}
}

// refusing attributes a refusal to a plugin, "" if none words it like that: API validation,
// conflicts, secondary authorization checks and handlers refuse too.
func (p *Plugins) refusing(r *refusal) (by, of string) {
	if r.code < 400 || r.message == "" {
		return "", ""
	}
	_, r.inner, r.forbidden = strings.Cut(r.message, " is forbidden: ")
	r.inner = strings.TrimPrefix(r.inner, "[")
	if r.forbidden && strings.HasPrefix(r.inner, `User "`) {
		return "", "" // an authorization text: a secondary check
	}
	for _, x := range p.all {
		if of, ok := x.refused(r); ok {
			return x.name(), verdict.Clip(of)
		}
	}
	return "", ""
}

// recorded says what admission did as far as the event tells: "" if it does not.
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
