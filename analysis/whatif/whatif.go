// Package whatif says what a draft of RBAC objects would refuse and allow of what was recorded, before anybody applies it.
//
//	draft (YAML, JSON) ──Parse──▶ Objects ──Simulate──▶ Simulation: the policy before and after
//	                                                        │
//	Event + Verdict ──Observe──▶ Comparison: accesses ──────┴──Report──▶ Access: class, requests, grants
//
// Every access is asked of the whole authorizer chain of the apiserver, once by each policy: what another authorizer allows, a draft of
// RBAC does not revoke. So are the checks that requests imply and the log shows: to escalate, to bind, to impersonate, to sign.
//
// The package is pure: no I/O, no clock.
package whatif

import (
	"time"

	"github.com/retrial-io/retrial/verdict"
)

// Class says what becomes of an access.
type Class string

// Classes.
const (
	Revoked      Class = "REVOKED"       // it was allowed, and would be refused
	Gained       Class = "GAINED"        // it was refused, and would be allowed
	MaybeRevoked Class = "MAYBE_REVOKED" // it may be refused: what is not known of the policy decides
	MaybeGained  Class = "MAYBE_GAINED"  // it may be allowed
	Unknown      Class = "UNKNOWN"       // a webhook authorizer decides, whose answer no log holds
	Unchanged    Class = "UNCHANGED"
)

// Classes returns all classes, those that break something first.
func Classes() []Class {
	return []Class{Revoked, MaybeRevoked, Unknown, Gained, MaybeGained, Unchanged}
}

// SourceRBAC is the source of what an authorizer decides.
const SourceRBAC = "rbac"

// Counts are numbers by class.
type Counts struct {
	Revoked      int64 `json:"revoked"`       // allowed, and then refused
	Gained       int64 `json:"gained"`        // refused, and then allowed
	MaybeRevoked int64 `json:"maybe_revoked"` // perhaps refused: what is not known decides
	MaybeGained  int64 `json:"maybe_gained"`  // perhaps allowed
	Unknown      int64 `json:"unknown"`       // a webhook decides
	Unchanged    int64 `json:"unchanged"`     // as they are
}

// Of returns the number of a class.
func (c *Counts) Of(class Class) *int64 {
	switch class {
	case Revoked:
		return &c.Revoked
	case Gained:
		return &c.Gained
	case MaybeRevoked:
		return &c.MaybeRevoked
	case MaybeGained:
		return &c.MaybeGained
	case Unknown:
		return &c.Unknown
	}
	return &c.Unchanged
}

// Access is something that a subject asked for, or that one of its requests implied, and what becomes of it.
type Access struct {
	Source      string   `json:"source"` // rbac
	Subject     string   `json:"subject"`
	Groups      []string `json:"groups"`
	Verb        string   `json:"verb"`
	APIGroup    string   `json:"apiGroup"` // "" is the core group
	Resource    string   `json:"resource"`
	Subresource string   `json:"subresource"`
	Namespace   string   `json:"namespace"`
	Name        string   `json:"name,omitempty"`
	Path        string   `json:"path,omitempty"` // of a request about no resource
	// Check is the check behind a request that this is, as verdicts name it; left out for the request itself.
	Check   string    `json:"check,omitempty"`
	Class   Class     `json:"class"`
	Count   int64     `json:"count"`   // requests
	Allowed int64     `json:"allowed"` // of them, when they came
	Refused int64     `json:"refused"` // of them, when they came
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	// Before and After are the grants that allow it, by each policy: eight of each at most.
	Before []verdict.GrantNames `json:"before"`
	After  []verdict.GrantNames `json:"after"`
	// Because are the objects of the draft by which it changes.
	Because []string `json:"because"`
	// Missing is what would have to be known to tell.
	Missing []string `json:"missing,omitempty"`
	// Sample are audit IDs of such requests, three at most, while events are kept.
	Sample []string `json:"sample"`
}
