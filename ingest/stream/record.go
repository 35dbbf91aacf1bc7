package stream

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

// Kind says what a record's value is.
type Kind uint8

// Kinds of records.
const (
	KindUnknown     Kind = iota
	KindEvent            // canonical JSON of an event, on TopicEvents
	KindPolicyEvent      // canonical JSON of a policy write, on TopicPolicy
	KindObservation      // an encoded state.Observation, on TopicPolicy
	KindDeadLetter       // a dead letter, on TopicDeadLetter; see DecodeDeadLetter
)

var kindNames = [...]string{"", "event", "policy-event", "observation", "deadletter"}

// String returns the name that is written into the record's header.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// Record is one Kafka record of Retrial's topics. Everything but Key and Value travels in
// headers or belongs to the record's place in the log.
//
// Producing: Produce copies what it needs before it returns, so the caller keeps Key and
// Value. Consuming: Key and Value alias a buffer that belongs to the batch; it is never
// written to again, so they may be kept, at the price of keeping the buffer.
type Record struct {
	Topic string // without prefix
	Key   []byte
	Value []byte

	Kind      Kind
	Cluster   string
	Source    string // "webhook", "import", "watch", "replay"
	APIServer string // as named by the endpoint, often ""
	Received  time.Time
	Content   event.Hash128 // of Value

	Position event.Position // consumed records: where the record stands
	Appended time.Time      // consumed records: the producer's clock when it was appended; UTC, milliseconds
	// Err, on consumed records, says why the headers could not be read: ErrCodecVersion or
	// ErrMalformed. Such a record is poison: key, value and position are set, the rest is
	// whatever could be read. Dead-letter it.
	Err error
}

// EventRecord is the record of an event for TopicEvents. received is when the event
// reached Retrial.
func EventRecord(cluster, source, apiserver string, received time.Time, e *event.Event) Record {
	key := event.RequestKey(cluster, e).Bytes()
	r := eventRecord(cluster, source, apiserver, received, e)
	r.Topic, r.Kind, r.Key = TopicEvents, KindEvent, key[:]
	return r
}

// PolicyEventRecord is the copy of a policy write for TopicPolicy. It must be acknowledged
// before the event's own record is produced.
func PolicyEventRecord(cluster, source, apiserver string, received time.Time, e *event.Event) Record {
	r := eventRecord(cluster, source, apiserver, received, e)
	r.Topic, r.Kind, r.Key = TopicPolicy, KindPolicyEvent, []byte(cluster)
	return r
}

func eventRecord(cluster, source, apiserver string, received time.Time, e *event.Event) Record {
	value := event.AppendJSON(nil, e)
	return Record{Value: value, Cluster: cluster, Source: source, APIServer: apiserver, Received: received, Content: event.Content(value)}
}

// PolicyRecord is a record for TopicPolicy that is not an event: an observation, already
// encoded.
func PolicyRecord(kind Kind, cluster, source string, received time.Time, value []byte) Record {
	return Record{Topic: TopicPolicy, Kind: kind, Key: []byte(cluster), Value: value,
		Cluster: cluster, Source: source, Received: received, Content: event.Content(value)}
}

// deadLetter is the JSON of a dead letter on the wire.
type deadLetter struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Prefix []byte `json:"prefix,omitempty"`
}

// DeadLetterRecord is the record of a dead letter. Its Prefix must be redacted already.
func DeadLetterRecord(d event.DeadLetter, received time.Time) Record {
	// A struct of strings, numbers and bytes always marshals.
	value, _ := json.Marshal(deadLetter{d.Reason, d.Detail, d.Digest, d.Size, d.Prefix})
	return Record{Topic: TopicDeadLetter, Kind: KindDeadLetter, Key: []byte(d.Digest), Value: value,
		Cluster: d.Cluster, Source: d.Source, Received: received, Content: event.Content(value)}
}

// DecodeDeadLetter reads the dead letter of a consumed record.
func DecodeDeadLetter(r *Record) (event.DeadLetter, error) {
	var d deadLetter
	if err := json.Unmarshal(r.Value, &d); err != nil {
		return event.DeadLetter{}, fmt.Errorf("decode dead letter: %w", err)
	}
	return event.DeadLetter{Cluster: r.Cluster, Source: r.Source, Reason: d.Reason, Detail: d.Detail,
		Digest: d.Digest, Size: d.Size, Prefix: d.Prefix}, nil
}

// CodecVersion is the version of the record codec this release writes. It reads this
// version and the one before.
const CodecVersion = 1

// Header names. Values are text, save received (eight bytes, big endian, Unix
// microseconds) and content (sixteen bytes).
const (
	headerVersion   = "v"
	headerKind      = "kind"
	headerCluster   = "cluster"
	headerSource    = "source"
	headerAPIServer = "apiserver"
	headerReceived  = "received"
	headerContent   = "content"
)

