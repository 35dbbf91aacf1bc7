package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
)

// tally counts one list's items: items = events + malformed once it is acknowledged.
type tally struct {
	items     int
	events    int // produced and acknowledged
	malformed int // became dead letters, alone or together; events too large even without bodies, too
	policy    int // policy copies acknowledged
	stripped  int
}

// intake takes one body from its first byte to its answer. It belongs to one request.
type intake struct {
	h                  *Handler
	ctx                context.Context
	cluster, apiserver string
	source             string
	received           time.Time
	policy             string // QueryPolicyOnly, QueryPolicyDone, or empty: both parts of the work

	reserved int64 // bytes of h.flight
	slot     int64 // of h.decoding; 0: none is held
	maxEvent int   // bytes; the configured limit, or less when the stream takes less
	tally    tally
	lists    *event.Lists       // the memory of the decoded list
	sighted  event.Sightings    // of apiservers' versions in this list
	letters  []event.DeadLetter // of items, to produce after the events
}

// serve reads, decodes and produces the body of r.
func (in *intake) serve(r *http.Request) *answer {
	in.maxEvent = in.h.cfg.MaxEvent
	defer func() { in.h.flight.release(in.cluster, in.reserved) }()

	if !in.h.flight.enter(in.cluster) {
		return in.noRoom()
	}
	defer in.h.flight.leave(in.cluster)
	if in.h.flight.isFull(in.cluster, in.received) {
		// A body left unread would cost the connection, and the next attempt a handshake.
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, in.h.cfg.MaxBody))
		return full()
	}
	body, refused := in.readBody(r)
	defer func() { in.h.buffers.put(body) }()
	if refused != nil {
		return refused // still under the deadline: the server may read the rest of the body
	}
	defer in.rest()
	if err := in.work(); err != nil {
		return in.notAcknowledged(err)
	}
	in.lists = in.h.buffers.lists()
	defer func() { in.h.buffers.putLists(in.lists) }()
	if n := countItems(body); n > maxItems {
		if a := in.bodyLetter(letterTooLarge, fmt.Sprintf("list of more than %d items", maxItems), body, int64(len(body))); a != nil {
			return a
		}
		return refuse(http.StatusRequestEntityTooLarge, letterTooLarge,
			"the list has more than %d items: lower --audit-webhook-batch-max-size", maxItems)
	}

	events, policy, err := in.decode(body)
	if err != nil {
		if a := in.bodyLetter(letterNotList, err.Error(), body, int64(len(body))); a != nil {
			return a
		}
		return refuse(http.StatusBadRequest, letterNotList, "%v: kept as a dead letter; "+
			"post what kube-apiserver's audit webhook posts, or import log files with `retrial import`", err)
	}
	if err := in.deliver(events, policy); err != nil {
		in.h.metrics.received.Add(float64(in.tally.items))
		in.h.metrics.unacked.Add(float64(in.tally.items))
		return in.notAcknowledged(err)
	}
	return in.accepted()
}

