package event

// Position is where a record is in Kafka. Epoch distinguishes the logs of a recreated topic, so
// that a position is never used twice.
type Position struct {
	Epoch     uint32
	Partition int32
	Offset    int64
}

// DeadLetter is input that could not become an event, or a record that could not be
// processed: never dropped silently, never retried for ever.
type DeadLetter struct {
	Cluster string
	Source  string // how it came in: "webhook", "import", "watch", "replay"
	Reason  string // closed set, for metrics: "not-event-list", "too-large", "malformed-item", "codec-version", "poison"
	Detail  string // the decoder's or replayer's message: what, where
	Digest  string // "sha256:" + hex of the original bytes
	Size    int64  // of the original bytes
	Prefix  []byte // redacted beginning of the original bytes
}
