package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
)

// batch encodes events into a buffer and produces it when it is large enough. It goes back to the handler: Produce keeps nothing of it.
type batch struct {
	in      *intake
	buf     []byte
	records []stream.Record
	keys    []byte

	acknowledged int // records, since the caller last reset it
}

// eventsHint is the usual number of events of a list.
const eventsHint = 400

func (in *intake) newBatch() *batch {
	return &batch{
		in:      in,
		buf:     in.h.buffers.get(64 << 10),
		records: make([]stream.Record, 0, min(in.tally.items, eventsHint)),
		keys:    make([]byte, 0, 16*min(in.tally.items, eventsHint)),
	}
}

func (b *batch) free() { b.in.h.buffers.put(b.buf) }

// add encodes an event as the record of its topic. An event over the limit loses its bodies, except for
// what the replica needs of a policy write; one that is still over it becomes a dead letter.
func (b *batch) add(item *event.Item, policy bool) error {
	if len(b.buf) >= chunkBytes {
		if err := b.flush(); err != nil {
			return err
		}
	}
	if err := b.in.work(); err != nil {
		return err
	}
	e, start := item.Event, len(b.buf)
	b.buf = item.AppendJSON(b.buf)
	if size := len(b.buf) - start; size > b.in.maxEvent {
		// Size and digest are of the redacted, canonical form: the same however it comes, and no guess of a secret can be tested by them.
		canonical := b.buf[start:]
		sum := sha256.Sum256(canonical)
		prefix := b.in.prefix(canonical)
		request, response, again := e.RequestObject, e.ResponseObject, event.Stripped(e)
		item.StripBodies(size, hex.EncodeToString(sum[:]))
		b.buf = item.AppendJSON(b.buf[:start])
		if room := b.in.maxEvent - (len(b.buf) - start); room > 0 {
			item.KeepBodies(request, response, room)
			b.buf = item.AppendJSON(b.buf[:start])
		}
		if len(b.buf)-start > b.in.maxEvent {
			b.buf = b.buf[:start]
			if !policy {
				b.in.tooLargeEvent(size, sum, prefix)
			}
			return nil
		}
		if !again {
			b.in.tally.stripped++
		}
	}
	value := b.buf[start:len(b.buf):len(b.buf)]
	in := b.in
	r := stream.Record{
		Value: value, Cluster: in.cluster, Source: in.source, APIServer: in.apiserver,
		Received: in.received, Content: event.Content(value), Bodies: event.BodiesOf(e),
	}
	if policy {
		r.Topic, r.Kind, r.Key = stream.TopicPolicy, stream.KindPolicyEvent, []byte(in.cluster)
	} else {
		key := event.RequestKey(in.cluster, e).Bytes()
		at := len(b.keys)
		b.keys = append(b.keys, key[:]...)
		r.Topic, r.Kind, r.Key = stream.TopicEvents, stream.KindEvent, b.keys[at:len(b.keys):len(b.keys)]
	}
	b.records = append(b.records, r)
	return nil
}

// flush produces what was added and counts it once it is acknowledged.
func (b *batch) flush() error {
	if len(b.records) == 0 {
		return nil
	}
	if err := b.in.produce(b.records...); err != nil {
		return err
	}
	b.acknowledged += len(b.records)
	clear(b.records)
	b.buf, b.records, b.keys = b.buf[:0], b.records[:0], b.keys[:0]
	return nil
}

// tooLargeEvent adds the dead letter of an event that is over the limit even without its
// bodies.
func (in *intake) tooLargeEvent(size int, sum [sha256.Size]byte, prefix []byte) {
	in.tally.malformed++
	in.letters = append(in.letters, event.DeadLetter{
		Cluster: in.cluster,
		Source:  in.source,
		Reason:  letterTooLarge,
		Detail: fmt.Sprintf("event of %d bytes is over the limit of %d even without its bodies; digest and size are of its redacted form",
			size, in.maxEvent),
		Digest: "sha256:" + hex.EncodeToString(sum[:]),
		Size:   int64(size),
		Prefix: prefix,
	})
}

// fold is one dead letter for many malformed items.
type fold struct {
	items int
	first int
	size  int64
	err   error
	sum   hash.Hash
}

func (f *fold) add(item event.Item) {
	if f.items == 0 {
		f.first, f.err, f.sum = item.Index, item.Err, sha256.New()
	}
	f.items++
	f.size += int64(len(item.Raw))
	f.sum.Write(item.Raw)
}

func (f *fold) letter(cluster, source string) event.DeadLetter {
	return event.DeadLetter{
		Cluster: cluster,
		Source:  source,
		Reason:  letterMalformed,
		Detail: fmt.Sprintf("%d more items from item %d on, the first: %v; the digest covers all of them, concatenated",
			f.items, f.first, f.err),
		Digest: "sha256:" + hex.EncodeToString(f.sum.Sum(nil)),
		Size:   f.size,
	}
}
