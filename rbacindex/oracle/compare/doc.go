// Package compare holds the index against the real Kubernetes code: the same questions, on
// the same generated policies, to both.
//
//	seed ──generator──▶ Policy ──▶ real authorizer, resolver, policy-based storage ──┐
//	          │  writes ──Apply / New──▶ rbacindex.Snapshot ─────────────────────────┤ checker
//	          └──questions───────────────────────────────────────────────────────────┘   │
//	                                                          disagreement ──shrink──▶ Case
//
// Questions are decisions with all their grants and errors, the rules of a subject, whether
// rules cover rules, and whether the check against escalation lets a write pass. Policies
// are small and change in small steps, so that a minute sees hundreds of thousands of them;
// names are few and odd, so that nearly every feature meets every other.
//
// Everything is a function of the seed: how many workers there are changes no question.
package compare
