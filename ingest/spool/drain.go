package spool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/sleep"
)

const (
	// windowBytes is how many bytes of records, uncompressed, are sent at once.
	windowBytes = 4 << 20
	// gateBytes is how little must be left, as stored, for new calls to wait until it is sent, so that records go to Kafka directly again.
	gateBytes = 1 << 20
	// positionEvery is how often the position is written while a segment is sent.
	positionEvery = time.Second

	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// window is what is sent at once: the records of a few frames.
type window struct {
	policy []stream.Record // sent first: a copy must not follow its event
	others []stream.Record
	next   position // after it
	count  int64    // records in the frames, sent or not
}

// Run sends what is spooled to Kafka, in order, until ctx ends; then it returns nil.
func (s *Spool) Run(ctx context.Context) error {
	d := &drainer{s: s, decoder: stream.NewDecoder()}
	defer func() {
		d.close()
		s.mu.Lock()
		s.openGate() // the drainer will not reach the end any more
		s.mu.Unlock()
	}()
	for pause := minPause; ; {
		more, err := d.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			d.failed(err)
			if sleep.For(ctx, pause/2+rand.N(pause/2)) != nil {
				return nil
			}
			pause = min(2*pause, maxPause)
			continue
		case !more:
			select {
			case <-ctx.Done():
				return nil
			case <-s.wake:
			}
		}
		pause = minPause
	}
}

type drainer struct {
	s       *Spool
	decoder *stream.Decoder
	file    File // of the segment at the position; nil: not open
	seq     uint64
	buf     []byte
	window  *window // read but not yet sent
	written time.Time
	trouble bool // the last attempt failed
}

func (d *drainer) close() {
	if d.file != nil {
		_ = d.file.Close()
		d.file = nil
	}
}

// step sends one window. more is false if there is nothing to send.
func (d *drainer) step(ctx context.Context) (more bool, err error) {
	s := d.s
	if d.window == nil {
		g, last := s.current()
		if g == nil {
			return false, nil
		}
		if s.pos.Offset >= g.size {
			if last && !s.settled() {
				return false, nil // it may still grow
			}
			return true, d.finish(g)
		}
		if d.window, err = d.read(*g); err != nil {
			return false, err
		}
	}
	if err := d.send(ctx); err != nil {
		return false, err
	}
	d.advance()
	return true, nil
}

// current returns a copy of the oldest segment with the position inside of it, and whether it
// is the newest.
func (s *Spool) current() (g *segment, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.segments) == 0 {
		if !s.busy && s.spooling.Load() { // spooling began with a round that failed
			s.end()
		}
		return nil, false
	}
	first := *s.segments[0]
	if s.pos.Segment != first.seq {
		s.pos = position{Segment: first.seq, Offset: headerBytes}
	}
	return &first, len(s.segments) == 1
}

// settled reports whether the newest segment is finished: no write is under way, and new calls
// wait until finish.
func (s *Spool) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate == nil {
		s.gate = make(chan struct{})
	}
	return !s.busy && s.pos.Offset >= s.segments[len(s.segments)-1].size
}

// read reads and decodes the frames of a window, skipping what is damaged.
func (d *drainer) read(g segment) (*window, error) {
	s := d.s
	if d.file == nil || d.seq != g.seq {
		d.close()
		f, err := s.cfg.FS.Open(g.name(), os.O_RDONLY)
		if err != nil {
			return nil, fmt.Errorf("read spool: %w", err)
		}
		d.file, d.seq = f, g.seq
	}
	w := &window{next: s.pos}
	var recs []stream.Record
	for raw := 0; raw < windowBytes && w.next.Offset < g.size; {
		at := w.next.Offset
		h, ok, err := readHead(d.file, at, g.size)
		if err != nil {
			return nil, fmt.Errorf("read spool: %s: %w", g.name(), err)
		}
		if !ok || at+h.size > g.size {
			next, err := nextHead(d.file, at+1, g.size)
			if err != nil {
				return nil, fmt.Errorf("read spool: %s: %w", g.name(), err)
			}
			s.damaged(w, g, at, next-at, damagedFrame, 0, errDamaged)
			w.next.Offset = next
			continue
		}
		if int64(cap(d.buf)) < h.size {
			d.buf = make([]byte, h.size)
		}
		b := d.buf[:h.size]
		if err := readFull(d.file, b, at); err != nil {
			return nil, fmt.Errorf("read spool: %s: %w", g.name(), err)
		}
		w.next.Offset = at + h.size
		w.count += int64(h.records)
		raw += h.raw
		if recs, err = s.codec.decode(recs, d.decoder, h, b); err != nil {
			reason := damagedFrame
			if errors.Is(err, stream.ErrCodecVersion) {
				reason = damagedVersion
			}
			s.damaged(w, g, at, h.size, reason, h.records, err)
		}
	}
	if cap(d.buf) > 4*frameTarget {
		d.buf = nil
	}
	for _, r := range recs {
		if r.Topic == stream.TopicPolicy {
			w.policy = append(w.policy, r)
		} else {
			w.others = append(w.others, r)
		}
	}
	return w, nil
}

