package event

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
)

// LineTooLongError reports a line that was skipped because of its length.
type LineTooLongError struct {
	Line   int    // line number, from 1
	Size   int64  // bytes without the line break
	Limit  int    // the longest line that is returned
	Prefix []byte // the line's first bytes, at most 4 KiB, not redacted
}

// Error returns the line, its size and the limit.
func (e *LineTooLongError) Error() string {
	return fmt.Sprintf("line %d has %d bytes, the limit is %d", e.Line, e.Size, e.Limit)
}

const (
	lineChunk      = 256 << 10
	linePrefix     = 4 << 10
	defaultMaxLine = 64 << 20
)

// Lines reads JSON lines from a reader. A line is the caller's: its memory is never reused, events may alias it. It is for one goroutine.
type Lines struct {
	r     io.Reader
	max   int
	buf   []byte // read and not yet returned
	chunk []byte // room after buf in the same memory
	from  int    // bytes of buf known to hold no line break
	line  int
	err   error // the reader's, kept until buf is used up
	empty int   // consecutive reads without a byte
}

// NewLines returns a Lines that skips lines longer than maxLine bytes; 64 MiB if maxLine is not
// positive.
func NewLines(r io.Reader, maxLine int) *Lines {
	return &Lines{r: r, max: cmp.Or(maxLine, defaultMaxLine)}
}

// Next returns the next line that is not blank, without its line break, and its number from 1. At the end the error is io.EOF. A
// *LineTooLongError concerns that line only, and the next call continues after it; others are the reader's and final. The last line needs
// no line break.
func (l *Lines) Next() (line []byte, n int, err error) {
	for {
		line, err := l.next()
		if err != nil {
			return nil, l.line, err
		}
		if l.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimRight(line, "\r"); len(bytes.TrimSpace(line)) > 0 {
			return line[:len(line):len(line)], l.line, nil
		}
	}
}

// next returns the next line, blank or not.
func (l *Lines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.from:], '\n'); i >= 0 {
			end := l.from + i
			line := l.buf[:end]
			l.buf = l.buf[end+1:]
			return l.counted(line)
		}
		l.from = len(l.buf)
		if l.err != nil {
			return l.last()
		}
		if len(l.buf) > l.max {
			return nil, l.discard()
		}
		l.fill()
	}
}

// last returns what is left when the reader has ended.
func (l *Lines) last() ([]byte, error) {
	if !errors.Is(l.err, io.EOF) {
		return nil, fmt.Errorf("line %d: %w", l.line+1, l.err)
	}
	if len(l.buf) == 0 {
		return nil, io.EOF
	}
	line := l.buf
	l.buf = nil
	return l.counted(line)
}

// counted counts a line, and returns it unless it is too long.
func (l *Lines) counted(line []byte) ([]byte, error) {
	l.from = 0
	l.line++
	if len(line) > l.max {
		return nil, l.tooLong(line[:min(len(line), linePrefix)], int64(len(line)))
	}
	return line, nil
}

// discard reads to the end of a line that is too long, keeping its beginning only.
func (l *Lines) discard() error {
	prefix := bytes.Clone(l.buf[:min(len(l.buf), linePrefix)])
	size := int64(len(l.buf))
	l.buf, l.chunk = nil, nil
	l.line++
	for l.err == nil {
		l.buf, l.from = nil, 0
		l.fill()
		i := bytes.IndexByte(l.buf, '\n')
		if i >= 0 {
			size += int64(i)
			l.buf = l.buf[i+1:]
			return l.tooLong(prefix, size)
		}
		size += int64(len(l.buf))
	}
	l.buf, l.from = nil, 0
	if !errors.Is(l.err, io.EOF) {
		return fmt.Errorf("line %d: %w", l.line, l.err)
	}
	return l.tooLong(prefix, size)
}

func (l *Lines) tooLong(prefix []byte, size int64) error {
	return &LineTooLongError{Line: l.line, Size: size, Limit: l.max, Prefix: bytes.Clone(prefix)}
}

// fill reads once and appends to buf, in new memory if the chunk has no room left: what was
// returned is never written to.
func (l *Lines) fill() {
	if len(l.chunk) < lineChunk/8 {
		fresh := make([]byte, max(lineChunk, 2*len(l.buf)))
		n := copy(fresh, l.buf)
		l.buf, l.chunk = fresh[:n], fresh[n:]
	} else if len(l.buf) == 0 {
		l.buf = l.chunk[:0]
	}
	n, err := l.r.Read(l.chunk)
	l.buf = l.buf[:len(l.buf)+n]
	l.chunk = l.chunk[n:]
	l.err = err
	if n > 0 || err != nil {
		l.empty = 0
	} else if l.empty++; l.empty > 100 {
		l.err = io.ErrNoProgress
	}
}
