package server

import (
	"context"
	"fmt"
	"os"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/runner"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage"
	chdb "github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/verdict"
)

// Bounds of what a temporary store is sent at once, as of the runner's blocks.
const (
	fillRows  = 50_000
	fillBytes = 64 << 20
)

// fill opens a store in a temporary folder and replays the log into it, in blocks, one in memory; it takes a tenth of the log's size.
func (t *logTables) fill(ctx context.Context) (*storage.Store, error) {
	dir, err := os.MkdirTemp("", "retrial-log-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the log's temporary store: %w", err)
	}
	t.closers = append(t.closers, func() error { return os.RemoveAll(dir) })
	engine, err := chdb.Open(chdb.Config{Path: dir, Library: t.log.Library})
	if err != nil {
		return nil, fmt.Errorf("this question needs SQL, and so a temporary store made of the log: %w", err)
	}
	t.closers = append(t.closers, engine.Close)
	store, err := storage.Open(ctx, storage.Config{Transport: engine})
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, store.Close)
	f := filling{ctx: ctx, store: store, log: t.log}
	if _, err := t.log.run(ctx, func(o *evaluate.Options) { o.Policy, o.Rows = f.policy, f.row }); err != nil {
		return nil, err
	}
	if err := f.flush(); err != nil {
		return nil, err
	}
	return store, nil
}

// filling writes a log into a store, in blocks, as the runner writes.
type filling struct {
	ctx      context.Context
	store    *storage.Store
	log      *openLog
	rows     []verdict.Row
	bytes    int
	blocks   int
	versions []verdict.PolicyVersion
	records  int64 // that told of the policy
	err      error // of writing policy, whose visitor returns none
}

func (f *filling) row(row verdict.Row) error {
	f.rows = append(f.rows, row)
	if f.bytes += row.Size; f.err == nil && len(f.rows) < fillRows && f.bytes < fillBytes {
		return nil
	}
	return f.flush()
}

// policy adds what one event, or a listing, tells of the policy.
func (f *filling) policy(obs []observe.Observation, listed bool) {
	near := runner.Near(obs)
	for i := range obs {
		v := runner.Version(f.log.name(), &obs[i], near, f.log.base.Received)
		v.Position, v.Index = event.Position{Epoch: 1, Offset: f.records}, int32(i)
		if listed { // each object of a listing is a record of its own
			v.Position.Offset, v.Index = f.records+int64(i), 0
		}
		f.versions = append(f.versions, v)
	}
	if f.records++; listed {
		f.records += int64(len(obs))
	}
	if len(f.versions) >= fillRows && f.err == nil {
		f.err = f.flushPolicy()
	}
}

func (f *filling) flushPolicy() error {
	if len(f.versions) == 0 {
		return nil
	}
	err := f.store.SavePolicy(f.ctx, f.versions)
	f.versions = f.versions[:0]
	return err
}

func (f *filling) flush() error {
	if f.err == nil {
		f.err = f.flushPolicy()
	}
	if f.err != nil || len(f.rows) == 0 {
		return f.err
	}
	f.blocks++
	f.err = f.store.Insert(f.ctx, fmt.Sprintf("log/%d", f.blocks), f.rows)
	clear(f.rows)
	f.rows, f.bytes = f.rows[:0], 0
	return f.err
}