// damaged records that a part of a segment cannot be sent: the segment is kept.
func (s *Spool) damaged(w *window, g segment, at, size int64, reason string, records int, err error) {
	w.next.Keep = true
	s.metrics.unsent.WithLabelValues(reason).Add(float64(max(records, 1)))
	s.log.Error("a part of the spool cannot be sent; its segment is kept",
		zap.String("segment", g.name()), zap.String("kept_as", g.kept()),
		zap.Int64("offset", at), zap.Int64("bytes", size), zap.Int("records", records), zap.Error(err))
}

// send sends the window, copies of policy writes first. What Kafka refuses as too large is set
// aside; everything else is retried.
func (d *drainer) send(ctx context.Context) error {
	if d.s.gated() {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, d.s.cfg.Direct)
		defer cancel()
	}
	w := d.window
	for _, part := range []*[]stream.Record{&w.policy, &w.others} {
		if len(*part) == 0 {
			continue
		}
		n := len(*part)
		err := d.s.producer.Produce(ctx, *part...)
		if errors.Is(err, stream.ErrTooLarge) {
			n, err = d.oneByOne(ctx, w, *part)
		}
		if err != nil {
			return err
		}
		d.s.metrics.drained.Add(float64(n))
		*part = nil
	}
	return nil
}

// oneByOne sends records, at least one of which is too large, one at a time, and returns how
// many Kafka accepted.
func (d *drainer) oneByOne(ctx context.Context, w *window, recs []stream.Record) (sent int, err error) {
	for i := range recs {
		err := d.s.producer.Produce(ctx, recs[i])
		switch {
		case errors.Is(err, stream.ErrTooLarge):
			s := d.s
			s.damaged(w, segment{seq: d.seq}, s.pos.Offset, int64(stream.RecordSize(&recs[i])), damagedSize, 1, err)
		case err != nil:
			return 0, err
		default:
			sent++
		}
	}
	return sent, nil
}

func (s *Spool) gated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gate != nil
}

func (d *drainer) advance() {
	s, w := d.s, d.window
	d.window = nil
	if d.trouble {
		d.trouble = false
		s.log.Info("kafka accepts records again, sending what was spooled")
	}
	s.mu.Lock()
	w.next.Keep = w.next.Keep || s.pos.Keep
	s.pos = w.next
	s.records -= w.count
	s.segments[0].records -= w.count
	left := s.used - s.pos.Offset
	if left+s.queued <= gateBytes && s.gate == nil && !s.closed {
		s.gate = make(chan struct{})
	}
	s.gauges()
	s.mu.Unlock()
	if now := time.Now(); now.Sub(d.written) >= positionEvery {
		d.written = now
		if err := writePosition(s.cfg.FS, w.next); err != nil {
			// After a crash more is sent again than necessary; there is no other harm.
			s.log.Warn("the spool's position was not written", zap.Error(err))
		}
	}
}

// finish removes a sent segment, or sets it aside, and after the last ends spooling. The position may stay behind: none is missed.
func (d *drainer) finish(g *segment) error {
	s := d.s
	d.close()
	s.mu.Lock()
	last := len(s.segments) == 1
	s.mu.Unlock()
	if last { // nothing is under way, and new calls wait
		if err := s.writer.seal(); err != nil {
			s.log.Warn("close a segment", zap.Error(err))
		}
	}
	if s.pos.Keep || g.keep {
		if err := s.cfg.FS.Rename(g.name(), g.kept()); err != nil {
			return fmt.Errorf("set a segment aside: %w", err)
		}
		s.metrics.kept.Inc()
	} else if err := s.cfg.FS.Remove(g.name()); err != nil {
		return fmt.Errorf("remove a segment that was sent: %w", err)
	}
	if err := s.cfg.FS.Sync(); err != nil {
		s.log.Warn("the removal of a segment was not synced; after a crash it may be sent again", zap.Error(err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= g.size
	s.records -= g.records // those of frames with a damaged head
	for cluster, n := range g.by {
		s.forget(cluster, n)
	}
	s.segments = s.segments[1:]
	s.pos = position{Segment: g.seq + 1, Offset: headerBytes}
	if last {
		s.end()
	}
	s.gauges()
	return nil
}

// end makes calls go to Kafka directly again. s.mu is held, and the spool is empty.
func (s *Spool) end() {
	s.log.Info("the spool is empty, records go to kafka directly",
		zap.Duration("spooled_for", time.Since(s.since).Round(time.Millisecond)))
	s.spooling.Store(false)
	close(s.empty)
	s.empty = nil
	s.metrics.active.Set(0)
	s.metrics.oldest.Set(0)
	s.openGate()
}

// failed records that nothing could be sent, and lets waiting calls spool.
func (d *drainer) failed(err error) {
	d.s.mu.Lock()
	d.s.openGate()
	d.s.mu.Unlock()
	if !d.trouble {
		d.trouble = true
		d.s.log.Warn("the spool cannot be drained yet, retrying", zap.Error(err))
	}
}
