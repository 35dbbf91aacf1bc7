// Package configurations runs a real kube-apiserver in the configurations that people have
// beside the usual one, and judges every request it logged: OpenID Connect with CEL, webhooks
// for tokens and for authorization, ABAC, AlwaysAllow, an AuthorizationConfiguration that
// changes, an aggregated API server, and every credential the usual one knows.
//
// With RETRIAL_RECORDINGS=DIR each test replaces its recording in DIR, see
// scripts/record.sh.
package configurations
