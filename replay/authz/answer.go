package authz

import (
	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/verdict"
)

// settle makes the decision three-valued: authorizers that only add leave an allow alone.
func (ans *Answer) settle() {
	switch {
	case ans.chain.delegated && ans.Decision == verdict.DecisionError:
		ans.Decision = verdict.DecisionForbid // a review tells of the failure and allows nothing
	case ans.Lack == LackNothing:
	case ans.Decision == verdict.DecisionAllow:
		ans.Lack = LackNothing
	default:
		ans.Decision = verdict.DecisionNone
	}
	if ans.Decision == verdict.DecisionNone {
		ans.Authorizer = ""
	}
}

// Free reports whether an authorizer was asked that can have answered anything: a webhook.
// Decision is then what all others decide.
func (ans *Answer) Free() bool { return ans.free >= 0 }

// Certain returns the decision when it holds whatever is not known, else None.
func (ans *Answer) Certain() verdict.Decision {
	if ans.free >= 0 {
		return verdict.DecisionNone
	}
	return ans.Decision
}

// ByRBAC reports whether the decision is RBAC's allow through a grant.
func (ans *Answer) ByRBAC() bool {
	return ans.by >= 0 && ans.chain.links[ans.by].rbac() && ans.RBAC.Allowed
}

// ByMasters reports whether the decision is the privileged group's.
func (ans *Answer) ByMasters() bool {
	return ans.by == 0 // the first of every chain
}

// NodeAsked reports whether the node authorizer was asked about a node.
func (ans *Answer) NodeAsked() bool { return ans.node != (node.Answer{}) }

// CanFail reports whether an authorizer that was asked can have failed.
func (ans *Answer) CanFail() bool {
	if ans.ByMasters() {
		return false
	}
	c := ans.chain
	if c.assumed && !c.delegated {
		return true
	}
	for i := range c.links {
		l, st := &c.links[i], ans.state(i)
		switch {
		case st == notAsked || l.safe:
		case c.delegated, l.free && st == unknown, l.screens:
			return true
		}
	}
	return false
}

// Missing names what is not known, most useful first; nil if the answer is certain.
func (ans *Answer) Missing() []string {
	var out []string
	if ans.Decision == verdict.DecisionNone {
		out = append(out, ans.unseen...)
		for i := range ans.chain.links {
			l := &ans.chain.links[i]
			if ans.state(i) == unknown && !l.free && !(l.rbac() && len(ans.unseen) > 0) {
				out = append(out, l.missing(*ans))
			}
		}
	}
	for i := range ans.chain.links {
		if l := &ans.chain.links[i]; l.free && ans.state(i) == unknown {
			out = append(out, l.missing(*ans))
		}
	}
	return out
}

// silentOpen reports whether an authorizer asked before the one that decided may have allowed
// the request first, without a reason.
func (ans *Answer) silentOpen() bool {
	for i := range ans.by {
		if ans.chain.links[i].silent && ans.state(i) == unknown {
			return true
		}
	}
	return false
}

// RBACOpen reports whether RBAC was asked and could have allowed the request by what is not
// known of its objects.
func (ans *Answer) RBACOpen() bool {
	for i := range ans.chain.links {
		if ans.chain.links[i].rbac() && ans.state(i) == unknown {
			return true
		}
	}
	return false
}

// Gives reports whether the chain gives this reason with its decision, free authorizers being
// silent: one of RBAC's grants, nothing for whoever else allows; for a refusal the reasons of
// all that were asked, a line each, RBAC's errors in any order. scratch is for working in.
func (ans *Answer) Gives(reason string, scratch []byte) bool {
	switch ans.Decision {
	case verdict.DecisionAllow:
		if !ans.ByRBAC() {
			return reason == ""
		}
		if reason == "" {
			return ans.silentOpen()
		}
		for i := range ans.RBAC.Grants {
			scratch = ans.RBAC.Grants[i].AppendReason(scratch[:0])
			if string(scratch) == reason {
				return true
			}
		}
	case verdict.DecisionForbid:
		if ans.chain.delegated && ans.failed {
			return reason == ""
		}
		return ans.refuses(reason)
	case verdict.DecisionError:
		return true
	}
	return false
}
