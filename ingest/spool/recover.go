package spool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"
)

// recover reads the folder: which segments exist, how much of each is whole, and where sending
// starts.
func (s *Spool) recover() error {
	pos, err := readPosition(s.cfg.FS)
	if err != nil {
		s.log.Warn("the spool's position cannot be read; everything in it is sent again", zap.Error(err))
	}
	names, err := s.cfg.FS.List()
	if err != nil {
		return fmt.Errorf("list the folder: %w", err)
	}
	var seqs []uint64
	last := pos.Segment
	for _, name := range names {
		seq, kind, ok := parseName(name)
		if !ok {
			continue
		}
		last = max(last, seq)
		if kind == "kept" {
			s.metrics.kept.Inc()
			continue
		}
		if seq < pos.Segment { // it was sent; its removal was not durable
			if err := s.cfg.FS.Remove(name); err != nil {
				return fmt.Errorf("remove a segment that was sent: %w", err)
			}
			continue
		}
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	s.writer.seq = last
	s.pos = pos
	if err := s.loadAll(seqs); err != nil {
		return err
	}
	if len(s.segments) > 0 {
		s.mark()
		s.log.Info("records were left in the spool, sending them", zap.Int64("records", s.records), zap.Int64("bytes", s.used))
	}
	s.gauges()
	return nil
}

// parseName parses the name of a segment: 16 digits and its kind, "seg" or "kept".
func parseName(name string) (seq uint64, kind string, ok bool) {
	digits, kind, ok := strings.Cut(name, ".")
	if !ok || len(digits) != 16 || kind != "seg" && kind != "kept" {
		return 0, "", false
	}
	seq, err := strconv.ParseUint(digits, 10, 64)
	return seq, kind, err == nil
}

// loadAll reads the segments, newest first: each records how far the one before it goes.
func (s *Spool) loadAll(seqs []uint64) error {
	newest := true
	before, end := uint64(0), int64(-1) // from the header of the next one; -1: unknown
	for _, seq := range slices.Backward(seqs) {
		g := &segment{seq: seq, by: map[string]int64{}}
		if end >= 0 && seq > before { // begun by a write that failed: nothing in it was acknowledged
			if err := s.cfg.FS.Remove(g.name()); err != nil {
				return fmt.Errorf("remove a segment that was never finished: %w", err)
			}
			continue
		}
		known := int64(-1)
		if seq == before {
			known = end
		}
		f, err := s.cfg.FS.Open(g.name(), os.O_RDWR)
		if err != nil {
			return fmt.Errorf("open a segment: %w", err)
		}
		header, found, err := s.load(g, f, newest, known)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", g.name(), err)
		}
		if before, end, _ = parseSegmentHeader(header); end == 0 {
			end = -1
		}
		if !found {
			continue
		}
		if newest {
			s.writer.before, s.writer.beforeEnd = seq, g.size
		}
		newest = false
		s.segments = append(s.segments, g)
		s.used += g.size
		s.records += g.records
		for cluster, n := range g.by {
			s.by[cluster] += n
		}
	}
	slices.Reverse(s.segments)
	return nil
}

// load walks the frames of a segment from its beginning to its last whole frame; found is false if there is none. What follows it in the
// newest was never acknowledged and is truncated; of others the next one's header says how much was, unless it is damaged.
func (s *Spool) load(g *segment, f File, newest bool, known int64) (header []byte, found bool, err error) {
	end, err := f.Size()
	if err != nil {
		return nil, false, err
	}
	size := end
	if known >= 0 {
		end = min(end, known)
	}
	header = make([]byte, min(size, headerBytes))
	if err := readFull(f, header, 0); err != nil {
		return nil, false, err
	}
	if m := segmentMagic; len(header) >= len(m) && string(header[:6]) == m[:6] && header[6] != m[6] {
		return nil, false, errors.New("it was written by a newer release: let that release drain it, or move it away")
	}
	at, err := s.walk(g, f, end, newest)
	if err != nil {
		return nil, false, err
	}
	g.size = at
	_, _, sound := parseSegmentHeader(header)
	begun := len(header) < headerBytes || len(bytes.Trim(header, "\x00")) == 0 // a header that was not synced
	switch {
	case at == headerBytes && known > headerBytes, at == headerBytes && !sound && !begun:
		return header, false, s.setAside(g, size)
	case at == headerBytes: // it was created, and nothing in it was acknowledged
		return header, false, s.drop(g, size)
	case newest && at < size:
		s.cut(g, size-at)
		if err := errors.Join(f.Truncate(at), f.Sync()); err != nil {
			return nil, false, fmt.Errorf("truncate it: %w", err)
		}
	case known < 0 && !newest && at < size: // another was begun after it, so this was probably acknowledged
		s.lost(g, at, size-at)
	case at < known:
		s.lost(g, at, known-at)
	}
	if !sound {
		s.lost(g, 0, headerBytes)
	}
	return header, true, nil
}

