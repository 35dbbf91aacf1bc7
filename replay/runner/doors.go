package runner

import (
	"context"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// Engine judges one event against the state of its cluster; *replay.Engine does. It must be
// safe for concurrent use as long as nobody applies anything to the state meanwhile, which
// the runner sees to.
type Engine interface {
	ReplayWithin(a *replay.Allowance, e *event.Event, s *state.State) *verdict.Verdict
}

// Tagger notes which detection rules select a judged request; *detect.Tagger does. The marks
// must follow from the arguments alone: they are part of the row, corrected when its verdict
// is. It must be safe for concurrent use.
type Tagger interface {
	Tag(cluster string, e *event.Event, v *verdict.Verdict) []verdict.Mark
}

// EventStore holds the rows. All methods may be called concurrently for different
// partitions; for one partition the runner calls them one after the other.
type EventStore interface {
	// Known returns the standing rows that share a request key (and cluster) with any of the
	// given rows. A row whose insertion was reported as successful must be among them.
	Known(ctx context.Context, rows []verdict.Row) ([]verdict.KnownRow, error)

	// Standing visits the complete standing rows of events Known told about.
	Standing(ctx context.Context, known []verdict.KnownRow, visit func(verdict.Row) error) error

	// Insert writes one block. The token makes it idempotent: the same rows under the same
	// token land once, in the table and in every rollup, however often and however late they
	// are sent. After an error the outcome is unknown. Rows are not kept after the call.
	Insert(ctx context.Context, token string, rows []verdict.Row) error

	// Recover makes every rollup equal to the standing rows of a partition, of whatever
	// epoch, whose requests were received on the given days (UTC midnights). When it
	// returns, no insertion begun earlier for that partition, by whomever, may still land.
	// The epoch is the caller's.
	Recover(ctx context.Context, partition int32, epoch uint32, days []time.Time) error

	// Spans bounds the rows of a partition, whatever their epoch, one span a cluster; none
	// when there are none.
	Spans(ctx context.Context, partition int32) ([]verdict.Span, error)

	// Affected visits the standing rows that carry a verdict and match the filter, complete
	// with event and verdict. It must see every row that stood when it was called, and need
	// not see rows inserted during the visit. It streams: a visit may be of any size.
	Affected(ctx context.Context, filter verdict.AffectedFilter, visit func(verdict.Row) error) error
}

// PolicyStore holds the history the states are rebuilt from.
type PolicyStore interface {
	// SavePolicy writes observations; a place (partition, offset, index) already there
	// changes nothing. One call is all or nothing.
	SavePolicy(ctx context.Context, versions []verdict.PolicyVersion) error
	// LoadPolicy visits all observations of some clusters, those of one partition in the order
	// of their offsets.
	LoadPolicy(ctx context.Context, clusters []string, visit func(verdict.PolicyVersion) error) error
	// PolicyEnds returns, by partition, the newest epoch of which observations are stored, and
	// the offset after the last of them.
	PolicyEnds(ctx context.Context) (map[int32]event.Position, error)
	// PolicyClusters returns the clusters of which observations are stored.
	PolicyClusters(ctx context.Context) ([]string, error)
}

// DeadLetterStore keeps what could not be processed.
type DeadLetterStore interface {
	// SaveDeadLetters writes dead letters; a position already there changes nothing.
	SaveDeadLetters(ctx context.Context, token string, letters []verdict.StoredDeadLetter) error
}

// Comparer tells what is worth a correction.
type Comparer interface {
	// SameVerdict reports whether two verdicts of one request say the same to whoever reads them
	// in the store, whatever revision, engine and configuration they were reached by.
	SameVerdict(a, b *verdict.Verdict) bool
}

// Store is everything the runner writes to.
type Store interface {
	EventStore
	Comparer
	PolicyStore
	DeadLetterStore
	RejudgeStore
}

// Partition is one assigned partition, valid until the context of its handler ends;
// *stream.Partition is one.
type Partition interface {
	// Fetch returns the next records in offset order, none when there are none within the
	// stream's own wait, at least one if there is any. What may pass is retried inside; an
	// error is final for the assignment.
	Fetch(ctx context.Context, maxRecords, maxBytes int) (stream.Batch, error)
	// Commit records the next offset and what is pending. It fails for good once another
	// consumer owns the partition.
	Commit(ctx context.Context, next int64, pending stream.Pending) error
	// Position is the offset of the record Fetch returns next.
	Position() int64
}

// PartitionHandler works on one partition until ctx ends, and returns before the partition
// goes to somebody else.
type PartitionHandler func(ctx context.Context, a stream.Assignment, p Partition) error

// Source is the stream the runner reads.
type Source interface {
	// Events joins the consumer group of audit.events and runs the handler for every
	// partition it is assigned, until ctx ends.
	Events(ctx context.Context, h PartitionHandler) error
	// DeadLetters does the same on audit.deadletter.
	DeadLetters(ctx context.Context, h PartitionHandler) error
	// Policy starts to read every partition of audit.policy from the given offsets (absent:
	// from the start of the log) and hands the records over, batches of one partition, in
	// order, one call at a time. rest is called after each batch, once its positions are
	// known; the next batch of the partition is read when it returns.
	Policy(ctx context.Context, from map[int32]int64, apply func([]stream.Record) error, rest func(partition int32)) PolicyFeed
	// CommitPolicy notes that the policy table holds every record below the given offsets.
	CommitPolicy(ctx context.Context, next map[int32]int64) error
	// Ends returns the offset after the last record of every partition of a topic: whatever
	// was acknowledged before the call lies below.
	Ends(ctx context.Context, topic string) (map[int32]int64, error)
	// Commits returns what the owners of a topic's partitions, in whatever process, have
	// committed last.
	Commits(ctx context.Context, topic string) (map[int32]stream.Commit, error)
	// Forward appends records of audit.events again, to the partitions that are theirs by a
	// layout. After an error any of them may have been.
	Forward(ctx context.Context, l stream.Layout, records []stream.Record) error
	// Announce appends the barrier of a layout to partitions, then puts it in force for
	// producers unless a later one is.
	Announce(ctx context.Context, l stream.Layout, partitions ...int32) error
}

// PolicyFeed is a policy reader at work; *stream.PolicyReader is one.
type PolicyFeed interface {
	// WaitFor returns when everything below the marks has been applied.
	WaitFor(ctx context.Context, marks map[int32]int64) error
	// Positions returns the offsets below which everything has been applied, as a copy.
	Positions() map[int32]int64
	// Done is closed when the reader has ended; Err says why, nil if it was asked to.
	Done() <-chan struct{}
	Err() error
	// Close ends the reader and waits for it.
	Close() error
}

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
func (k Kafka) Policy(ctx context.Context, from map[int32]int64, apply func([]stream.Record) error,
	rest func(partition int32)) PolicyFeed {
	return k.Client.ReadPolicy(ctx, from, apply, rest)
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

// Forward appends records by a layout.
func (k Kafka) Forward(ctx context.Context, l stream.Layout, records []stream.Record) error {
	return k.Client.Producer().ProduceBy(ctx, l, records...)
}

// Announce tells partitions of a layout.
func (k Kafka) Announce(ctx context.Context, l stream.Layout, partitions ...int32) error {
	return k.Client.AnnounceLayout(ctx, l, partitions...)
}

// handler is a PartitionHandler in the stream's own words.
type handler PartitionHandler

// Partition implements stream.Handler.
func (h handler) Partition(ctx context.Context, a stream.Assignment, p *stream.Partition) error {
	return h(ctx, a, p)
}
