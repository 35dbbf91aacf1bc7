package authz

import (
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/verdict"
)

// authorizer is one authorizer of a chain, as it is configured. What of an answer is an
// authorizer's own is kept in the Answer: authorizers are shared by all requests.
type authorizer interface {
	// ask answers a request, or says that it is not asked, or that the answer is not known. It
	// notes in the answer what the other methods need, and what kind of thing is lacking.
	ask(ans *Answer, u *event.User, a *verdict.Attributes, m *Moment) stepState
	// silence is what it adds to the reason of a refusal where it has no opinion, "" for nothing.
	silence(ans Answer) string
	// missing names what is not known of an answer that is not.
	missing(ans Answer) string
	// explain says why it did not allow the request, and what nearly did, at most limit things.
	explain(s *Shortfall, ans Answer, u *event.User, a *verdict.Attributes, m *Moment, limit int)
}

// traits are what the chain has to know of an authorizer besides its answers.
type traits struct {
	local   bool // a delegating server asks it itself, and not its kube-apiserver
	safe    bool // it cannot fail
	free    bool // its answer is in no log, and can have been anything
	silent  bool // it allows without a reason, and what it allows is not always known
	screens bool // where its answer is not known, neither is whether anybody behind it was asked
}

// registered is an authorizer with its traits.
type registered struct {
	authorizer
	traits
}

// registry makes the authorizers that can be configured.
//
//nolint:gochecknoglobals // constant table
var registry = map[config.AuthorizerType]func(z *config.Authorizer, cfg *config.APIServer) registered{
	config.AlwaysAllow: newAlwaysAllow,
	config.AlwaysDeny:  newAlwaysDeny,
	config.ABAC:        newABACFile,
	config.Node:        newNodes,
	config.RBAC:        newRBAC,
	config.Webhook:     newWebhookAuthorizer,
}
