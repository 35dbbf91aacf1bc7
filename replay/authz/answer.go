package authz

import (
	"strings"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz/node"
)

// Decision is an authorization outcome, recorded or replayed. The zero value is "none", so
// that a forgotten assignment never reads as an allow.
type Decision uint8

// Decisions.
const (
	None   Decision = iota // no decision recorded, or none could be reached
	Allow                  // an authorizer allowed it
	Forbid                 // one refused it, or none allowed it
	Error                  // an authorizer failed and none allowed it: 500, and no decision
)

// String returns "none", "allow", "forbid" or "error"; allow and forbid are the audit
// annotation's own words.
func (d Decision) String() string {
	switch d {
	case Allow:
		return "allow"
	case Forbid:
		return "forbid"
	case Error:
		return "error"
	}
	return "none"
}

// Lack says what kind of thing is not known that could change an answer. Where several are
// not, the greatest is named.
type Lack uint8

// Lacks.
const (
	LackNothing   Lack = iota
	LackNodeGraph      // which objects belong to a node
	LackConfig         // part of the configuration
	LackObject         // a role or binding
	LackState          // all of a kind of object, or everything
)

// Answer is what a chain says about one request at one moment.
type Answer struct {
	// Decision is None when what is not known could change it, see Lack. A free authorizer
	// does not make it None: it is then what all others decide, see Free.
	Decision Decision
	// Authorizer decided, by its name in the configuration; "" when none did by itself.
	Authorizer string
	// RBAC is RBAC's answer, zero when it was not asked. Its Grants use the caller's buffer.
	RBAC rbacindex.Result
	// Lack is why Decision is None.
	Lack Lack
	// Line of the ABAC policy file that allows it, from 1; 0 for none.
	Line int

	chain  *Chain
	by     int    // index of the link that decided, -1 for none
	free   int    // index of the first link that can have answered anything, -1 for none
	code   uint64 // three bits a link, stepState
	failed bool   // one that has no opinion failed
	node   node.Answer
	unseen []string // what is not known of RBAC's objects; empty with RBAC unknown: everything
}

// noObjects is what is missing when there is no state at all.
const noObjects = "the cluster's roles and bindings"

// stepState is what became of one link.
type stepState uint64

const (
	notAsked stepState = iota
	noOpinion
	allowed
	denied  // refused because it failed
	unknown // asked; the answer is not known
	skipped // a match condition keeps it out
	broken  // no opinion because it failed
)

func (ans *Answer) state(i int) stepState { return stepState(ans.code>>(3*i)) & 7 }

func (ans *Answer) lack(l Lack) { ans.Lack = max(ans.Lack, l) }

// settle makes the decision three-valued: authorizers that only add leave an allow alone.
func (ans *Answer) settle() {
	switch {
	case ans.chain.delegated && ans.Decision == Error:
		ans.Decision = Forbid // a review tells of the failure and allows nothing
	case ans.Lack == LackNothing:
	case ans.Decision == Allow:
		ans.Lack = LackNothing
	default:
		ans.Decision = None
	}
	if ans.Decision == None {
		ans.Authorizer = ""
	}
}

// Free reports whether an authorizer was asked that can have answered anything: a webhook.
// Decision is then what all others decide.
func (ans *Answer) Free() bool { return ans.free >= 0 }

// Certain returns the decision when it holds whatever is not known, else None.
func (ans *Answer) Certain() Decision {
	if ans.free >= 0 {
		return None
	}
	return ans.Decision
}

// ByRBAC reports whether the decision is RBAC's allow through a grant.
func (ans *Answer) ByRBAC() bool {
	return ans.by >= 0 && ans.chain.links[ans.by].kind == kindRBAC && ans.RBAC.Allowed
}

// ByMasters reports whether the decision is the privileged group's.
func (ans *Answer) ByMasters() bool {
	return ans.by >= 0 && ans.chain.links[ans.by].kind == kindMasters
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
		case st == notAsked || l.kind == kindMasters || l.kind == kindPaths:
		case c.delegated, l.kind == kindWebhook && st == unknown, l.kind == kindUnknown:
			return true
		}
	}
	return false
}

// Missing names what is not known, most useful first; nil when the answer is certain.
func (ans *Answer) Missing() []string {
	var out []string
	if ans.Decision == None {
		out = append(out, ans.unseen...)
		for i := range ans.chain.links {
			l := &ans.chain.links[i]
			switch {
			case ans.state(i) != unknown:
			case l.kind == kindRBAC && len(ans.unseen) == 0:
				out = append(out, noObjects)
			case l.kind == kindNode:
				out = append(out, ans.node.Missing)
			case l.kind != kindRBAC && l.kind != kindWebhook:
				out = append(out, l.unknown)
			}
		}
	}
	for i := range ans.chain.links {
		if l := &ans.chain.links[i]; l.kind == kindWebhook && ans.state(i) == unknown {
			out = append(out, l.missing())
		}
	}
	return out
}

// missing words the answer of a webhook that cannot be asked again.
func (l *link) missing() string {
	if l.unknown != "" {
		return "not-evaluable:webhook " + l.name + " (" + l.unknown + ")"
	}
	return "not-evaluable:webhook " + l.name
}

// silentOpen reports whether an authorizer asked before the one that decided may have allowed
// the request first, without a reason.
func (ans *Answer) silentOpen() bool {
	for i := range ans.by {
		if k := ans.chain.links[i].kind; (k == kindNode || k == kindABAC) && ans.state(i) == unknown {
			return true
		}
	}
	return false
}

// RBACOpen reports whether RBAC was asked and could have allowed the request by what is not
// known of its objects.
func (ans *Answer) RBACOpen() bool {
	for i := range ans.chain.links {
		if ans.chain.links[i].kind == kindRBAC && ans.state(i) == unknown {
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
	case Allow:
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
	case Forbid:
		if ans.chain.delegated && ans.failed {
			return reason == ""
		}
		return ans.refuses(reason)
	case Error:
		return true
	}
	return false
}

// refuses takes a recorded refusal apart along the chain.
func (ans *Answer) refuses(reason string) bool {
	rest, first := reason, true
	line := func(text string) bool {
		if !first {
			var ok bool
			if rest, ok = strings.CutPrefix(rest, "\n"); !ok {
				return false
			}
		}
		first = false
		var ok bool
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
			if !line("RBAC: ") {
				return false
			}
			n := errorsLen(errs)
			if len(rest) < n || !sameErrors(rest[:n], errs) {
				return false
			}
			rest = rest[n:]
			continue
		}
		if text := ans.silence(l); text != "" && !line(text) {
			return false
		}
	}
	return rest == ""
}

// silence is what an authorizer other than RBAC says when it has no opinion.
func (ans *Answer) silence(l *link) string {
	switch l.kind {
	case kindAlwaysDeny:
		return reasonAlwaysDeny
	case kindABAC:
		return reasonABAC
	case kindNode:
		return ans.node.Reason
	}
	return ""
}

// Refusal is the reason a refusal would be recorded with, free authorizers being silent.
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
		if text != "" {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
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
