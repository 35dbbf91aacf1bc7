package event

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Hash128 identifies requests, events and contents. Its value is the same in every process and
// version.
type Hash128 struct{ Hi, Lo uint64 }

// Bytes returns the hash in big-endian order.
func (h Hash128) Bytes() [16]byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], h.Hi)
	binary.BigEndian.PutUint64(b[8:], h.Lo)
	return b
}

// HashFromBytes is the inverse of Bytes.
func HashFromBytes(b [16]byte) Hash128 {
	return Hash128{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// AppendBinary appends the 16 bytes of Bytes; the error is always nil.
func (h Hash128) AppendBinary(dst []byte) ([]byte, error) {
	dst = binary.BigEndian.AppendUint64(dst, h.Hi)
	return binary.BigEndian.AppendUint64(dst, h.Lo), nil
}

// String returns 32 hexadecimal digits.
func (h Hash128) String() string {
	b := h.Bytes()
	return hex.EncodeToString(b[:])
}

// RequestKey identifies one request of one cluster: audit ID, user, verb, request URI and
// the time it was received, to the microsecond. The audit ID alone does not identify it:
// the client chooses it. Compute keys of redacted events only, so that every path computes the same.
//
// The client controls the input, and a collision would hide a request as another's duplicate: half of a SHA-256, not a fast hash.
func RequestKey(cluster string, e *Event) Hash128 {
	var room [512]byte
	b := append(room[:0], "retrial request 1\x00"...)
	for _, s := range [...]string{cluster, e.AuditID, e.User.Username, e.Verb, e.RequestURI} {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	b = appendMicro(b, e.RequestReceivedTimestamp)
	return sum(b)
}

// EventKey identifies one event: the request's key with the stage and its time.
func EventKey(req Hash128, e *Event) Hash128 {
	var room [96]byte
	b := append(room[:0], "retrial event 1\x00"...)
	b, _ = req.AppendBinary(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Stage)))
	b = append(b, e.Stage...)
	b = appendMicro(b, e.StageTimestamp)
	return sum(b)
}

// Content hashes the canonical bytes of an event, to distinguish a repeated delivery from a
// different copy. Bodies are long and a collision hides no request, so it is a fast hash, of
// 64 bits: the second half of the result is zero.
func Content(canonical []byte) Hash128 { return Hash128{Hi: xxhash.Sum64(canonical)} }

// appendMicro appends a time as microseconds since 1970.
func appendMicro(b []byte, t time.Time) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(t.UnixMicro()))
}

// sum returns the first half of the SHA-256.
func sum(b []byte) Hash128 {
	full := sha256.Sum256(b)
	return HashFromBytes([16]byte(full[:16]))
}

// Position is where a record is in Kafka. Epoch distinguishes the logs of a recreated topic, so
// that a position is never used twice.
type Position struct {
	Epoch     uint32
	Partition int32
	Offset    int64
}

// DeadLetter is input that could not become an event, or a record that could not be processed: never dropped silently, nor retried forever.
type DeadLetter struct {
	Cluster string
	Source  string // how it came in: "webhook", "import", "watch", "replay"
	Reason  string // closed set, for metrics: "not-event-list", "too-large", "malformed-item", "codec-version", "poison"
	Detail  string // the decoder's or replayer's message: what, where
	Digest  string // "sha256:" + hex of the original bytes
	Size    int64  // of the original bytes
	Prefix  []byte // redacted beginning of the original bytes
}