// decode decodes and redacts the list. It returns its events, and the indexes of policy writes. Malformed items become dead letters.
func (in *intake) decode(body []byte) (events []event.Item, policy []int, err error) {
	var folded fold
	events = make([]event.Item, 0, eventsHint)
	err = in.lists.Decode(body, func(item event.Item) error {
		in.tally.items++
		if item.Err == nil {
			item.Err = item.Event.Validate()
		}
		if item.Err != nil {
			in.malformedItem(item, &folded)
			return nil
		}
		// While the event has its bodies.
		if in.policy != QueryPolicyDone && (event.KeepsPolicy(item.Event) || in.sights(item.Event)) {
			policy = append(policy, len(events))
		}
		item.RedactWith(in.h.redactor)
		events = append(events, item)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if folded.items > 0 {
		in.letters = append(in.letters, folded.letter(in.cluster, in.source))
	}
	return events, policy, nil
}

// sights reports whether an event is the first in a while to show its apiserver's version.
func (in *intake) sights(e *event.Event) bool {
	if !in.h.sightings.Fresh(in.cluster, in.apiserver, e) || !in.sighted.Fresh(in.cluster, in.apiserver, e) {
		return false
	}
	in.sighted.Passed(in.cluster, in.apiserver, e)
	return true
}

// malformedItem adds a dead letter for one item, or adds the item to folded once the list has
// had its share of letters.
func (in *intake) malformedItem(item event.Item, folded *fold) {
	in.tally.malformed++
	if len(in.letters) >= itemLetters {
		folded.add(item)
		return
	}
	raw, err := item.Raw, item.Err
	if line, ok := unwrap(raw); ok {
		if _, reason := event.DecodeValid(line); reason != nil {
			raw, err = line, reason
		}
	}
	in.letters = append(in.letters, event.DeadLetter{
		Cluster: in.cluster,
		Source:  in.source,
		Reason:  letterMalformed,
		Detail:  fmt.Sprintf("item %d: %v", item.Index, err),
		Digest:  digest(raw),
		Size:    int64(len(raw)),
		Prefix:  in.prefix(raw),
	})
}

// unwrap returns the text of an item that is a JSON string, as an import passes on what is not JSON: redaction has to see it unescaped.
func unwrap(raw []byte) ([]byte, bool) {
	var line string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &line) != nil {
		return nil, false
	}
	return []byte(line), true
}

// deliver produces policy copies, then events, then dead letters; each step is
// acknowledged before the next begins. If the stream takes less than the configured
// MaxEvent, the rest of the list is stripped to what it takes.
func (in *intake) deliver(events []event.Item, policy []int) error {
	for {
		err := in.attempt(events, policy)
		var tooLarge *stream.TooLargeError
		if !errors.As(err, &tooLarge) {
			return err
		}
		limit := tooLarge.Limit - recordOverhead
		if limit <= 0 || limit >= in.maxEvent {
			return err // a dead letter, or a record that no stripping makes fit
		}
		in.h.log.Warn("stream takes smaller records than configured", zap.Int("max_event", in.maxEvent), zap.Int("limit", limit))
		in.maxEvent = limit
	}
}

// recordOverhead bounds what key and headers add to a record's value.
const recordOverhead = 2 << 10

func (in *intake) attempt(events []event.Item, policy []int) error {
	in.tally.policy, in.tally.events = 0, 0
	batch := in.newBatch()
	defer batch.free()
	for _, i := range policy {
		if err := batch.add(&events[i], true); err != nil {
			return err
		}
	}
	if err := batch.flush(); err != nil {
		return err
	}
	in.tally.policy, batch.acknowledged = batch.acknowledged, 0
	for _, i := range policy {
		in.h.sightings.Passed(in.cluster, in.apiserver, events[i].Event)
	}
	if in.policy == QueryPolicyOnly {
		return nil // the same list comes again in full; its dead letters are produced then
	}
	letters, malformed := len(in.letters), in.tally.malformed
	err := in.produceEvents(batch, events)
	if err != nil { // the next attempt adds the letters of events too large again
		in.letters, in.tally.malformed = in.letters[:letters], malformed
	}
	return err
}

func (in *intake) produceEvents(batch *batch, events []event.Item) error {
	for i := range events {
		if err := batch.add(&events[i], false); err != nil {
			return err
		}
	}
	if err := batch.flush(); err != nil {
		return err
	}
	in.tally.events = batch.acknowledged
	return in.produceLetters()
}

func (in *intake) produceLetters() error {
	if len(in.letters) == 0 {
		return nil
	}
	records := make([]stream.Record, len(in.letters))
	for i := range in.letters {
		records[i] = in.letterRecord(in.letters[i])
	}
	if err := in.produce(records...); err != nil {
		return err
	}
	for i := range in.letters {
		in.h.metrics.letters.WithLabelValues(in.letters[i].Reason).Inc()
	}
	first := in.letters[0]
	in.h.log.Error("items became dead letters", zap.String("cluster", in.cluster), zap.String("apiserver", in.apiserver),
		zap.Int("items", in.tally.malformed), zap.String("reason", first.Reason),
		zap.String("first", first.Detail), zap.String("digest", first.Digest))
	return nil
}

func (in *intake) letterRecord(letter event.DeadLetter) stream.Record {
	return stream.DeadLetterRecord(letter, in.received)
}

// work waits for a slot to decode and encode in, which takes processor time. It is held until rest or produce: not while waiting for Kafka.
func (in *intake) work() (err error) {
	if in.slot == 0 {
		in.slot, err = in.h.decoding.take(in.ctx, in.cluster, 1)
	}
	if err != nil {
		return fmt.Errorf("wait for a processor: %w", err)
	}
	return nil
}

func (in *intake) rest() {
	if in.slot > 0 {
		in.h.decoding.give(in.slot)
		in.slot = 0
	}
}

// produce produces records when it is the cluster's turn, within what is left of the request's
// time.
func (in *intake) produce(records ...stream.Record) error {
	in.rest()
	var size int64
	for i := range records {
		size += int64(len(records[i].Value))
	}
	taken, err := in.h.outgoing.take(in.ctx, in.cluster, size)
	if err != nil {
		return fmt.Errorf("wait for room for %d bytes: %w", size, err)
	}
	defer in.h.outgoing.give(taken)
	return in.h.producer.Produce(in.ctx, records...)
}

// accepted counts the list and answers 200.
func (in *intake) accepted() *answer {
	m, t := in.h.metrics, in.tally
	m.policy.Add(float64(t.policy))
	if in.policy == QueryPolicyOnly {
		return &answer{code: http.StatusOK, tally: &tally{policy: t.policy}, text: fmt.Sprintf("accepted %d policy copies", t.policy)}
	}
	m.received.Add(float64(t.items))
	m.acknowledged.Add(float64(t.events))
	m.malformed.Add(float64(t.malformed))
	m.stripped.Add(float64(t.stripped))
	return &answer{
		code: http.StatusOK, tally: &t,
		text: fmt.Sprintf("accepted %d events, %d became dead letters", t.events, t.malformed),
	}
}

// notAcknowledged answers a list, or a dead letter, that Kafka may not have.
func (in *intake) notAcknowledged(err error) *answer {
	if errors.Is(err, stream.ErrFull) {
		in.h.log.Warn("log is full, pushing back", zap.String("cluster", in.cluster), zap.Error(err))
		in.h.flight.foundFull(in.cluster, in.h.cfg.Now())
		return full()
	}
	fields := []zap.Field{zap.String("cluster", in.cluster), zap.Int("items", in.tally.items), zap.Error(err)}
	switch {
	case errors.Is(in.ctx.Err(), context.Canceled):
		in.h.log.Debug("sender went away", fields...)
		return refuse(http.StatusServiceUnavailable, refusedAborted, "the request was cancelled").pushBack(storageBackAfter)
	case errors.Is(err, stream.ErrTransient), errors.Is(err, stream.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		in.h.log.Warn("events not acknowledged", fields...)
	default: // credentials, limits, faults: waiting will not help
		in.h.log.Error("events not acknowledged", fields...)
	}
	// The sender learns nothing about the brokers: what went wrong is in the log.
	return refuse(http.StatusServiceUnavailable, refusedUnacked, "not every event was acknowledged in time: try again later").
		pushBack(storageBackAfter)
}

// full returns the answer to a list that the log has no room for.
func full() *answer {
	return refuse(http.StatusTooManyRequests, refusedFull, "the log is full: try again later").pushBack(storageBackAfter)
}

// maxItems is how many items a list may have. Decoding a list takes about a kilobyte an
// item however small the item is, so the body's limit alone would not bound memory. An
// apiserver sends 400 by default.
const maxItems = 20_000

// countItems bounds how many items the list in body has, without decoding it: exactly if they may be too many, else by the commas.
func countItems(body []byte) int {
	// Counting bytes is vectorised and costs next to nothing; most lists stop here.
	if commas := bytes.Count(body, []byte{','}); commas < 4*maxItems {
		return min(commas, maxItems)
	}
	depth, items := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 2 { // in the object's items; members of its metadata do no harm
				items++
			}
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		}
	}
	return items + 1
}
