// Package leastpriv derives the least RBAC a subject needs from what it was recorded
// doing, as a change set with a proof.
//
//	Event + Verdict ──▶ Collector: distinct requests a subject, hidden checks
//	                        │
//	final policy (State) ───┴──▶ Suggestion: apply, remove, rollback
//	                                   └──▶ Proof: the recorded history against the final state
//
// RBAC only adds and a roleRef cannot be changed: new roles beside old bindings take
// nothing away. So a suggestion removes every binding that names the subject itself and
// applies roles that hold what was used and nothing gives any more. What groups give, it
// cannot take from one member alone: it builds on that, and names it (Suggestion.Keeps).
//
// Rules hold what was used exactly: no verb follows from another, and nothing is written
// as a wildcard unless asked. docs/suggest.md states every rule.
//
// The package is pure: no I/O, no clock.
package leastpriv

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// Label and Manager mark the objects a suggestion makes; SubjectAnnotation says for whom.
const (
	Label             = "app.kubernetes.io/managed-by"
	Manager           = "retrial"
	SubjectAnnotation = "retrial.io/subject"
)

// Suggestion is the change that leaves a subject what it was recorded needing.
type Suggestion struct {
	Subject string `json:"subject"` // user name, as authorized
	// Groups are the group sets the subject was seen with, each sorted.
	Groups [][]string `json:"groups"`
	// System subjects belong to Kubernetes itself, see System.
	System bool `json:"system"`
	// Seen subjects made requests; of others it is only known what they hold, all of it
	// unused, and Groups are what their name alone gives them.
	Seen   bool     `json:"seen"`
	Window Window   `json:"window"` // what the recording covers
	Excess Excess   `json:"excess"` // of what it holds, before and after
	Proof  Proof    `json:"proof"`  // the recorded accesses, replayed
	Apply  Objects  `json:"apply"`  // objects to write
	Remove []Remove `json:"remove"` // bindings to delete
	// Rollback are the objects as they were. What Apply created and Rollback does not hold
	// is to be deleted.
	Rollback Objects  `json:"rollback"`
	Unused   []Unused `json:"unused"` // what it holds and never used
	Keeps    []Keep   `json:"keeps"`  // bindings that stay
	// Gaps say in words what the suggestion does not know or cannot do.
	Gaps []string `json:"gaps"`
}

// Changes tells whether there is anything to apply or to remove.
func (s *Suggestion) Changes() bool { return len(s.Apply)+len(s.Remove) > 0 }

// Window is what was observed of a subject.
type Window struct {
	// From and To are the first and the last request of the whole recording.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Requests were recorded of the subject, those it made as somebody else included. Judged
	// of them could be compared with the replica's decision (match, drift or ambiguous).
	Requests int64 `json:"requests"`
	Judged   int64 `json:"judged"`
	// Coverage is Judged ÷ Requests, 0 when there are none.
	Coverage float64 `json:"coverage"`
	// Gaps are what the whole recording lacks, see Recording.
	Gaps []string `json:"gaps"`
}

// Proof is the outcome of replaying a subject's recorded history against a final state.
type Proof struct {
	// Holds: nothing that was allowed and needed is refused, nothing is newly allowed.
	Holds bool `json:"holds"`
	// Requests that RBAC allowed, and hidden checks that passed, were asked again; Accesses
	// are the distinct ones among them.
	Requests int64 `json:"requests"`
	Accesses int   `json:"accesses"`
	Refused  int64 `json:"refused"`
	// Refusals are distinct refusals on record that were asked again.
	Refusals int `json:"refusals"`
	// NewlyAllowed refusals would now be allowed, and never were.
	NewlyAllowed int `json:"newlyAllowed"`
	// AllowedBefore refusals would be allowed, as they were at another time of the window.
	AllowedBefore int `json:"allowedBefore"`
	// AllowedByKept refusals are allowed by what the subject's groups hold by now, with or
	// without the suggestion.
	AllowedByKept int `json:"allowedByKept"`
	// Implied refusals are allowed by any policy that allows the needs: a request by name
	// where one without a name was allowed later, a role whose rules were all used.
	Implied int `json:"implied"`
	// LeftOut requests cannot be allowed without a wildcard and are not asked.
	LeftOut int64 `json:"leftOut"`
	// Failures name the first requests behind Refused and NewlyAllowed.
	Failures []string `json:"failures,omitempty"`
}

// Excess weighs what is granted and was never used, by danger; see Weight. Before and After
// count the subject's own bindings, Kept what its groups hold, which the change leaves.
type Excess struct {
	Before int `json:"before"`
	After  int `json:"after"`
	Kept   int `json:"kept"`
}

// Remove takes a subject out of a binding.
type Remove struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Action is "delete" when the subject is the only one of the binding, else "replace"
	// by Object.
	Action   string           `json:"action"`
	Subjects []rbacv1.Subject `json:"subjects"` // that are taken out
	Object   Object           `json:"object,omitempty"`

	key rbacindex.Key
}

// Actions of a Remove.
const (
	ActionDelete  = "delete"
	ActionReplace = "replace"
)

// Unused is a rule of one of the subject's own bindings with what was never used of it.
type Unused struct {
	Binding string `json:"binding"` // Kind/name or Kind/namespace/name
	Role    string `json:"role"`
	Rule    int    `json:"rule"`  // index in the role
	Whole   bool   `json:"whole"` // nothing of the rule was used
	// Grants are what is unused, as "verb resource.group" or "verb /path"; the first 20.
	Grants []string `json:"grants"`
	More   int      `json:"more,omitempty"`
	Excess int      `json:"excess"`
	// TooLarge: the rule takes too much work to tell what was used of it. Excess is the least
	// it can be.
	TooLarge bool `json:"tooLarge,omitempty"`
}

// Keep is a binding that gives the subject something through a group.
type Keep struct {
	Binding string `json:"binding"`
	Role    string `json:"role"`
	Group   string `json:"group"`
	// Relied are the distinct recorded requests that the binding allows.
	Relied int `json:"relied"`
	Excess int `json:"excess"` // weight of what it gives and the subject never used
	// TooLarge: it takes too much work to tell; Relied and Excess are the least they can be,
	// and Undoes may lack some.
	TooLarge bool `json:"tooLarge,omitempty"`
	// Undoes are unused grants that the suggestion takes away and this binding still gives;
	// the first 20. They make the change partly pointless.
	Undoes []string `json:"undoes,omitempty"`
}
