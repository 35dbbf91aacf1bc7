// Package importer feeds audit log files through a running receiver's local listener: the
// same decoding, redaction, dead letters and acknowledgement as events that apiservers
// post.
//
// A file is read twice: first for the writes to objects the replica keeps (posted with
// policy=only, so that they are known before any event they bear on), then for all events
// (with policy=done), in batches of which a few are in flight. What was acknowledged is noted in a position
// file; an import that was interrupted continues behind it. Posting something twice does
// no harm: the events' keys tell.
//
// Files are JSON lines as the apiserver's log backend writes them, or EventLists (one, or
// several after each other, as the webhook backend posts them); plain, gzip or zstd, told
// by their first bytes. Standard input is spooled, encrypted under a key that exists only
// in memory: secrets are redacted by the receiver and must not come to rest before.
//
// Follow tails one log that is being written and rotated instead, in one pass, with a
// position of its own: follow.go looks, followfile.go finds and cuts the files.
package importer
