// Package observe says what is learnt of a cluster's objects: from a request in its audit log ([FromEvent]), a state file ([ReadObjects],
// [ReadSnapshot]), a listing or a watch. Its product is the [Observation], of one object or of all in a scope, which is stored as it is
// ([Observation.Append], [Decode]) and from which package state derives the objects' lives.
//
// The package is pure: no I/O of its own, no clock, no logging.
package observe

import (
	"time"
)

// Source says where an observation comes from. It decides how its times are understood: an audit event brackets the write that produced a
// version, a snapshot only says that the version was there by then.
type Source uint8

// Sources, in the order of how much they say about time.
const (
	SourceSnapshot Source = iota + 1 // a complete listing, for example a state file
	SourceAudit                      // a policy write in the audit stream
	SourceWatch                      // an event of a live watch
	SourceRead                       // a request in the audit stream that wrote nothing
)

// String returns "snapshot", "audit", "watch" or "read".
func (s Source) String() string {
	switch s {
	case SourceSnapshot:
		return "snapshot"
	case SourceAudit:
		return "audit"
	case SourceWatch:
		return "watch"
	case SourceRead:
		return "read"
	}
	return "unknown"
}

// Observation is one thing learnt about one object, or about all objects of a resource in a scope.
//
// Exactly one of these shapes:
//   - a version: Name, UID, ResourceVersion and Object (or Unknown when the content was not
//     recorded);
//   - a write without a resourceVersion: Name, and Object or Unknown;
//   - a write that left what is kept of the object as it was: Name and Unchanged, with UID and
//     ResourceVersion where they are known; Object, if any, holds its metadata;
//   - an end: Name and Deleted, with the UID of the object that ended;
//   - a deletion of unknown outcome: Name, Deleted and Unknown: the object may have gone, or be
//     held back;
//   - an absence: Name, Deleted and Complete: a request in [NotBefore, NotAfter] found no object
//     of that name;
//   - a presence: of SourceRead, with Name and Unchanged: a request in [NotBefore, NotAfter] found an
//     object of that name;
//   - AllOf and Deleted: some or all objects of Resource in Namespace (everywhere when
//     empty) were deleted, which ones is not known;
//   - AllOf and Unknown: objects of Resource whose names are not known may have come or
//     changed in Namespace; with an empty Namespace this is a gap of the whole resource. A pod
//     with an Object was made without a node: it is ignored until a binding names it;
//   - AllOf and Complete: a listing taken in [NotBefore, NotAfter] showed exactly the
//     versions observed by SourceSnapshot with these same bounds.
//
// An Unknown write of an RBAC object with an Object, and an Unknown Deleted one that is Unchanged too,
// may not have been done: the object is what was asked for, or as it was before.
//
// A write of an RBAC object that is a Patch has its body as Object. With Unknown it may not have been done;
// without an Object, what was asked for was not recorded either.
//
// A write may be Created: it made the object. Without a resourceVersion it may be an Update: it ended the object if its deletion had been
// requested and the write removed the last finalizer. With one, an Update is a deletion that itself added no finalizer: it ended the object
// even if another write added one meanwhile. An end that is an Update is what the deletion of a collection says of an object it had read:
// another write may have added a finalizer that holds it back.
//
// An Observation must not change once made. Object may alias the buffer it was read from; a State copies what it keeps.
type Observation struct {
	Source          Source
	Resource        string // one of Resources(); others are ignored by State
	Namespace       string // empty for cluster-scoped resources
	Name            string
	UID             string
	ResourceVersion string // decimal; empty when the source does not tell
	Object          []byte // the object as JSON; nil when deleted or unknown
	Deleted         bool
	Unknown         bool
	AllOf           bool
	Complete        bool
	Unchanged       bool
	Created         bool
	Update          bool
	Patch           bool
	// NotBefore and NotAfter bound the moment the observed change became effective; for SourceSnapshot they bound the time in which the
	// listing was taken. The zero NotBefore means no bound.
	NotBefore, NotAfter time.Time
	// Since, of a Complete observation only: see Snapshot.Since.
	Since time.Time
}
