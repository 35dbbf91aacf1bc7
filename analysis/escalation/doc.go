// Package escalation works out what a subject of a cluster can become: the closure of the
// ways in which RBAC rights lead to more rights than are held.
//
//	Snapshot, service accounts ──▶ holdings: who holds which role where          (holdings.go)
//	                                  │  roles reduced to the abilities that ways need (ability.go)
//	                                  ▼
//	                       edges: identity ─way▶ identity | namespace | goal     (graph.go, ask.go by ways.go, change.go)
//	                                  │  namespaces are nodes: one edge each, not one an account
//	                                  ▼
//	        Dijkstra from the goals: the shortest path of everybody at once      (search.go)
//	                                  ▼
//	        Path: steps, each with the requests it takes and all their grants    (path.go)
//
// # Identities
//
// A user, a service account and a group are each taken by themselves, with the groups their
// name implies: every service account is in system:serviceaccounts, system:serviceaccounts:N
// and system:authenticated, everybody else in system:authenticated. What a group may do is
// every member's. [Closure.Reach] takes a user with more groups.
//
// Held by credential and assumed by impersonation are told apart: a request is impersonated
// once, so that nobody impersonates by what an impersonated identity may impersonate.
//
// # Exactness
//
// An edge is there exactly when RBAC allows all requests its way takes (docs/escalations.md
// lists them) to the identity, with the rights of the roles it may bind to itself added.
// What else it takes is said by Step.Presumes. Rights put together out of two identities that
// one path reaches one after the other are not: a user and a group impersonated together, or
// a certificate for both, count as the one or the other.
//
// The package is pure: no I/O, no clock.
package escalation
