// Package oracle holds the replica and what is derived from it against the real Kubernetes
// authorizer. It is a module of its own, so that nothing else depends on k8s.io/kubernetes,
// and has tests only.
package oracle
