// Package lineage follows credentials across events and finds what no single event shows: a token with two identities or in two places
// at once, an audit ID that was used again, bursts of refused credentials, and requests that reached an aggregated API server past the
// kube-apiserver. [Trail] follows credentials from their issue through every use, [Twins] joins the two events of a request through an
// aggregated server.
//
// The package is pure: no I/O, no clock, no logging. What it remembers is bounded.
package lineage
