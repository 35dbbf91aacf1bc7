package evaluate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

const (
	batchLines = 256
	batchBytes = 1 << 20
)

// batch is a run of neighbouring lines on its way through the stages. One goroutine at a
// time owns it; the channel that hands it on also hands on that ownership.
type batch struct {
	input int
	lines []line
	items []item
	bad   []Malformed
	bytes int
	done  chan struct{} // closed when the parallel stage has finished with it
}

// hand gives a batch its place in the order and then to the workers.
func (b *batch) hand(ctx context.Context, order, work chan<- *batch) error {
	b.done = make(chan struct{})
	for _, to := range [...]chan<- *batch{order, work} {
		select {
		case to <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// inOrder visits the batches in their order, each when the workers are done with it.
func inOrder(ctx context.Context, order <-chan *batch, visit func(*batch) error) error {
	for b := range order {
		select {
		case <-b.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := visit(b); err != nil {
			return err
		}
	}
	return nil
}

type line struct {
	raw    []byte
	number int
}

// item is one event of a batch and, once judged, its verdict.
type item struct {
	event   *event.Event
	request event.Hash128
	key     event.Hash128
	judged  bool // it carries the verdict of its request
	stored  bool // it is a row
	content event.Hash128
	size    int
	verdict *verdict.Verdict
}

// decoded reads every event input, decodes its lines in parallel and gives the batches to
// visit in order, from one goroutine. Lines that do not decode go to bad.
func (o *Options) decoded(ctx context.Context, bad func([]Malformed), visit func(*batch) error) error {
	g, ctx := errgroup.WithContext(ctx)
	work := make(chan *batch)
	order := make(chan *batch, 2*o.Workers)

	g.Go(func() error {
		defer close(work)
		defer close(order)
		for i := range o.Events {
			if err := o.read(ctx, i, work, order); err != nil {
				return err
			}
		}
		return nil
	})
	for range o.Workers {
		g.Go(func() error {
			for b := range work {
				o.decode(b)
				close(b.done)
			}
			return nil
		})
	}
	g.Go(func() error {
		return inOrder(ctx, order, func(b *batch) error {
			bad(b.bad)
			if err := visit(b); err != nil {
				return err
			}
			o.Progress(b.bytes)
			return nil
		})
	})
	return g.Wait()
}

// read cuts one input into batches and sends each to the workers and into the order.
func (o *Options) read(ctx context.Context, input int, work, order chan<- *batch) (err error) {
	in := o.Events[input]
	r, err := in.Open()
	if err != nil {
		return fmt.Errorf("open events %s: %w", in.Name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()

	send := func(b *batch) error {
		if len(b.lines) == 0 && len(b.bad) == 0 {
			return nil
		}
		return b.hand(ctx, order, work)
	}
	lines := event.NewLines(r, o.MaxLine)
	b := &batch{input: input}
	for {
		raw, n, err := lines.Next()
		var long *event.LineTooLongError
		switch {
		case errors.Is(err, io.EOF):
			return send(b)
		case errors.As(err, &long):
			b.bad = append(b.bad, Malformed{Input: in.Name, Line: long.Line, Error: err.Error()})
			continue
		case err != nil:
			return fmt.Errorf("read events %s: %w", in.Name, err)
		}
		b.lines = append(b.lines, line{raw: raw, number: n})
		b.bytes += len(raw)
		if len(b.lines) >= batchLines || b.bytes >= batchBytes {
			if err := send(b); err != nil {
				return err
			}
			b = &batch{input: input}
		}
	}
}

// decode turns lines into events. A line holds an Event or a whole EventList.
func (o *Options) decode(b *batch) {
	b.items = make([]item, 0, len(b.lines))
	add := func(e *event.Event) {
		e.Server = o.Events[b.input].Server
		if o.Redact != nil {
			o.Redact(e)
		}
		request := event.RequestKey(o.Cluster, e)
		b.items = append(b.items, item{event: e, request: request, key: event.EventKey(request, e)})
	}
	malformed := func(n int, err error) {
		b.bad = append(b.bad, Malformed{Input: o.Events[b.input].Name, Line: n, Error: err.Error()})
	}
	for _, l := range b.lines {
		if isList(l.raw) {
			err := event.DecodeList(l.raw, func(it event.Item) error {
				if it.Err == nil {
					it.Err = it.Event.Validate()
				}
				if it.Err != nil {
					malformed(l.number, fmt.Errorf("item %d: %w", it.Index, it.Err))
					return nil
				}
				add(it.Event)
				return nil
			})
			if err != nil {
				malformed(l.number, err)
			}
			continue
		}
		e, err := event.DecodeValid(l.raw)
		if err != nil {
			malformed(l.number, err)
			continue
		}
		add(e)
	}
	b.lines = nil
}

// isList tells an EventList from an Event by its first bytes: kind comes first in what
// apiservers write, and an Event has no items.
func isList(raw []byte) bool {
	return bytes.Contains(raw[:min(len(raw), 128)], []byte(`"EventList"`))
}

// judge returns the second pass.
func (o *Options) judge(ctx context.Context, st *state.State, sum *Summary) error {
	g, ctx := errgroup.WithContext(ctx)
	work := make(chan *batch)
	order := make(chan *batch, 2*o.Workers)
	folder := newFolder(o.Remember, o.Rows != nil)
	var lags replay.Lags

	g.Go(func() error {
		defer close(work)
		defer close(order)
		hand := func(b *batch) error {
			if len(b.items) == 0 {
				return nil
			}
			return b.hand(ctx, order, work)
		}
		err := o.decoded(ctx, sum.secondPass(), func(b *batch) error {
			folder.fold(b)
			return hand(b)
		})
		if err != nil {
			return err
		}
		sum.Events, sum.Duplicates = folder.events, folder.duplicates
		return hand(folder.rest())
	})
	for range o.Workers {
		g.Go(func() error {
			var canonical []byte
			for b := range work {
				for i := range b.items {
					it := &b.items[i]
					if it.stored {
						canonical = event.AppendJSON(canonical[:0], it.event)
						it.content, it.size = event.Content(canonical), len(canonical)
					}
					if it.judged {
						o.verdict(it, st, &lags)
					}
				}
				close(b.done)
			}
			return nil
		})
	}
	g.Go(func() error {
		rows := int64(0)
		return inOrder(ctx, order, func(b *batch) error {
			for i := range b.items {
				it := &b.items[i]
				if it.stored {
					if err := o.Rows(o.row(it, rows)); err != nil {
						return fmt.Errorf("store event: %w", err)
					}
					rows++
				}
				if !it.judged {
					continue
				}
				sum.count(it.verdict)
				if o.Sink == nil {
					continue
				}
				if err := o.Sink(it.event, it.verdict); err != nil {
					return fmt.Errorf("write verdict: %w", err)
				}
			}
			return nil
		})
	})
	err := g.Wait()
	sum.CacheLags = lags.All()
	return err
}

// verdict judges an item's request.
func (o *Options) verdict(it *item, st *state.State, lags *replay.Lags) {
	it.verdict = o.Engine.Replay(it.event, st)
	if lag, ok := o.Engine.Behind(it.event, st, it.verdict); ok {
		lags.Observe(st.Cluster(), it.event.Server, lag)
	}
	addContradictions(it.verdict, o.Trail.About(it.event))
	addContradictions(it.verdict, o.twins.About(it.event))
}

// row is what is stored of an item.
func (o *Options) row(it *item, offset int64) verdict.Row {
	return verdict.Row{
		Cluster: o.Cluster, Source: sourceImport, APIServer: it.event.Server, Received: o.Received,
		Position: event.Position{Offset: offset}, EventKey: it.key, Request: it.request, Content: it.content, Size: it.size,
		Event: it.event, Verdict: it.verdict, Sign: 1, Revision: 1,
	}
}

// sourceImport is where rows come from: a log that is read, as an import reads it.
const sourceImport = "import"
