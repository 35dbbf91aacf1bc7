// Package union holds the replica's chain against Kubernetes' own union of its own authorizers:
// the privileged group, AlwaysAllow, AlwaysDeny, ABAC, Node, RBAC and webhooks with match
// conditions, in every order. It has tests alone.
package union
