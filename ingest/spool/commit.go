package spool

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/stream"
)

// Frames become durable in rounds (group commit): while one is written and synced, what arrives joins the next. Nothing waits for a timer.

// round is one write and sync, with all that wait for it.
type round struct {
	frames  []frame
	size    int64
	records int64
	done    chan struct{}
	err     error
}

// retryDisk is how long to wait before trying a disk again that failed.
const retryDisk = time.Second

// join adds frames of n records to the next round and makes sure that it is served. s.mu is
// held.
func (s *Spool) join(frames []frame, n int) *round {
	if s.round == nil {
		s.round = &round{done: make(chan struct{})}
	}
	r := s.round
	r.frames = append(r.frames, frames...)
	for i := range frames {
		r.size += int64(len(frames[i].bytes))
	}
	r.records += int64(n)
	if !s.busy {
		s.busy = true
		s.rounds.Go(s.serve)
	}
	return r
}

func (s *Spool) serve() {
	for {
		s.mu.Lock()
		r := s.round
		if s.round = nil; r == nil {
			s.busy = false
			s.mu.Unlock()
			s.rouse() // the drainer may be waiting for this to see that nothing is left
			return
		}
		s.mu.Unlock()

		began := time.Now()
		r.err = s.writer.write(s.cfg.FS, s.cfg.SegmentBytes, r)
		s.metrics.sync.Observe(time.Since(began).Seconds())
		s.settle(r)
		close(r.done)
	}
}

func (s *Spool) settle(r *round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued -= r.size
	if r.err != nil {
		for i := range r.frames {
			s.forget(r.frames[i].cluster, int64(len(r.frames[i].bytes)))
		}
		if errors.Is(r.err, syscall.ENOSPC) || errors.Is(r.err, syscall.EDQUOT) {
			r.err = fullError(r.err.Error())
		} else {
			r.err = fmt.Errorf("%w: write the spool: %w", stream.ErrTransient, r.err)
		}
		s.down, s.retry = r.err, time.Now().Add(retryDisk)
		s.log.Error("cannot write to the spool", zap.Int64("records", r.records), zap.Error(r.err))
		return
	}
	g := s.writer.segment
	if n := len(s.segments); n == 0 || s.segments[n-1] != g {
		g.size = headerBytes
		s.used += g.size
		s.segments = append(s.segments, g)
	}
	for i := range r.frames {
		g.by[r.frames[i].cluster] += int64(len(r.frames[i].bytes))
	}
	g.size += r.size
	g.records += r.records
	s.used += r.size
	s.records += r.records
	s.gauges()
	s.rouse()
}

// forget releases n bytes of a cluster. s.mu is held.
func (s *Spool) forget(cluster string, n int64) {
	if s.by[cluster] -= n; s.by[cluster] <= 0 {
		delete(s.by, cluster) // names come from clients
	}
}

func (s *Spool) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// writer appends to the newest segment. It belongs to the round under way.
type writer struct {
	file    File
	segment *segment
	end     int64 // of what was synced
	seq     uint64

	// The segment written last, and how much of it was acknowledged; the header of the next
	// one records both.
	before    uint64
	beforeEnd int64
}

// write makes a round durable, all of it in one segment.
func (w *writer) write(dir FS, limit int64, r *round) (err error) {
	if w.file != nil && w.end >= limit {
		if err := w.seal(); err != nil {
			return err
		}
	}
	fresh := w.file == nil
	if fresh {
		if err := w.create(dir); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			w.abandon(dir, fresh)
		}
	}()
	at := w.end
	if fresh {
		if err := writeAll(w.file, segmentHeader(w.before, w.beforeEnd), 0); err != nil {
			return err
		}
		at = headerBytes
	}
	for i := range r.frames {
		if err := writeAll(w.file, r.frames[i].bytes, at); err != nil {
			return err
		}
		at += int64(len(r.frames[i].bytes))
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	if fresh { // its name must last, too
		if err := dir.Sync(); err != nil {
			return err
		}
	}
	w.end, w.before, w.beforeEnd = at, w.segment.seq, at
	return nil
}

func (w *writer) create(dir FS) error {
	w.seq++
	g := &segment{seq: w.seq, by: map[string]int64{}}
	f, err := dir.Open(g.name(), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	w.file, w.segment, w.end = f, g, 0
	return nil
}

// abandon gives up a segment that could not be written or synced: a second sync does not bring
// back what a failed one lost. What the segment held before stays; the rest is truncated if the
// disk permits, and never read by this process.
func (w *writer) abandon(dir FS, fresh bool) {
	if !fresh {
		_ = w.file.Truncate(w.end)
	}
	_ = w.file.Close()
	if fresh {
		_ = dir.Remove(w.segment.name())
	}
	w.file = nil
}

// seal closes the segment: the next round begins another.
func (w *writer) seal() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

func writeAll(f File, b []byte, at int64) error {
	n, err := f.WriteAt(b, at)
	if err == nil && n < len(b) {
		err = fmt.Errorf("short write: %d of %d bytes", n, len(b))
	}
	return err
}
