// Package leastpriv derives the least RBAC a subject needs from what it was recorded
// doing, as a change set with a proof.
//
//	Event + Verdict, or Use ──▶ Collector: distinct requests a subject, hidden checks
//	                        │
//	final policy (State) ───┴──▶ Suggestion: apply, remove, rollback
//	                                   └──▶ Proof: the recorded history against the final state
//
// A suggestion narrows each role that bindings naming the subject give it to the verbs on
// resources that were used through it, in place where nobody else holds the role, as a
// copy otherwise, because RBAC only adds and a roleRef cannot be changed. With
// Options.Strict it removes every such binding instead and applies roles that hold exactly
// what was used. What groups give, it cannot take from one member alone: it builds on that,
// and names it (Suggestion.Keeps). docs/suggest.md states every rule.
//
// The package is pure: no I/O, no clock.
package leastpriv

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// Label and Manager mark the objects that a suggestion creates; SubjectAnnotation names the subject
// they are for.
const (
	Label             = "app.kubernetes.io/managed-by"
	Manager           = "retrial"
	SubjectAnnotation = "retrial.io/subject"
)

// Suggestion is the change that leaves a subject what the recording shows it needs.
type Suggestion struct {
	Subject string `json:"subject"` // user name, as authorized; or the group, role or binding that the change is for
	// What the change is for: subject, group, role or binding.
	What string `json:"what"`
	// Groups are the group sets the subject was seen with, each sorted.
	Groups [][]string `json:"groups"`
	// System subjects belong to Kubernetes itself, see System.
	System bool `json:"system"`
	// Form of the change: narrow, strict (roles of its own that hold exactly what it used) or unchanged, where neither can be proved.
	Form string `json:"form"`
	// Seen subjects made requests. Of others only their rights are known, all of them unused, and
	// Groups are those that their names imply.
	Seen   bool   `json:"seen"`
	Window Window `json:"window"` // what the recording covers
	// Maturity says whether what the subject needs is known.
	Maturity Maturity `json:"maturity"`
	Excess   Excess   `json:"excess"` // of what it holds, before and after
	Proof    Proof    `json:"proof"`  // the recorded accesses, replayed
	Apply    Objects  `json:"apply"`  // objects to write
	Remove   []Remove `json:"remove"` // bindings, and roles that nobody holds any more, to delete
	// Added are verbs that the roles to apply hold although nobody used them, and why.
	Added []Added `json:"added"`
	// Why says of each rule of the roles in Apply why it stays.
	Why []RuleReason `json:"why"`
	// Owned are the objects to write or to remove that something else writes: the change has to be made there.
	Owned []Owned `json:"owned"`
	// Rollback holds the objects as they were. What Apply created and Rollback does not hold is to
	// be deleted.
	Rollback Objects  `json:"rollback"`
	Unused   []Unused `json:"unused"` // what it holds and never used
	Keeps    []Keep   `json:"keeps"`  // bindings that stay
	// Gaps describe what the suggestion does not know or cannot do.
	Gaps []string `json:"gaps"`
	// Size counts Apply, Remove and Rollback, also where they are left out.
	Size Size `json:"size"`

	reasons keptOf
}

// What suggestions are for.
const (
	WhatSubject = "subject"
	WhatGroup   = "group"
	WhatRole    = "role"
	WhatBinding = "binding"
)

// Forms of a suggestion.
const (
	FormNarrow    = "narrow"
	FormStrict    = "strict"
	FormUnchanged = "unchanged"
)

// Added is a verb that a narrowed role keeps although nobody used it, and why.
type Added struct {
	Role     string `json:"role"`     // that it is kept of: Kind/name or Kind/namespace/name
	Verb     string `json:"verb"`     // that was not used
	Resource string `json:"resource"` // as "resource.group"
	Reason   string `json:"reason"`   // with which use it goes
}

// RuleReason says why a rule of a role to apply stays.
type RuleReason struct {
	Role string `json:"role"` // that is applied: Kind/name or Kind/namespace/name
	Rule int    `json:"rule"` // index in the role
	// Requests counts those on record, and the checks behind them, that Subjects need the rule for: without their own bindings they would
	// be refused.
	Requests int64     `json:"requests"`
	Subjects []string  `json:"subjects"` // who needs it
	Days     int       `json:"days"`     // distinct days (UTC) on which it was needed
	Last     time.Time `json:"last"`     // when it was needed last; zero: never
	// Texts say so in words, and why verbs stay that nobody used: a line each. They are the comments of the YAML.
	Texts []string `json:"texts"`
}

// Owned is an object that a release, an application or another object owns, and writes again.
type Owned struct {
	Object string `json:"object"` // Kind/name or Kind/namespace/name
	Owner  string `json:"owner"`  // such as "Helm release shop/web"
}

