// Package abac holds the replica's ABAC authorizer against Kubernetes' own, on generated policy
// files and requests. It has tests alone.
package abac
