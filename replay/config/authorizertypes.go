package config

import "strings"

// AuthorizerType is a type of authorizer, as --authorization-mode and
// AuthorizationConfiguration spell it.
type AuthorizerType string

// Authorizer types.
const (
	AlwaysAllow AuthorizerType = "AlwaysAllow"
	AlwaysDeny  AuthorizerType = "AlwaysDeny"
	ABAC        AuthorizerType = "ABAC"
	Node        AuthorizerType = "Node"
	RBAC        AuthorizerType = "RBAC"
	Webhook     AuthorizerType = "Webhook"
)

// types are the authorizer types of a kube-apiserver. What is read of its flags for one is in modeFlags.
var types = []AuthorizerType{AlwaysAllow, AlwaysDeny, ABAC, Webhook, RBAC, Node} //nolint:gochecknoglobals // constant table

func typeList() string {
	var names []string
	for _, t := range types {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// nameOf is the name every authorizer but a webhook must have in an
// AuthorizationConfiguration.
func nameOf(t AuthorizerType) string { return strings.ToLower(string(t)) }
