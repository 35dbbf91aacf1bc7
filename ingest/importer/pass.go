package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/retrial-io/retrial/ingest/event"
)

const (
	listHead = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`
	listTail = `]}`
)

// post is one EventList in flight.
type post struct {
	seq   int64
	body  []byte
	ends  []int   // end of each item in body
	lines []int64 // line of each item
	last  int64   // lines up to this one are in this post or an earlier one

	events, letters, policy int64 // as acknowledged
}

func newPost(seq int64, size int) *post {
	return &post{seq: seq, body: append(make([]byte, 0, size+len(listHead)+len(listTail)), listHead...)}
}

func (p *post) add(raw []byte, line int64) {
	if len(p.ends) > 0 {
		p.body = append(p.body, ',')
	}
	p.body = append(p.body, raw...)
	p.ends = append(p.ends, len(p.body))
	p.lines = append(p.lines, line)
}

func (p *post) split() [2]*post {
	var halves [2]*post
	start := len(listHead)
	for i := range halves {
		halves[i] = newPost(p.seq, len(p.body)/2)
	}
	for i, end := range p.ends {
		halves[i*2/len(p.ends)].add(p.body[start:end], p.lines[i])
		start = end + 1
	}
	return halves
}

// pass is one reading of one file. Its fields belong to the goroutine that reads.
type pass struct {
	im   *run
	in   *input
	kind Pass
	post *poster
	ack  *ackTracker
	read int64 // stored bytes
	last int64 // line last read

	sighted event.Sightings // of apiservers' versions, posted by the policy pass

	events, bad int64 // lines read that are events, and that are not
	first       error // what is wrong with the first of the bad
}

func (im *run) pass(ctx context.Context, in *input, kind Pass) error {
	p := &pass{im: im, in: in, kind: kind, post: &poster{cfg: im.cfg}, ack: &ackTracker{waiting: map[int64]*post{}}}
	inFlight := im.cfg.InFlight
	from := in.mark.Line
	if kind == PassPolicy {
		inFlight, from = 1, in.mark.Policy // they are few, and in order no version is missing between two
	}

	// A failed post cancels the group and ends the others; an error of reading does not cancel
	// them, since what was read is valid.
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	acked := make(chan *post, inFlight)
	send := func(b *post) error {
		if err := p.collect(acked); err != nil {
			return err
		}
		if gctx.Err() != nil {
			return gctx.Err() // Wait has the reason
		}
		group.Go(func() error {
			err := p.deliver(gctx, b)
			if err == nil {
				acked <- b
			}
			return err
		})
		return nil
	}
	readErr := p.cut(gctx, from, send)

	// acked must be drained while waiting, or a full channel would hold the last posts.
	waited := make(chan error, 1)
	go func() { waited <- group.Wait(); close(acked) }()
	var saveErr error
	for b := range acked {
		if err := p.acknowledge(b); saveErr == nil {
			saveErr = err
		}
	}
	postErr := <-waited
	im.sum.Retries += p.post.retries.Load()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case postErr != nil: // reading ended because of it
		return postErr
	case readErr != nil:
		return readErr
	case saveErr != nil:
		return saveErr
	}
	if kind == PassPolicy {
		in.mark.Policy = max(in.mark.Policy, p.last) // including lines with nothing to post
	} else {
		in.mark.Done = true
	}
	return nil
}

// collect acknowledges, without waiting, the posts that came back.
func (p *pass) collect(acked <-chan *post) error {
	for {
		select {
		case b := <-acked:
			if err := p.acknowledge(b); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// cut reads the entries after line from and sends them in posts.
func (p *pass) cut(ctx context.Context, from int64, send func(*post) error) error {
	cfg := p.im.cfg
	content, err := p.im.reader(ctx, p.in.file, func(read int64) {
		p.read = read
		p.report()
	})
	if err != nil {
		return err
	}
	defer content.Close()
	entries, err := newEntries(content, cfg.MaxLine)
	if err != nil {
		return err
	}
	var seq int64
	var b *post
	flush := func() (err error) {
		if b != nil {
			err = send(b)
			b = nil
		}
		return err
	}
	for {
		e, err := entries.next()
		if err != nil {
			if ferr := flush(); ferr != nil {
				return ferr
			}
			if err == io.EOF {
				return nil
			}
			return err
		}
		if e.n <= from {
			continue
		}
		p.last = e.n
		item, done := p.item(e)
		if p.events == 0 && p.bad >= manyBad && from == 0 {
			return fmt.Errorf("%w: none of its first %d lines is an event: %w; "+
				"set --audit-log-format=json on kube-apiserver", ErrFormat, p.bad, p.first)
		}
		if b == nil && (item != nil || p.kind == PassEvents) {
			b = newPost(seq, 0)
			seq++
		}
		if b == nil {
			continue
		}
		if item != nil {
			if len(b.ends) > 0 && (len(b.ends) >= cfg.BatchEvents || len(b.body)+len(item) > cfg.BatchBytes) {
				if err := flush(); err != nil {
					return err
				}
				b = newPost(seq, cfg.BatchBytes/4)
				seq++
			}
			b.add(item, e.n)
		}
		if done {
			b.last = e.n
		}
	}
}

// item returns what is posted of an entry, nil for nothing; done is false if a later run must
// read the entry again.
func (p *pass) item(e entry) (item []byte, done bool) {
	var ev *event.Event
	var bad error
	if e.tooLong != nil {
		bad = fmt.Errorf("%d bytes are over the limit of %d", e.tooLong.Size, e.tooLong.Limit)
	} else {
		ev, bad = event.DecodeValid(e.raw)
	}
	if bad == nil {
		p.events++
	} else if p.bad++; p.first == nil {
		p.first = fmt.Errorf("line %d: %w", e.n, bad)
	}
	if p.kind == PassPolicy {
		if bad == nil {
			p.in.mark.earliest(ev.RequestReceivedTimestamp)
		}
		if bad == nil && (event.KeepsPolicy(ev) || p.sighted.Fresh("", "", ev)) {
			p.sighted.Passed("", "", ev)
			return e.raw, true
		}
		return nil, true
	}
	s := p.in.summary
	s.Lines++
	if bad == nil {
		return e.raw, true
	}
	s.Malformed++
	p.im.sum.Malformed++
	// A log that is still being written may end in an incomplete line: the rest will come, and
	// then the line is read whole.
	truncated := e.unended && e.tooLong == nil && !json.Valid(e.raw)
	reason := bad.Error()
	if truncated {
		s.Truncated = true
		reason = "the last line is cut off: " + reason
	}
	if len(s.BadLines) < maxBadLines {
		s.BadLines = append(s.BadLines, BadLine{Line: e.n, Reason: reason})
	}
	switch {
	case e.tooLong != nil:
		return quote(fmt.Appendf(nil, "line %d: %v: %s", e.n, bad, e.tooLong.Prefix)), true
	case json.Valid(e.raw):
		return e.raw, true // JSON, but not an event: the receiver says why
	}
	return quote(e.raw), !truncated
}

// quote wraps a line that is not JSON in a JSON string, so that it can be an item of a list,
// where the receiver makes a dead letter of it.
func quote(line []byte) []byte {
	quoted, _ := json.Marshal(string(line)) // a string always marshals
	return quoted
}

// deliver posts b until it is acknowledged, in halves when the receiver finds it too
// large. It runs beside the pass.
func (p *pass) deliver(ctx context.Context, b *post) error {
	if len(b.ends) == 0 {
		return nil
	}
	body := append(b.body, listTail...)
	resp, err := p.post.post(ctx, p.kind, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(body)), nil
	}, int64(len(body)))
	if err != nil {
		return err
	}
	switch {
	case resp.code < 300:
		b.events = headerCount(resp.header, "Retrial-Events")
		b.letters = headerCount(resp.header, "Retrial-Dead-Letters")
		b.policy = headerCount(resp.header, "Retrial-Policy-Events")
		return nil
	case resp.code == http.StatusRequestEntityTooLarge && len(b.ends) > 1:
		for _, half := range b.split() {
			if err := p.deliver(ctx, half); err != nil {
				return err
			}
			b.events, b.letters, b.policy = b.events+half.events, b.letters+half.letters, b.policy+half.policy
		}
		return nil
	case resp.code == http.StatusRequestEntityTooLarge:
		b.letters++ // the receiver kept what it could of it
		return nil
	}
	return fmt.Errorf("%w: lines %d to %d: %d: %s", ErrRefused, b.lines[0], b.lines[len(b.lines)-1], resp.code, firstLine(resp.body))
}

func headerCount(h http.Header, name string) int64 {
	n, _ := strconv.ParseInt(h.Get(name), 10, 64)
	return n
}

// acknowledge counts a post that came back, and advances the position to the first post that
// has not.
func (p *pass) acknowledge(b *post) error {
	for _, c := range []*Counts{&p.in.summary.Counts, &p.im.sum.Counts} {
		if p.kind == PassPolicy {
			c.Policy += b.policy
		} else {
			c.Events += b.events
			c.DeadLetters += b.letters
		}
	}
	p.ack.events += b.events + b.policy
	p.report()
	last, moved := p.ack.acknowledge(b)
	if !moved {
		return nil
	}
	if p.kind == PassPolicy {
		p.in.mark.Policy = max(p.in.mark.Policy, last)
	} else {
		p.in.mark.Line = max(p.in.mark.Line, last)
	}
	return p.im.pos.note()
}

func (p *pass) report() {
	p.im.cfg.Progress(Progress{File: p.in.file.Name, Pass: p.kind, Read: p.read, Size: p.in.file.Size, Events: p.ack.events})
}

// ackTracker turns acknowledgements in any order into a position.
type ackTracker struct {
	next    int64 // the first post not acknowledged
	waiting map[int64]*post
	events  int64
}

// acknowledge returns the last line before the first post that is not acknowledged.
func (t *ackTracker) acknowledge(b *post) (last int64, moved bool) {
	t.waiting[b.seq] = b
	for {
		b, ok := t.waiting[t.next]
		if !ok {
			return last, moved
		}
		delete(t.waiting, t.next)
		t.next++
		last, moved = max(last, b.last), true
	}
}
