// Package state keeps every version Retrial knows of the Kubernetes objects its replica
// decides with, for one cluster, and answers what they were at any moment: its product is
// the [View], an immutable RBAC index as of a time together with everything that was not
// known then.
//
// # What goes in
//
// An [observe.Observation] says that an object had, lost or may have had some content: package
// observe reads it from a request of the audit stream, from a state file (applied by
// [State.LoadSnapshot]) or from a watch. What is kept of an object is up to package kept, what its
// content means and may be to package content.
//
// # Order
//
// Versions of an object are ordered by resourceVersion and uid, never by arrival, and a
// version's time is only bounded: it became effective somewhere in [NotBefore, NotAfter].
// What a State answers is a function of the set of its observations: any order and any
// repetition of the same observations gives the same answers.
//
// # Unknowns
//
// Nothing is guessed. A write whose content was not recorded makes its object unknown
// until it is seen again; a kind is unknown before its first complete listing and during
// gaps. Unknown objects are taken out of the RBAC index and named in the View instead, so
// that a reader can tell a certain answer from one that an unknown object could change.
//
// # Concurrency and memory
//
// One goroutine writes (Apply, LoadSnapshot, Prune), any number read. Views are immutable
// and stay valid for ever. A State keeps every version until Prune, in at most about 1.5 KiB
// each, and of the views that were worked out those at landmarks (about 1 KiB for each change
// of RBAC before the last moment asked about) and others of 32 MiB; docs/bench.md has the
// measurements, a test holds the bounds.
//
// [State.Changes] tells what lies between two moments, [State.Reason] why something is unknown.
//
// The package is pure: no I/O of its own, no clock, no logging.
package state
