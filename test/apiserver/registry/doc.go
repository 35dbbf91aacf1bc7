// Package registry holds what the product keeps of a cluster against Kubernetes' own registry:
// random sequences of requests are made of the apiserver's generic store, behind the handlers and
// the audit of a generic API server, all in one process, on an etcd in memory and with a clock of
// its own. What the audit webhook would have posted is read as the product reads it, and after
// every request what is kept must be what the registry holds, or be said to be unknown.
package registry
