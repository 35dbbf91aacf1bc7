package leastpriv

import "github.com/retrial-io/retrial/rbacindex"

// maxFailures bounds the requests a Proof names.
const maxFailures = 10

// ground holds the policies that a subject's proofs are evaluated against.
type ground struct {
	// base is the policy without the subject's own bindings: what it allows does not come from the
	// suggestion.
	base *rbacindex.Snapshot
	// forced is base with one exact rule for each plain request on record: every policy that allows
	// them allows at least that.
	forced *rbacindex.Snapshot
	// handed is forced with what the roles the subject wrote need: a right to write one role is a
	// right to write others with rules it names, and escalate, which a create cannot limit to a
	// name, is a right to write any in that namespace.
	handed *rbacindex.Snapshot
}

// prove evaluates the whole history again.
func (h *history) prove(final *rbacindex.Snapshot, on *ground) Proof {
	p := Proof{Accesses: len(h.needs), Refusals: len(h.refusals)}
	for i := range h.leftOut {
		if n := &h.leftOut[i]; n.allowed(final) {
			p.Requests += n.count
			p.Accesses++
		} else {
			p.LeftOut += n.count
		}
	}
	fail := func(what string, n *need) {
		if len(p.Failures) < maxFailures {
			p.Failures = append(p.Failures, what+": "+n.String())
		}
	}
	for i := range h.needs {
		n := &h.needs[i]
		p.Requests += n.count
		if !n.allowed(final) {
			p.Refused += n.count
			fail("refused", n)
		}
	}
	for i := range h.refusals {
		n := &h.refusals[i]
		if !n.allowed(final) {
			continue
		}
		switch h.explains(n, on) {
		case allowedBefore:
			p.AllowedBefore++
		case allowedByKept:
			p.AllowedByKept++
		case comesWith:
			p.Implied++
		case nothingExplains:
			p.NewlyAllowed++
			fail("newly allowed", n)
		}
	}
	p.Holds = p.Refused == 0 && p.NewlyAllowed == 0
	return p
}

// explanation returns why a refusal on record may be allowed by a final state.
type explanation int

const (
	nothingExplains explanation = iota
	allowedBefore
	allowedByKept
	comesWith
)

func (h *history) explains(n *need, on *ground) explanation {
	switch {
	case h.before[anyGroups(n.key)]:
		return allowedBefore
	case n.allowed(on.base):
		return allowedByKept
	case n.allowed(on.forced), n.alternative && n.allowed(on.handed):
		return comesWith
	}
	return nothingExplains
}
