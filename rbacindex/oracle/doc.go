// Package oracle holds the replica and what is derived from it against the real Kubernetes
// authorizer. It is a module of its own, so that nothing else depends on k8s.io/kubernetes.
//
// Package compare puts generated questions to the index and to the real code, the command in
// cmd/oracle does so ten million times; what is here are tests of what is derived from the
// index.
package oracle
