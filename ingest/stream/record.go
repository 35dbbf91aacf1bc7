package stream

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

// Kind is what a record's value holds.
type Kind uint8

// Kinds of records.
const (
	KindUnknown     Kind = iota
	KindEvent            // canonical JSON of an event, on TopicEvents
	KindPolicyEvent      // canonical JSON of a policy write, on TopicPolicy
	KindObservation      // an encoded observe.Observation, on TopicPolicy
	KindDeadLetter       // a dead letter, on TopicDeadLetter; see DecodeDeadLetter
	KindLayout           // a barrier, on TopicEvents; see DecodeLayout. Earlier releases take it for a record that cannot be read
)

var kindNames = [...]string{"", "event", "policy-event", "observation", "deadletter", "layout"}

// String returns the name that is written into the record's header.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// Record is one Kafka record of Retrial's topics. All but Key and Value travels in headers or belongs to the record's place in the log.
//
// Producing: Produce copies what it needs before it returns, so the caller keeps Key and
// Value. Consuming: Key and Value alias a buffer that belongs to the batch; it is never
// written again, so they may be kept, at the cost of keeping the buffer.
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
	Bodies    event.Bodies  // events: where Value's large parts end; zero if not known

	Position event.Position // consumed records: where the record stands
	Appended time.Time      // consumed records: the producer's clock when it was appended; UTC, milliseconds
	// Err, on consumed records, is why the headers could not be read: ErrCodecVersion or
	// ErrMalformed. Such a record is poison: key, value and position are set, the rest is
	// whatever could be read. Dead-letter it.
	Err error

	fingerprint fingerprint // consumed records
}

// PolicyRecord returns a record for TopicPolicy that is not an event: an observation, already
// encoded.
func PolicyRecord(kind Kind, cluster, source string, received time.Time, value []byte) Record {
	return Record{Topic: TopicPolicy, Kind: kind, Key: []byte(cluster), Value: value,
		Cluster: cluster, Source: source, Received: received, Content: event.Content(value)}
}

type deadLetter struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Prefix []byte `json:"prefix,omitempty"`
}

// DeadLetterRecord returns the record of a dead letter, whose Prefix must already be redacted.
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

// LayoutRecord returns the barrier that tells the readers of a partition of a layout: records before it stand by the layout before.
func LayoutRecord(l Layout, at time.Time) Record {
	value, _ := json.Marshal(l) // a struct of numbers always marshals
	return Record{Topic: TopicEvents, Kind: KindLayout, Key: []byte("layout"), Value: value, Source: "layout", Received: at,
		Content: event.Content(value)}
}

// DecodeLayout returns the layout a record tells of; false if it tells of none.
func DecodeLayout(r *Record) (l Layout, ok bool) {
	if r.Kind != KindLayout || r.Err != nil || json.Unmarshal(r.Value, &l) != nil || l.check() != nil {
		return Layout{}, false
	}
	return l, true
}

// CodecVersion is the version of the record codec this release writes. It reads this
// version and the one before.
const CodecVersion = 2

// Header names. The version is a digit. In version 2 one other header holds all the rest, since
// each header has a cost in the clients: kind (one byte), received (eight bytes, big endian, Unix
// microseconds), content (sixteen bytes), then, each with its length as a varint before it,
// cluster, source and apiserver, then as varints the lengths of the event's bodies. What
// follows belongs to later releases. In version 1 each was a header, and there were no lengths.
const (
	headerVersion   = "v"
	headerRecord    = "r"
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

// appendHeaders appends the headers of r in the record format: count, then lengths, as zigzag varints, and bytes of each name and value.
func appendHeaders(b []byte, r *Record) []byte {
	size := 1 + 8 + 16 + uvarintLen(uint64(r.Bodies.Request)) + uvarintLen(uint64(r.Bodies.Response))
	texts := [...]string{r.Cluster, r.Source, r.APIServer}
	for _, s := range texts {
		size += uvarintLen(uint64(len(s))) + len(s)
	}
	b = binary.AppendVarint(b, 2)
	b = appendName(b, headerVersion)
	b = binary.AppendVarint(b, 1)
	b = append(b, '0'+CodecVersion)
	b = appendName(b, headerRecord)
	b = binary.AppendVarint(b, int64(size))
	b = append(b, byte(r.Kind))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Received.UnixMicro()))
	b = binary.BigEndian.AppendUint64(b, r.Content.Hi)
	b = binary.BigEndian.AppendUint64(b, r.Content.Lo)
	for _, s := range texts {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(r.Bodies.Request))
	return binary.AppendUvarint(b, uint64(r.Bodies.Response))
}

func appendName(b []byte, name string) []byte {
	b = binary.AppendVarint(b, int64(len(name)))
	return append(b, name...)
}

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// headersSize bounds the bytes appendHeaders adds for r.
func headersSize(r *Record) int {
	const fixed = 1 + // count
		2*(1+5) + len(headerVersion+headerRecord) + 1 + // lengths of names and values, the names, the version
		1 + 8 + 16 +
		3*5 + 2*5 // lengths of texts and bodies
	return fixed + len(r.Cluster) + len(r.Source) + len(r.APIServer)
}

// decoder reads headers. It keeps one copy of each short string, since a log repeats a few of
// them thousands of times.
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

