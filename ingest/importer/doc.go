// Package importer feeds audit log files through a running receiver's local listener: the
// same decoding, redaction, dead letters and acknowledgement as events that apiservers
// post.
//
// A file is read twice: first for the writes to objects the replica keeps (posted with
// policy=only, so that they are known before any event they affect), then for all events
// (with policy=done), in batches of which a few are in flight. A position file records what
// was acknowledged; an interrupted import continues after it. Posting something twice does no
// harm: the events' keys identify them.
//
// Files are JSON lines as the apiserver's log backend writes them, or EventLists (one, or
// several concatenated, as the webhook backend posts them); plain, gzip or zstd, detected by
// their first bytes. Standard input is spooled, encrypted with a key that exists only in
// memory: the receiver redacts secrets, and they must not reach a disk before.
//
// Follow instead tails one log while it is written and rotated, in one pass, with a position
// of its own: follow.go polls, followfile.go finds the files and splits them into lines.
package importer
