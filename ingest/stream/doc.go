// Package stream is the Kafka of Retrial: topics, record codec, producer, and consumers
// that fetch partition by partition. One code path serves the embedded broker and real
// Kafka (3.9, 4.x); the client is kafka-go.
//
//	Record ─▶ Producer.Produce ─▶ queue per partition: one batch in flight, the next fills ─▶ broker (acks = all)
//	                                     │ returns when every record is acknowledged
//	                                     ▼
//	           audit.events      key = request key           ConsumeEvents      group, Handler per partition
//	           audit.policy      key = cluster               ReadPolicy         every partition, no group
//	           audit.deadletter  key = digest                ConsumeDeadLetters group, Handler per partition
//
// # Delivery
//
// Produce returns nil only once the broker has every record; a caller that retries after an
// error may store a record twice, which later rooms recognise by the event key. Consumers
// read at least once. What makes their effects exactly once is the commit protocol, driven
// by the caller with [Partition.Commit] and [Pending]:
//
//	collect records first..last
//	Commit(first, Pending{First: first, Last: last})   the range is announced
//	store it, with a token made of the topic's epoch, partition, first and last
//	the next batch's announcement commits last+1; when idle or revoked, Commit(last+1, NoPending)
//
// A new owner of the partition finds the announced range in [Assignment.Metadata], reads
// exactly that range again and stores it with the same token.
//
// # Epochs
//
// A topic that was recreated, or whose log was lost, assigns the same offsets a second time.
// An [Assignment.Epoch] belongs to every position, so that (epoch, partition, offset) is never
// used twice. It is kept in the commit's metadata, starts as the Unix time in seconds at which
// a partition was first consumed, and rises if a commit turns out to point past the end of the
// log, or to refer to records the log does not have.
package stream