// header is one record header. The slice aliases the buffer it was read from.
type header struct {
	name  string
	value []byte
}

// appendHeaders appends the headers of r in the record format: count, then for each the
// lengths and bytes of name and value, all lengths as zigzag varints.
func appendHeaders(b []byte, r *Record) []byte {
	n := 4
	if r.Source != "" {
		n++
	}
	if r.APIServer != "" {
		n++
	}
	if r.Content != (event.Hash128{}) {
		n++
	}
	b = binary.AppendVarint(b, int64(n))
	var scratch [16]byte
	b = appendHeader(b, headerVersion, append(scratch[:0], '0'+CodecVersion))
	b = appendHeader(b, headerKind, r.Kind.String())
	b = appendHeader(b, headerCluster, r.Cluster)
	b = appendHeader(b, headerReceived, binary.BigEndian.AppendUint64(scratch[:0], uint64(r.Received.UnixMicro())))
	if r.Source != "" {
		b = appendHeader(b, headerSource, r.Source)
	}
	if r.APIServer != "" {
		b = appendHeader(b, headerAPIServer, r.APIServer)
	}
	if r.Content != (event.Hash128{}) {
		content := binary.BigEndian.AppendUint64(scratch[:0], r.Content.Hi)
		b = appendHeader(b, headerContent, binary.BigEndian.AppendUint64(content, r.Content.Lo))
	}
	return b
}

func appendHeader[V string | []byte](b []byte, name string, value V) []byte {
	b = binary.AppendVarint(b, int64(len(name)))
	b = append(b, name...)
	b = binary.AppendVarint(b, int64(len(value)))
	return append(b, value...)
}

// headersSize bounds the bytes appendHeaders adds for r.
func headersSize(r *Record) int {
	const fixed = 1 + // count
		7*(2+3) + // seven headers: length of name, length of value
		len(headerVersion+headerKind+headerCluster+headerSource+headerAPIServer+headerReceived+headerContent) +
		1 + 8 + 16
	return fixed + len(r.Kind.String()) + len(r.Cluster) + len(r.Source) + len(r.APIServer)
}

// decoder reads headers. It keeps one copy of each short string it meets, since a log
// holds the same few thousands of times.
type decoder struct {
	current int // the codec version to read; the one before is read too
	strings map[string]string
}

func newDecoder() *decoder {
	return &decoder{current: CodecVersion, strings: make(map[string]string)}
}

// maxInterned bounds decoder.strings: cluster names come from certificates and endpoints,
// but the log is not trusted to hold few.
const maxInterned = 1024

func (d *decoder) intern(b []byte) string {
	if s, ok := d.strings[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(d.strings) < maxInterned && len(s) <= 256 {
		d.strings[s] = s
	}
	return s
}

// record fills r from headers and leaves in r.Err why it could not.
func (d *decoder) record(r *Record, headers []header) {
	version := -1
	for _, h := range headers {
		switch h.name {
		case headerVersion:
			if len(h.value) == 1 && h.value[0] >= '0' && h.value[0] <= '9' {
				version = int(h.value[0] - '0')
			}
		case headerKind:
			for k, name := range kindNames {
				if string(h.value) == name {
					r.Kind = Kind(k)
				}
			}
		case headerCluster:
			r.Cluster = d.intern(h.value)
		case headerSource:
			r.Source = d.intern(h.value)
		case headerAPIServer:
			r.APIServer = d.intern(h.value)
		case headerReceived:
			if len(h.value) != 8 {
				r.Err = fmt.Errorf("%w: received has %d bytes", ErrMalformed, len(h.value))
				return
			}
			r.Received = time.UnixMicro(int64(binary.BigEndian.Uint64(h.value))).UTC()
		case headerContent:
			if len(h.value) != 16 {
				r.Err = fmt.Errorf("%w: content has %d bytes", ErrMalformed, len(h.value))
				return
			}
			r.Content = event.Hash128{Hi: binary.BigEndian.Uint64(h.value), Lo: binary.BigEndian.Uint64(h.value[8:])}
		}
	}
	switch {
	case version < 0:
		r.Err = fmt.Errorf("%w: no codec version", ErrMalformed)
	case version != d.current && (version != d.current-1 || version == 0):
		r.Err = fmt.Errorf("%w: %d, this release reads %d and the one before", ErrCodecVersion, version, d.current)
	case r.Kind == KindUnknown:
		r.Err = fmt.Errorf("%w: unknown kind", ErrMalformed)
	case r.Cluster == "" && r.Kind != KindDeadLetter:
		r.Err = fmt.Errorf("%w: no cluster", ErrMalformed)
	}
}
