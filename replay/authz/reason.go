package authz

import (
	"strings"

	"github.com/retrial-io/retrial/replay/reason"
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
		if l.kind == kindRBAC {
			errs := ans.RBAC.Errors()
			if len(errs) == 0 {
				continue
			}
			if !line(l, "RBAC: ") {
				return false
			}
			n := errorsLen(errs)
			if len(rest) < n || !sameErrors(rest[:n], errs) {
				return false
			}
			rest = rest[n:]
			continue
		}
		if text := ans.silence(l); text != "" && !line(l, text) {
			return false
		}
	}
	return rest == ""
}

// silence is what an authorizer other than RBAC says when it has no opinion.
func (ans *Answer) silence(l *link) string {
	switch l.kind {
	case kindAlwaysDeny:
		return reason.AlwaysDeny
	case kindABAC:
		return reason.ABAC
	case kindNode:
		return ans.node.Reason
	}
	return ""
}

// Refusal is the reason a refusal would be recorded with, free authorizers being silent; of an
// apiserver whose release is not known without the names of authorizers.
func (ans *Answer) Refusal() string {
	var lines []string
	for i := range ans.chain.links {
		if ans.state(i) != noOpinion {
			continue
		}
		l := &ans.chain.links[i]
		text := ""
		if l.kind == kindRBAC {
			text = ans.RBAC.Reason()
		} else {
			text = ans.silence(l)
		}
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

// errorsLen is the length of the text behind "RBAC: " for these errors.
func errorsLen(errs []string) int {
	if len(errs) == 1 {
		return len(errs[0])
	}
	n := len("[]") + len(", ")*(len(errs)-1)
	for _, e := range errs {
		n += len(e)
	}
	return n
}

// sameErrors reports whether the text behind "RBAC: " of a recorded refusal is these errors
// in any order: one as it is, several as "[a, b]".
func sameErrors(text string, errs []string) bool {
	if len(errs) == 1 {
		return text == errs[0]
	}
	if len(errs) == 0 || len(text) != errorsLen(errs) || text[0] != '[' || text[len(text)-1] != ']' {
		return false
	}
	text = text[1 : len(text)-1]
	used := make([]bool, len(errs))
	for n := range errs {
		best := -1
		for i, e := range errs {
			if !used[i] && strings.HasPrefix(text, e) && (best < 0 || len(e) > len(errs[best])) {
				rest := text[len(e):]
				if rest == "" || strings.HasPrefix(rest, ", ") {
					best = i
				}
			}
		}
		if best < 0 {
			return false
		}
		used[best] = true
		text = text[len(errs[best]):]
		if n < len(errs)-1 {
			text = text[len(", "):]
		}
	}
	return text == ""
}