// lost records bytes that should be a frame and are not.
func (s *Spool) lost(g *segment, at, n int64) {
	g.keep = true
	s.metrics.unsent.WithLabelValues(damagedFrame).Inc()
	s.log.Error("a part of the spool is damaged and cannot be sent; its segment is kept",
		zap.String("segment", g.name()), zap.String("kept_as", g.kept()),
		zap.Int64("offset", at), zap.Int64("bytes", n))
}

// walk counts the frames that are still to be sent and returns the end of the last whole one.
func (s *Spool) walk(g *segment, f File, end int64, newest bool) (int64, error) {
	from := int64(0)
	if g.seq == s.pos.Segment {
		from = s.pos.Offset
	}
	whole := int64(headerBytes)
	for at := whole; at < end; {
		h, ok, err := readHead(f, at, end)
		if err != nil {
			return 0, err
		}
		ok = ok && at+h.size <= end
		if ok && newest { // what was not synced may have the right size and the wrong bytes
			if ok, err = verify(f, at, h); err != nil {
				return 0, err
			}
		}
		if ok {
			g.by[h.cluster] += h.size
			if at >= from {
				g.records += int64(h.records)
			}
			at += h.size
			whole = at
			continue
		}
		// A torn end, or damage followed by whole frames: those were acknowledged, so the
		// drainer must read them and report what it skips.
		if at, err = nextHead(f, at+1, end); err != nil {
			return 0, err
		}
	}
	return whole, nil
}

// verify reports whether the bytes after a head match its checksum.
func verify(f File, at int64, h head) (bool, error) {
	b := make([]byte, h.size-headBytes)
	if err := readFull(f, b, at+headBytes); err != nil {
		return false, err
	}
	return crc32.Checksum(b, castagnoli) == h.crc, nil
}

// cut records bytes at the end that are not a whole frame.
func (s *Spool) cut(g *segment, n int64) {
	s.metrics.torn.Add(float64(n))
	s.log.Warn("a segment ends in the middle of a frame, which was never acknowledged; it is truncated",
		zap.String("segment", g.name()), zap.Int64("bytes", n))
}

// drop removes a segment without a whole frame.
func (s *Spool) drop(g *segment, size int64) error {
	if size > headerBytes {
		s.cut(g, size-headerBytes)
	}
	if err := s.cfg.FS.Remove(g.name()); err != nil {
		return fmt.Errorf("remove an empty segment: %w", err)
	}
	return nil
}

// setAside keeps a file that does not start like a segment.
func (s *Spool) setAside(g *segment, size int64) error {
	s.metrics.kept.Inc()
	s.metrics.unsent.WithLabelValues(damagedFrame).Inc()
	s.log.Error("a segment is damaged from its beginning and cannot be sent; it is kept",
		zap.String("segment", g.name()), zap.String("kept_as", g.kept()), zap.Int64("bytes", size))
	if err := s.cfg.FS.Rename(g.name(), g.kept()); err != nil {
		return fmt.Errorf("set a segment aside: %w", err)
	}
	return nil
}

const (
	positionName = "position"
	positionTemp = "position.new"
)

// position is how far the drainer has got: everything before it is in Kafka.
type position struct {
	Segment uint64 `json:"segment"`
	Offset  int64  `json:"offset"`
	// Keep means that the segment is not deleted when it is finished: something in it could
	// not be sent.
	Keep bool `json:"keep,omitempty"`
}

// signed is the position as it is written, with its checksum.
type signed struct {
	position
	Sum uint32 `json:"sum"`
}

func (p position) sum() uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%d %d %t", p.Segment, p.Offset, p.Keep), castagnoli)
}

// readPosition returns the position written last. If it cannot be read, problem says why: sending from the beginning is harmless.
func readPosition(dir FS) (p position, problem error) {
	f, err := dir.Open(positionName, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return position{}, nil
	}
	if err != nil {
		return position{}, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return position{}, err
	}
	b := make([]byte, min(size, 1024))
	if err := readFull(f, b, 0); err != nil {
		return position{}, err
	}
	var s signed
	if err := json.Unmarshal(b, &s); err != nil {
		return position{}, fmt.Errorf("the file is damaged: %w", err)
	}
	if s.Sum != s.sum() || s.Offset < 0 {
		return position{}, errors.New("the file is damaged: its checksum is wrong")
	}
	return s.position, nil
}

// writePosition replaces the position durably. After an error, the old or the new one may be found.
func writePosition(dir FS, p position) (err error) {
	// The three members always marshal.
	b, _ := json.Marshal(signed{p, p.sum()})
	f, err := dir.Open(positionTemp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("write position: %w", err)
	}
	err = writeAll(f, append(b, '\n'), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		if err = dir.Rename(positionTemp, positionName); err == nil {
			err = dir.Sync()
		}
	}
	if err != nil {
		return fmt.Errorf("write position: %w", err)
	}
	return nil
}
