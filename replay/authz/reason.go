package authz

import (
	"strings"

	"github.com/retrial-io/retrial/replay/reason"
)

// delegateName is what a server that asks its kube-apiserver names that in its reasons.
const delegateName = "kubernetes.io/webhook"

// refuses takes a recorded refusal apart along the chain, with and without the names of the
// authorizers where either may be.
func (ans *Answer) refuses(recorded string) bool {
	c := ans.chain
	if c.delegated && c.outer != unnamed {
		if inner, ok := strings.CutPrefix(recorded, delegateName+": "); ok && inner != "" {
			recorded = inner
		} else if c.outer == named && recorded != "" {
			return false
		}
	}
	return c.naming != named && ans.refusesAs(recorded, false) || c.naming != unnamed && ans.refusesAs(recorded, true)
}

// refusesAs is refuses, with names or without.
func (ans *Answer) refusesAs(recorded string, names bool) bool {
	w, first := reason.Words{Rest: recorded}, true
	for i := range ans.chain.links {
		l := &ans.chain.links[i]
		if ans.state(i) != noOpinion {
			continue
		}
		var text string
		var errs []string
		if l.rbac() {
			errs = ans.RBAC.Errors()
		} else {
			text = l.silence(*ans)
		}
		if text == "" && len(errs) == 0 {
			continue
		}
		if !first {
			w.Take("\n")
		}
		first = false
		if names {
			w.Take(l.name)
			w.Take(": ")
		}
		if w.Take(text); len(errs) > 0 {
			takeErrors(&w, errs)
		}
		if w.Failed {
			return false
		}
	}
	return w.Rest == ""
}

// Refusal returns the reason a refusal would be recorded with, free authorizers being silent; of an
// apiserver whose release is not known without the names of authorizers.
func (ans *Answer) Refusal() string {
	var lines []string
	for i := range ans.chain.links {
		if ans.state(i) != noOpinion {
			continue
		}
		l := &ans.chain.links[i]
		text := l.silence(*ans)
		if text == "" {
			continue
		}
		if ans.chain.naming == named {
			text = l.name + ": " + text
		}
		lines = append(lines, text)
	}
	reason := strings.Join(lines, "\n")
	if ans.chain.outer == named && reason != "" {
		reason = delegateName + ": " + reason
	}
	return reason
}

// Contradictions on what is recorded of the authorizers. The set is closed; verdicts list them
// beside the contradictions on identity of package authn.
const (
	ContradictionMastersAsked = "masters-not-shortcut"
	ContradictionUnrecorded   = "authz-annotation-missing"
	ContradictionVersion      = "version-differs"
)
