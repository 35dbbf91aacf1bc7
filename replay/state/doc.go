// Package state keeps every version Retrial knows of the Kubernetes objects its replica decides with, for one cluster, and answers what
// they were at any moment: its product is the [View], an immutable RBAC index as of a time together with everything that was not known
// then.
//
// # What goes in
//
// An [observe.Observation] says that an object had, lost or may have had some content: package observe reads it from a request of the audit
// stream, from a state file (applied by [State.LoadSnapshot]) or from a watch. What is kept of an object is up to package kept, what its
// content means and may be to package content.
//
// # Order
//
// Versions of an object are ordered by resourceVersion and uid, never by arrival, and a version's time is only bounded: it became effective
// somewhere in [NotBefore, NotAfter]. What a State answers is a function of the set of its observations: any order and any repetition of
// the same observations gives the same answers.
//
// # Words
//
//	write      ├───────┤          a request, between its receipt and its answer
//	span          nb   na         not before, not after: where in it the change became effective is not told
//	step          ┼────┼────────  a change in what is said of a name, from somewhere in its span on
//	line       ────┼──┼────┼┼──▶  the steps of one name, in order: what every answer is read from
//	listing    ├─────────┤        everything of a kind, read within a span
//	window        [      ]        the time an apiserver may have decided at; it may see several views
//
// A sighting is that one version, or one end, was observed; all of a version are merged, so that repeating them takes no room. A blind is a
// write whose version was not told: it has its place by time alone. An incarnation is one uid under a name, from its making to its end; of
// a pod it is a life. A stranger is a pod of which no more than its name was recorded. A step is assumed where no write was seen that made
// it, as when a listing shows an object for the first time. It carries over what it does not say itself from the step before: a patch, a
// write of the metadata alone, a write that may not have been done.
//
// An object is ending once its deletion was asked for. It is in doubt where a write of it may not have been done or a part of it was cut
// out: what it holds lies between two contents, the least and the most. A lost answer is that of a write of which nobody knows whether it
// was done; something may still come of it until it has settled. A stand-in is an object whose generated name was not recorded.
//
// A scope is all objects of a kind, or those of a namespace: unknown, or known to hold what is known.
// The horizon is the moment before which everything is forgotten.
//
// # Unknowns
//
// Nothing is guessed. A write whose content was not recorded makes its object unknown until it is seen again; a kind is unknown before its
// first complete listing and during gaps. Unknown objects are taken out of the RBAC index and named in the View instead, so that a reader
// can tell a certain answer from one that an unknown object could change.
//
// # Concurrency and memory
//
// One goroutine writes (Apply, LoadSnapshot, Prune), any number read. Views are immutable and stay valid forever. A State keeps every
// version until Prune, in at most about 1.5 KiB each, and of the views that were worked out those at landmarks (about 1 KiB for each change
// of RBAC before the last moment asked about) and others of 32 MiB; docs/bench.md has the measurements, a test holds the bounds.
//
// [State.Changes] tells what lies between two moments, [State.Reason] why something is unknown.
//
// The package is pure: no I/O of its own, no clock, no logging.
package state
