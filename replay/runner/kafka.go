package runner

import (
	"context"

	"github.com/retrial-io/retrial/ingest/stream"
)

// Kafka is the Source that a stream client is.
type Kafka struct{ Client *stream.Client }

var _ Source = Kafka{}

// Events consumes audit.events in the group stream.GroupReplay.
func (k Kafka) Events(ctx context.Context, h PartitionHandler) error {
	return k.Client.ConsumeEvents(ctx, stream.GroupReplay, handler(h))
}

// DeadLetters consumes audit.deadletter in the group stream.GroupDeadLetter.
func (k Kafka) DeadLetters(ctx context.Context, h PartitionHandler) error {
	return k.Client.ConsumeDeadLetters(ctx, stream.GroupDeadLetter, handler(h))
}

// Policy reads audit.policy.
func (k Kafka) Policy(ctx context.Context, from map[int32]int64, apply func([]stream.Record) error) PolicyFeed {
	return k.Client.ReadPolicy(ctx, from, apply)
}

// CommitPolicy commits for stream.GroupPolicy.
func (k Kafka) CommitPolicy(ctx context.Context, next map[int32]int64) error {
	return k.Client.CommitPolicy(ctx, next)
}

// Ends returns the high watermarks of a topic.
func (k Kafka) Ends(ctx context.Context, topic string) (map[int32]int64, error) {
	return k.Client.HighWatermarks(ctx, topic)
}

// Commits returns the commits of the group that consumes a topic.
func (k Kafka) Commits(ctx context.Context, topic string) (map[int32]stream.Commit, error) {
	group := stream.GroupReplay
	if topic == stream.TopicDeadLetter {
		group = stream.GroupDeadLetter
	}
	return k.Client.Commits(ctx, group, topic)
}

// handler is a PartitionHandler in the stream's own words.
type handler PartitionHandler

// Partition implements stream.Handler.
func (h handler) Partition(ctx context.Context, a stream.Assignment, p *stream.Partition) error {
	return h(ctx, a, p)
}
