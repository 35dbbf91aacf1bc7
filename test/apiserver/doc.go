// Package apiserver holds tests of the product against a real kube-apiserver: that it can be
// connected by what `retrial connect` prints, that its verdicts are the apiserver's decisions,
// that its suggestions can be applied, and that the real RBAC authorizer agrees with its
// proofs. See README.md.
package apiserver
