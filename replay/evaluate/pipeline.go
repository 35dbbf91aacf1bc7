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

// staged runs the stages of a pass at the same time: produce hands batches on, workers take any of them, and visit is given them in the
// order in which they were made, each when its worker is done with it, from one goroutine.
func (o *Options) staged(ctx context.Context, produce func(ctx context.Context, hand func(*batch) error) error, worker func() func(*batch),
	visit func(*batch) error) error {
	g, ctx := errgroup.WithContext(ctx)
	work := make(chan *batch)
	order := make(chan *batch, 2*o.Workers)
	g.Go(func() error {
		defer close(work)
		defer close(order)
		return produce(ctx, func(b *batch) error {
			b.done = make(chan struct{})
			for _, to := range [...]chan<- *batch{order, work} {
				select {
				case to <- b:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	})
	for range o.Workers {
		g.Go(func() error {
			do := worker()
			for b := range work {
				do(b)
				close(b.done)
			}
			return nil
		})
	}
	g.Go(func() error {
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
	})
	return g.Wait()
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
	return o.staged(ctx, func(_ context.Context, hand func(*batch) error) error {
		for i := range o.Events {
			if err := o.read(i, hand); err != nil {
				return err
			}
		}
		return nil
	}, func() func(*batch) { return o.decode }, func(b *batch) error {
		bad(b.bad)
		if err := visit(b); err != nil {
			return err
		}
		o.Progress(b.bytes)
		return nil
	})
}

// read cuts one input into batches and hands each on.
func (o *Options) read(input int, hand func(*batch) error) (err error) {
	in := o.Events[input]
	r, err := in.Open()
	if err != nil {
		return fmt.Errorf("open events %s: %w", in.Name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()

	lines := event.NewLines(r, o.MaxLine)
	b := &batch{input: input}
	for {
		raw, n, err := lines.Next()
		var long *event.LineTooLongError
		switch {
		case errors.Is(err, io.EOF) && len(b.lines) == 0 && len(b.bad) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return hand(b)
		case errors.As(err, &long):
			b.bad = append(b.bad, Malformed{Input: in.Name, Line: long.Line, Error: err.Error()})
			continue
		case err != nil:
			return fmt.Errorf("read events %s: %w", in.Name, err)
		}
		b.lines = append(b.lines, line{raw: raw, number: n})
		b.bytes += len(raw)
		if len(b.lines) >= batchLines || b.bytes >= batchBytes {
			if err := hand(b); err != nil {
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
	folder := newFolder(o.Remember, o.Rows != nil)
	var lags replay.Lags
	fold := func(ctx context.Context, hand func(*batch) error) error {
		err := o.decoded(ctx, sum.malformed, func(b *batch) error {
			folder.fold(b)
			return hand(b)
		})
		if err != nil {
			return err
		}
		sum.Events, sum.Duplicates = folder.events, folder.duplicates
		return hand(folder.rest())
	}
	judge := func() func(*batch) {
		var canonical []byte
		return func(b *batch) {
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
		}
	}
	rows := int64(0)
	err := o.staged(ctx, fold, judge, func(b *batch) error {
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

// row is what is stored of an item, as an import stores it.
func (o *Options) row(it *item, offset int64) verdict.Row {
	return verdict.Row{
		Cluster: o.Cluster, Source: "import", APIServer: it.event.Server, Received: o.Received,
		Position: event.Position{Offset: offset}, EventKey: it.key, Request: it.request, Content: it.content, Size: it.size,
		Event: it.event, Verdict: it.verdict, Sign: 1, Revision: 1,
	}
}
