package authz

import (
	"cmp"
	"strings"

	"github.com/retrial-io/retrial/replay/config"
)

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

// newLink makes a link of an authorizer that is configured.
func newLink(z *config.Authorizer, cfg *config.APIServer) link {
	named := *z
	named.Name = cmp.Or(named.Name, strings.ToLower(string(z.Type)))
	if newOf := registry[z.Type]; newOf != nil {
		return link{named.Name, newOf(&named, cfg)}
	}
	return link{named.Name, unmodelledType(z)}
}
