package replay

import (
	"strings"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/graph"
)

// Authorizers of the chain, as Verdict.Authorizer names them.
const (
	AuthorizerMasters = "masters"
	AuthorizerNode    = "node"
	AuthorizerRBAC    = "rbac"
)

// moment is what the authorizers decide with: the policy as of one time.
type moment struct {
	view  *state.View // nil = no state at all
	graph node.Graph  // nil = nothing is known of pods
	at    time.Time
}

// answer is what the authorizer chain says about one request at one moment. decision is
// DecisionNone when what is missing could change it.
type answer struct {
	decision   Decision
	authorizer string
	rbac       rbacindex.Result // its Grants use the caller's buffer
	node       node.Answer      // zero for users that are no nodes
	isNode     bool
	missing    []string
	class      string // of the missing
}

// authorize asks the chain of a kube-apiserver: the privileged group, the node authorizer,
// RBAC. The first that allows ends it; none of them denies.
func (m *moment) authorize(user string, groups []string, a *Attributes, buf []rbacindex.Grant) answer {
	for _, g := range groups {
		if g == authn.GroupMasters {
			return answer{decision: DecisionAllow, authorizer: AuthorizerMasters}
		}
	}
	var ans answer
	if node.Is(user, groups) {
		ans.isNode = true
		ans.node = node.Authorize(user, a, m.graph, m.at)
		if ans.node.Allowed == graph.Present {
			ans.decision, ans.authorizer = DecisionAllow, AuthorizerNode
			return ans
		}
	}
	if m.view == nil {
		ans.class, ans.missing = ClassNoState, []string{"the cluster's roles and bindings"}
		return ans
	}

	request := rbacindex.Attributes{
		User: user, Groups: groups, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup, Resource: a.Resource,
		Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path,
	}
	ans.rbac = m.view.RBAC.Authorize(&request, buf)
	if ans.rbac.Allowed {
		ans.decision, ans.authorizer = DecisionAllow, AuthorizerRBAC
		return ans
	}
	// RBAC only adds: what is known does not allow it, but something unknown could.
	if unknown := m.couldAllow(&request, &ans.rbac); len(unknown) > 0 {
		ans.class, ans.missing = ClassUnknown, unknown
		if len(m.view.UnknownKinds) > 0 {
			ans.class = ClassNoState
		}
	}
	if ans.isNode && ans.node.Allowed == graph.Unknown {
		if ans.class == "" {
			ans.class = ClassNodeGraph
		}
		ans.missing = append(ans.missing, ans.node.Missing)
	}
	if ans.class == "" {
		ans.decision = DecisionForbid
	}
	return ans
}

// agrees reports whether a recorded decision and reason are what this answer produces.
// sameDecision tells the case apart in which only the reason is unexplained. worded are the
// answer's grants with their reasons; when nil, the reasons are worded in scratch.
func (ans *answer) agrees(rec *record, worded []Grant, scratch []byte) (ok, sameDecision bool) {
	if ans.decision != rec.decision {
		return false, false
	}
	if ans.decision == DecisionForbid {
		return ans.refusalReason(rec.reason), true
	}
	if ans.authorizer != AuthorizerRBAC {
		return rec.reason == "", true // masters and the node authorizer say nothing
	}
	if rec.reason == "" {
		// The node authorizer comes first and could have allowed it too.
		return ans.isNode && ans.node.Allowed == graph.Unknown, true
	}
	for i := range worded {
		if worded[i].Reason == rec.reason {
			return true, true
		}
	}
	if worded != nil {
		return false, true
	}
	for i := range ans.rbac.Grants {
		scratch = ans.rbac.Grants[i].AppendReason(scratch[:0])
		if string(scratch) == rec.reason {
			return true, true
		}
	}
	return false, true
}

// refusalReason reports whether a recorded reason is the refusal this answer produces: the
// node authorizer's text and the RBAC errors, joined by a line break, each left out when
// empty, the errors in any order.
func (ans *answer) refusalReason(reason string) bool {
	errs := ans.rbac.Errors()
	rest := reason
	if ans.isNode && ans.node.Reason != "" {
		after, ok := strings.CutPrefix(rest, ans.node.Reason)
		if !ok {
			return false
		}
		rest = after
		if len(errs) > 0 {
			if rest, ok = strings.CutPrefix(rest, "\n"); !ok {
				return false
			}
		}
	}
	if len(errs) == 0 {
		return rest == ""
	}
	text, ok := strings.CutPrefix(rest, "RBAC: ")
	return ok && sameErrors(text, errs)
}
