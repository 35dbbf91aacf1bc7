// Package spool keeps records on disk while Kafka does not take them.
//
//	webhook ─▶ Spool.Produce ─▶ Kafka takes it: stream.Producer, nothing else is touched
//	                 │ it does not, within a short bound, or something is spooled already
//	                 ▼
//	           frame (records, zstd, checksums) ─▶ segment ─▶ fsync, shared ─▶ acknowledged
//	                                                  │
//	                              drainer, in order ──┴─▶ stream.Producer; position; segment deleted
//
// # Promises
//
// Produce returns nil when every record is in Kafka or durable in the spool. Records of calls
// that follow one another keep their order, by key, whichever way each of them went: while
// anything is spooled everything goes behind it. A copy of a policy write reaches Kafka before
// its event. Topic, key, value, kind, cluster, source, apiserver, time of receipt and content
// hash come out as they went in.
//
// After a crash the drainer begins at the last position it wrote: what it had sent since is
// sent again, and found by the event's key downstream. What was not acknowledged may be there,
// or not.
//
// # Bounds
//
// The spool holds at most [Config.MaxBytes], and leaves [Config.MinFree] of the file system
// alone. One cluster takes no more than three times the room that it leaves free, so that the
// flood of one leaves a quarter to the others. What finds no room is refused with an error
// that matches stream.ErrFull, and nothing that was acknowledged is ever dropped for room.
package spool
