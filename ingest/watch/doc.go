// Package watch follows live clusters: it lists and watches the objects the replica keeps
// and sends what it sees to the policy topic, so that the state of a cluster is known
// without an exported file and stays complete even if the audit policy records RBAC writes
// without their bodies.
//
//	                 ┌ list, page by page ─▶ objects, then "complete" ─┐
//	kube-apiserver ──┤                                                 ├─ redact ─ Encoder ─▶ audit.policy
//	                 └ watch from the list's version ─▶ changes ───────┘
//	                        │ ends: again from the last version sent
//	                        │ 410, or interrupted for too long: "gap since …", list again
//
// Each kind has a loop of its own; a kind that may not be read does not stop the others.
//
// # Nothing is skipped
//
// A change counts as seen once the broker has acknowledged it; only then does the version
// from which the watch would resume advance. If it cannot resume, there is a gap: the kind is
// unknown from the last moment for which everything had been sent until the next complete
// listing. A Position outlives the process, so that a restart, too, resumes or leaves a gap.
//
// # Times
//
// A change became effective before it arrived. The other bound is the floor: the latest
// moment after which everything that arrives now is known to have been written. The start of
// a listing is one (the listing is consistent), a bookmark's arrival less Config.Delay is
// another, and so is the creation of an object that was just added. While changes queue up,
// here or on the way, the floor stays where it was. The server's own times in an object
// (creation, deletion, managed fields) narrow that object's bound down to the second.
//
// # Secrets
//
// Of Secrets only the metadata is requested, in a form in which the apiserver sends nothing
// else, and only where the credentials allow it; every object passes redact.Redactor before
// anything else is done with it. Only the current page and queue are kept in memory.
package watch
