// Package spool keeps records on disk while Kafka does not accept them.
//
//	webhook ─▶ Spool.Produce ─▶ Kafka accepts it: stream.Producer, nothing else is touched
//	                 │ it does not within a short bound, or something is spooled already
//	                 ▼
//	           frame (records, zstd, checksums) ─▶ segment ─▶ fsync, shared ─▶ acknowledged
//	                                                  │
//	                              drainer, in order ──┴─▶ stream.Producer; position; segment deleted
//
// # Promises
//
// Produce returns nil once every record is in Kafka or durable in the spool. Records of
// successive calls keep their order by key, whichever path each took: while anything is
// spooled, everything queues behind it. A copy of a policy write reaches Kafka before its
// event. Topic, key, value, kind, cluster, source, apiserver, time of receipt and content hash
// are preserved.
//
// After a crash the drainer starts at the last position it wrote: what it had sent since is
// sent again, and recognised downstream by the event's key. What was not acknowledged may or
// may not be there.
//
// # Bounds
//
// The spool holds at most [Config.MaxBytes] and leaves [Config.MinFree] of the file system
// free. One cluster uses at most three times the room that it leaves free, so that a flood of
// one leaves a quarter to the others. What finds no room is refused with an error that matches
// stream.ErrFull; nothing that was acknowledged is ever dropped to make room.
package spool