// record fills r from headers; if it cannot, it sets r.Err.
func (d *decoder) record(r *Record, headers []header) {
	version := -1
	var packed []byte
	for _, h := range headers {
		switch h.name {
		case headerVersion:
			if len(h.value) == 1 && h.value[0] >= '0' && h.value[0] <= '9' {
				version = int(h.value[0] - '0')
			}
		case headerRecord:
			packed = h.value
		}
	}
	switch {
	case version < 0:
		r.Err = fmt.Errorf("%w: no codec version", ErrMalformed)
	case version != d.current && (version != d.current-1 || version == 0):
		r.Err = fmt.Errorf("%w %d: this release reads %d and the one before", ErrCodecVersion, version, d.current)
	case version == 1:
		r.Err = d.version1(r, headers)
	default:
		r.Err = d.unpack(r, packed)
	}
	switch {
	case r.Err != nil:
	case r.Kind == KindUnknown || int(r.Kind) >= len(kindNames):
		r.Err = fmt.Errorf("%w: unknown kind", ErrMalformed)
	case r.Cluster == "" && r.Kind != KindDeadLetter && r.Kind != KindLayout:
		r.Err = fmt.Errorf("%w: no cluster", ErrMalformed)
	}
}

func (d *decoder) unpack(r *Record, b []byte) error {
	const fixed = 1 + 8 + 16
	if len(b) < fixed {
		return fmt.Errorf("%w: header of %d bytes", ErrMalformed, len(b))
	}
	r.Kind = Kind(b[0])
	r.Received = time.UnixMicro(int64(binary.BigEndian.Uint64(b[1:]))).UTC()
	r.Content = event.Hash128{Hi: binary.BigEndian.Uint64(b[9:]), Lo: binary.BigEndian.Uint64(b[17:])}
	b = b[fixed:]
	for _, to := range [...]*string{&r.Cluster, &r.Source, &r.APIServer} {
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(b)-w) {
			return fmt.Errorf("%w: the header is truncated", ErrMalformed)
		}
		*to, b = d.intern(b[w:w+int(n)]), b[w+int(n):]
	}
	for _, to := range [...]*int{&r.Bodies.Request, &r.Bodies.Response} {
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(r.Value)) {
			return fmt.Errorf("%w: body of %d bytes in a value of %d", ErrMalformed, n, len(r.Value))
		}
		*to, b = int(n), b[w:]
	}
	return nil
}

func (d *decoder) version1(r *Record, headers []header) error {
	for _, h := range headers {
		switch h.name {
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
				return fmt.Errorf("%w: received has %d bytes", ErrMalformed, len(h.value))
			}
			r.Received = time.UnixMicro(int64(binary.BigEndian.Uint64(h.value))).UTC()
		case headerContent:
			if len(h.value) != 16 {
				return fmt.Errorf("%w: content has %d bytes", ErrMalformed, len(h.value))
			}
			// The second half belonged to another hash, which is not part of it any more.
			r.Content = event.Hash128{Hi: binary.BigEndian.Uint64(h.value)}
		}
	}
	return nil
}

// The format of a record outside of Kafka: lengths, as varints, and bytes of topic, key and value, then the headers exactly as they travel.

// AppendRecord appends r in the format that a [Decoder] reads, without Position, Appended and
// Err, which belong to a place in a log.
func AppendRecord(b []byte, r *Record) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.Topic)))
	b = append(b, r.Topic...)
	b = binary.AppendUvarint(b, uint64(len(r.Key)))
	b = append(b, r.Key...)
	b = binary.AppendUvarint(b, uint64(len(r.Value)))
	b = append(b, r.Value...)
	return appendHeaders(b, r)
}

// Decoder reads what AppendRecord has written, by this release or one whose codec version it
// still reads. It is for one goroutine.
type Decoder struct {
	d       *decoder
	headers []header
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder { return &Decoder{d: newDecoder()} }

// Next reads the record at the beginning of b and returns the bytes after it. Key and Value
// alias b. Errors match ErrMalformed or ErrCodecVersion; after ErrMalformed it is unknown where
// the next record begins.
func (d *Decoder) Next(b []byte) (r Record, rest []byte, err error) {
	take := func(what string, n int64, w int) (v []byte) {
		if err == nil && (w <= 0 || n < 0 || n > int64(len(b)-w)) {
			err = fmt.Errorf("%w: the %s is truncated", ErrMalformed, what)
		}
		if err == nil {
			v, b = b[w:w+int(n):w+int(n)], b[w+int(n):]
		}
		return v
	}
	field := func(what string) []byte {
		n, w := binary.Uvarint(b)
		return take(what, int64(n), w)
	}
	signed := func(what string) []byte {
		n, w := binary.Varint(b)
		return take(what, n, w)
	}
	topic := field("topic")
	r.Key, r.Value = field("key"), field("value")
	if err != nil {
		return r, nil, err
	}
	count, w := binary.Varint(b)
	if w <= 0 || count < 0 || count > int64(len(b)) {
		return r, nil, fmt.Errorf("%w: no number of headers", ErrMalformed)
	}
	b, d.headers = b[w:], d.headers[:0]
	for range count {
		name := signed("header's name")
		value := signed("header's value")
		if err != nil {
			return r, nil, err
		}
		d.headers = append(d.headers, header{d.d.intern(name), value})
	}
	r.Topic = d.d.intern(topic)
	d.d.record(&r, d.headers)
	r.Err, err = nil, r.Err
	if err == nil && !slices.Contains(topicNames[:], r.Topic) {
		err = fmt.Errorf("%w: unknown topic %q", ErrMalformed, r.Topic)
	}
	return r, b, err
}
