// Package requestinfo holds no code: its test puts generated requests through Kubernetes' own
// RequestInfo and authorization attributes, and through package replay/request by way of what
// an audit event keeps of them, and compares.
package requestinfo