// Size counts the objects of a change.
type Size struct {
	Apply    int `json:"apply"`    // how many there are to write
	Remove   int `json:"remove"`   // how many bindings and roles there are to delete
	Rollback int `json:"rollback"` // how many undo it
}

// Counted leaves out the change, of which only the size is kept.
func (s *Suggestion) Counted() {
	s.Apply, s.Remove, s.Rollback, s.Why = Objects{}, []Remove{}, Objects{}, []RuleReason{}
}

// Changes reports whether there is anything to apply or to remove.
func (s *Suggestion) Changes() bool { return s.Size.Apply+s.Size.Remove > 0 }

// Window is what was observed of a subject.
type Window struct {
	// From and To are the first and the last request of the whole recording.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Requests were recorded of the subject, including those it made as another user. Judged of
	// them could be compared with the replica's decision (match, drift or ambiguous).
	Requests int64 `json:"requests"`
	Judged   int64 `json:"judged"`
	// Coverage is Judged ÷ Requests, 0 if there are none.
	Coverage float64 `json:"coverage"`
	// Gaps are what the whole recording lacks, see Recording.
	Gaps []string `json:"gaps"`
}

// Proof is the outcome of replaying a subject's recorded history against a final state.
type Proof struct {
	// Holds means that nothing that was allowed and needed is refused, and nothing is newly
	// allowed.
	Holds bool `json:"holds"`
	// Requests counts the requests that RBAC allowed and the hidden checks that passed, all
	// evaluated again; Accesses counts the distinct ones.
	Requests int64 `json:"requests"`
	Accesses int   `json:"accesses"`
	Refused  int64 `json:"refused"`
	// Refusals counts the distinct refusals on record that were evaluated again.
	Refusals int `json:"refusals"`
	// NewlyAllowed counts refusals that would be allowed now, and never were.
	NewlyAllowed int `json:"newlyAllowed"`
	// AllowedBefore counts refusals that would be allowed, as they were at another time of the
	// window.
	AllowedBefore int `json:"allowedBefore"`
	// AllowedByKept counts refusals that the subject's groups allow by now, with or without the
	// suggestion.
	AllowedByKept int `json:"allowedByKept"`
	// AllowedToday counts refusals that the subject's own bindings allow by now: a narrowed role holds no more than they do.
	AllowedToday int `json:"allowedToday"`
	// Implied counts refusals that any policy allows if it allows the needs: a request by name
	// where one without a name was allowed later, a role whose rules were all used.
	Implied int `json:"implied"`
	// TakenAway counts requests whose grant has been taken away since: a narrowed role does not give it back. They are not evaluated.
	TakenAway int64 `json:"takenAway"`
	// LeftOut counts requests that cannot be allowed without a wildcard; they are not evaluated.
	LeftOut int64 `json:"leftOut"`
	// Failures name the first requests behind Refused and NewlyAllowed.
	Failures []string `json:"failures,omitempty"`
}

// Excess weighs what is granted and was never used, by danger; see Weight. Before and After count
// the subject's own bindings, Kept what its groups hold, which the change does not touch.
type Excess struct {
	Before int `json:"before"`
	After  int `json:"after"`
	Kept   int `json:"kept"`
	// Held is the weight of all that the subject's own bindings grant, used or not: Before is a part of it.
	Held int `json:"held"`
}

// Remove takes subjects out of a binding, or deletes a role that nobody holds then.
type Remove struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Action is "delete" if the subject is the only one of the binding, else "replace" by Object.
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

// Unused is a rule of one of the subject's own bindings and the part of it that was never used.
type Unused struct {
	Binding string `json:"binding"` // Kind/name or Kind/namespace/name
	Role    string `json:"role"`
	Rule    int    `json:"rule"`  // index in the role
	Whole   bool   `json:"whole"` // nothing of the rule was used
	// Unused are what is, as "verb resource.group" or "verb /path"; the first 20.
	Unused []string `json:"unused"`
	Grants []string `json:"grants"` // the same; the name will be removed in the next release
	More   int      `json:"more,omitempty"`
	Excess int      `json:"excess"`
	// TooLarge means that matching the rule with what was used is too much work. Excess is a lower
	// bound.
	TooLarge bool `json:"tooLarge,omitempty"`
}

// Keep is a binding that grants the subject something through a group.
type Keep struct {
	Binding string `json:"binding"`
	Role    string `json:"role"`
	Group   string `json:"group"`
	// Relied counts the distinct recorded requests that the binding allows.
	Relied int `json:"relied"`
	Excess int `json:"excess"` // weight of what it gives and the subject never used
	// TooLarge means that this is too much work to compute; Relied and Excess are lower bounds, and
	// Undoes may be incomplete.
	TooLarge bool `json:"tooLarge,omitempty"`
	// Undoes are unused grants that the suggestion removes and this binding still gives; the first
	// 20. They make the change partly pointless.
	Undoes []string `json:"undoes,omitempty"`
}
