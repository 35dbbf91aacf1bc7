// Package authorizertest holds rbacindex/authorizer against the real RBAC authorizer where it
// would take its place: behind the filters of a generic apiserver, on the same informers. It
// has tests and benchmarks only.
package authorizertest
