package authz

import (
	"strings"
)

// delegateName is what a server that asks its kube-apiserver names that in its reasons.
const delegateName = "kubernetes.io/webhook"

// refuses takes a recorded refusal apart along the chain, with and without the names of the
// authorizers where either may be.
func (ans *Answer) refuses(reason string) bool {
	c := ans.chain
	if c.delegated && c.outer != unnamed {
		if inner, ok := strings.CutPrefix(reason, delegateName+": "); ok && inner != "" {
			reason = inner
		} else if c.outer == named && reason != "" {
			return false
		}
	}
	return c.naming != named && ans.refusesAs(reason, false) || c.naming != unnamed && ans.refusesAs(reason, true)
}

// refusesAs is refuses, with names or without.
func (ans *Answer) refusesAs(reason string, names bool) bool {
	rest, first := reason, true
	line := func(l *link, text string) bool {
		var ok bool
		if !first {
			if rest, ok = strings.CutPrefix(rest, "\n"); !ok {
				return false
			}
		}
		first = false
		if names {
			if rest, ok = strings.CutPrefix(rest, l.name); !ok {
				return false
			}
			if rest, ok = strings.CutPrefix(rest, ": "); !ok {
				return false
			}
		}
		rest, ok = strings.CutPrefix(rest, text)
		return ok
	}
	for i := range ans.chain.links {
		if ans.state(i) != noOpinion {
			continue
		}
		l := &ans.chain.links[i]
		if x, ok := l.authorizer.(*rbac); ok {
			if len(ans.RBAC.Errors()) == 0 {
				continue
			}
			if !line(l, "") {
				return false
			}
			if rest, ok = x.cut(ans, rest); !ok {
				return false
			}
			continue
		}
		if text := l.silence(*ans); text != "" && !line(l, text) {
			return false
		}
	}
	return rest == ""
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
