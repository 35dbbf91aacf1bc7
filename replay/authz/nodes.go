package authz

import (
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// nodes is the node authorizer: what belongs to a node is known from the graph.
type nodes struct{ rules node.Rules }

func newNodes(_ *config.Authorizer, cfg *config.APIServer) registered {
	return registered{&nodes{node.RulesOf(cfg)}, traits{silent: true}}
}

func (n *nodes) ask(ans *Answer, u *event.User, a *verdict.Attributes, m *Moment) stepState {
	if !node.Is(u.Username, u.Groups) {
		return noOpinion
	}
	ans.node = n.rules.Authorize(u.Username, a, m.Graph, m.At)
	switch ans.node.Allowed {
	case graph.Present:
		return allowed
	case graph.Unknown:
		ans.lack(LackNodeGraph)
		return unknown
	}
	return noOpinion
}

func (*nodes) silence(ans Answer) string { return ans.node.Reason }

func (*nodes) missing(ans Answer) string { return ans.node.Missing }

func (*nodes) explain(s *Shortfall, ans Answer, u *event.User, _ *verdict.Attributes, _ *Moment, _ int) {
	switch {
	case !node.Is(u.Username, u.Groups):
		s.Text = "the user is not a node (" + authn.PrefixNode + "… in the group " + authn.GroupNodes + ")"
	case ans.node.Allowed == graph.Unknown:
		s.Text = "not known: " + ans.node.Missing
	case ans.node.Reason != "":
		s.Text = ans.node.Reason
	default:
		s.Text = "no rule for nodes allows it"
	}
}
