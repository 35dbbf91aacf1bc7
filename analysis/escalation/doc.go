// Package escalation computes what a subject of a cluster can become: the closure of the ways in which RBAC rights lead
// to more rights than are held.
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
// A user, a service account and a group are each taken by themselves, with the groups their name implies: every service
// account is in system:serviceaccounts, system:serviceaccounts:N and system:authenticated, every other user in
// system:authenticated. Every member may do what a group may do. [Closure.Reach] takes a user with more groups.
//
// Identities held by credential and identities assumed by impersonation are distinguished: a request is impersonated
// once, so the rights of an impersonated identity to impersonate are of no use.
//
// # Exactness
//
// An edge exists exactly if RBAC allows the identity all requests that its way takes (docs/escalations.md lists them),
// with the rights of the roles it may bind to itself added. Step.Presumes says what else it takes. Rights combined from
// two identities that one path reaches one after the other are not considered: a user and a group impersonated
// together, or a certificate for both, count as one or the other.
//
// The package is pure: no I/O, no clock.
package escalation
