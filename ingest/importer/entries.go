package importer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/retrial-io/retrial/ingest/event"
)

// entry is one line of a log, or one item of a list.
type entry struct {
	n       int64  // line or item number, from 1
	raw     []byte // nil when tooLong is set
	tooLong *event.LineTooLongError
	// unended is set on a last line without a line break: its writer may not be done.
	unended bool
}

// entries splits a file's content. next returns io.EOF at the end; any other error is final,
// but what came before it is valid.
type entries interface {
	next() (entry, error)
}

// manyBad is after how many malformed lines a file without a single event is not an audit log.
const manyBad = 100

// kindPeek is how much of a file is looked at to tell a list from lines.
const kindPeek = 64 << 10

// newEntries returns the entries of r, chosen by how it begins.
func newEntries(r io.Reader, maxLine int) (entries, error) {
	buffered := bufio.NewReaderSize(r, kindPeek)
	head, err := buffered.Peek(kindPeek)
	if err != nil && err != io.EOF && len(head) == 0 {
		return nil, err
	}
	list, err := announcesList(head)
	if err != nil {
		return nil, err
	}
	if list {
		budget := &budgetReader{r: buffered, max: int64(maxLine)}
		return &listEntries{budget: budget, dec: json.NewDecoder(budget)}, nil
	}
	tail := &tailReader{r: buffered}
	return &lineEntries{tail: tail, lines: event.NewLines(tail, maxLine)}, nil
}

// announcesList reports whether the content begins like a list: its kind, or its items, come
// before anything that only an event has. Content of another kind, such as a state file, is
// an error.
func announcesList(head []byte) (bool, error) {
	dec := json.NewDecoder(bytes.NewReader(head))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return false, nil // reading it line by line tells what it is
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return false, nil
		}
		switch key {
		case "kind":
			kind, err := dec.Token()
			if err != nil || kind == event.Kind {
				return false, nil
			}
			if kind == event.ListKind {
				return true, nil
			}
			if text, ok := kind.(string); ok {
				return false, fmt.Errorf("%w: it holds a %.64q (import a cluster's state with --state)", ErrFormat, text)
			}
			return false, nil
		case "items":
			return true, nil
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return false, nil
		}
	}
	return false, nil
}

// lineEntries reads JSON lines, one ahead, so that it knows the last.
type lineEntries struct {
	tail  *tailReader
	lines *event.Lines

	ahead    entry
	aheadErr error
	started  bool
}

func (l *lineEntries) next() (entry, error) {
	if !l.started {
		l.started = true
		l.fetch()
	}
	if l.aheadErr != nil {
		return entry{}, l.aheadErr
	}
	e := l.ahead
	l.fetch()
	e.unended = l.aheadErr == io.EOF && l.tail.last != '\n'
	return e, nil
}

func (l *lineEntries) fetch() {
	line, n, err := l.lines.Next()
	var tooLong *event.LineTooLongError
	if errors.As(err, &tooLong) {
		l.ahead, l.aheadErr = entry{n: int64(tooLong.Line), tooLong: tooLong}, nil
		return
	}
	l.ahead, l.aheadErr = entry{n: int64(n), raw: line}, err
}

type tailReader struct {
	r    io.Reader
	last byte
}

func (t *tailReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if n > 0 {
		t.last = p[n-1]
	}
	return n, err
}

// listEntries reads the items of EventLists that follow each other, without holding a list
// in memory.
type listEntries struct {
	budget *budgetReader
	dec    *json.Decoder
	inside bool // in an items array
	n      int64
}

func (l *listEntries) next() (entry, error) {
	for {
		if !l.inside {
			if err := l.enter(); err != nil {
				return entry{}, err
			}
			continue
		}
		if !l.dec.More() {
			if err := l.leave(); err != nil {
				return entry{}, l.broken(err)
			}
			continue
		}
		var raw json.RawMessage
		if err := l.dec.Decode(&raw); err != nil {
			return entry{}, l.broken(err)
		}
		l.budget.left = l.budget.max
		l.n++
		if l.n == 1 {
			if _, err := event.DecodeValid(raw); err != nil {
				return entry{}, fmt.Errorf("%w: the list's first item: %w", ErrFormat, err)
			}
		}
		return entry{n: l.n, raw: raw}, nil
	}
}

// enter advances to the next list's items; it returns io.EOF if there is no further list.
func (l *listEntries) enter() error {
	t, err := l.dec.Token()
	if err == io.EOF {
		return io.EOF
	}
	if err != nil {
		return l.broken(err)
	}
	if t != json.Delim('{') {
		return fmt.Errorf("%w: item %d is followed by something other than a list", ErrFormat, l.n)
	}
	return l.members()
}

// leave skips the end of the items and what follows in the list.
func (l *listEntries) leave() error {
	if _, err := l.dec.Token(); err != nil {
		return err
	}
	l.inside = false
	return l.members()
}

// members skips the members of a list up to its items, or its end.
func (l *listEntries) members() error {
	for l.dec.More() {
		key, err := l.dec.Token()
		if err != nil {
			return l.broken(err)
		}
		if key == "items" {
			t, err := l.dec.Token()
			if err != nil {
				return l.broken(err)
			}
			if t == json.Delim('[') {
				l.inside = true
				return nil
			}
			if t != nil {
				return fmt.Errorf("%w: items is not an array", ErrFormat)
			}
			continue
		}
		var value json.RawMessage
		if err := l.dec.Decode(&value); err != nil {
			return l.broken(err)
		}
		if key == "kind" && string(value) != `"`+event.ListKind+`"` {
			return fmt.Errorf("%w: not an %s", ErrFormat, event.ListKind)
		}
	}
	_, err := l.dec.Token() // the closing brace
	if err != nil {
		return l.broken(err)
	}
	return nil
}

// broken returns an error that says where a list breaks. Unlike lines, a list cannot be
// resumed after the break.
func (l *listEntries) broken(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the list is cut off after item %d", ErrFormat, l.n)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%w: the list is malformed after item %d, at byte %d: %w", ErrFormat, l.n, syntax.Offset, err)
	}
	return err
}

// budgetReader bounds what one item may make the decoder read.
type budgetReader struct {
	r    io.Reader
	max  int64
	left int64
	used bool
}

func (b *budgetReader) Read(p []byte) (int, error) {
	if !b.used {
		b.used, b.left = true, b.max
	}
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: an item of more than %d bytes", ErrFormat, b.max)
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}
