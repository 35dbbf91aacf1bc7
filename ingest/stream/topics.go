package stream

import (
	"time"

	"github.com/cespare/xxhash/v2"
)

// Topics, without Config.TopicPrefix.
const (
	// TopicEvents carries one record per audit event, keyed by the hash of its request, in the partition that its Layout says.
	TopicEvents = "audit.events"
	// TopicPolicy carries what changes the replica: copies of policy writes and observations of objects, keyed and ordered by cluster.
	TopicPolicy = "audit.policy"
	// TopicDeadLetter carries what could not become an event or could not be processed.
	TopicDeadLetter = "audit.deadletter"
)

// Consumer groups. They are part of the stored state: a new name would read everything again.
const (
	// GroupReplay consumes TopicEvents.
	GroupReplay = "retrial-replay"
	// GroupPolicy consumes TopicPolicy. It has no members: Client.CommitPolicy commits what the policy table holds, for lag and deletion.
	GroupPolicy = "retrial-policy"
	// GroupLayout has no members: the metadata of its commit for the first partition of TopicEvents is the layout in force.
	GroupLayout = "retrial-layout"
	// GroupDeadLetter consumes TopicDeadLetter.
	GroupDeadLetter = "retrial-deadletter"
)

// topicNames lists the topics in the order they are created.
var topicNames = [...]string{TopicEvents, TopicPolicy, TopicDeadLetter}

// Consumers returns, per topic, the groups (both with prefix) that must have committed a record before it is deleted.
func Consumers(prefix string) map[string][]string {
	return map[string][]string{
		prefix + TopicEvents:     {prefix + GroupReplay},
		prefix + TopicPolicy:     {prefix + GroupPolicy},
		prefix + TopicDeadLetter: {prefix + GroupDeadLetter},
	}
}

// PartitionOf returns the partition of n that a record with the key belongs to. It is
// fixed for all versions of Retrial: records of one cluster's policy, and, within its
// cluster's group, of one request, must meet in one partition whichever producer sent them.
func PartitionOf(key []byte, n int) int32 {
	if n <= 1 {
		return 0
	}
	return int32(xxhash.Sum64(key) % uint64(n))
}

const (
	// DefaultPartitions of TopicEvents and TopicPolicy. Dead letters have one.
	DefaultPartitions = 4
	// DefaultRetention of the topics on a real Kafka.
	DefaultRetention = 7 * 24 * time.Hour
	// maxMessageBytes is the topics' max.message.bytes: the largest batch, as sent.
	maxMessageBytes = 16 << 20
	// DefaultMaxRecordBytes is the largest record Produce accepts: key, value and headers. One uncompressed fits maxMessageBytes.
	DefaultMaxRecordBytes = 8 << 20
)
