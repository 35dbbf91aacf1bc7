package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/procstat"
	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/runner"
)

// benchPartitions is over how many partitions the clusters of the benchmark are spread, each in one; of heldShare processes each owns a
// share of them.
const (
	benchPartitions = 12
	heldShare       = 4
)

// heldCost is what the policy of the clusters of some partitions takes of a process that replays.
type heldCost struct {
	Partitions int     `json:"partitions"`
	Clusters   int     `json:"clusters"`
	HeapMB     float64 `json:"heap_mb"` // all that is live
	Seconds    float64 `json:"seconds"` // from the start until everything is loaded
	CPU        float64 `json:"cpu_seconds"`
}

// hold starts the loop of a process that owns the first partitions of the store with many clusters, and returns once it holds what it
// needs.
func (b *clustersBench) hold(ctx context.Context, partitions int) (c heldCost, err error) {
	reg := prometheus.NewRegistry()
	began, used := time.Now(), procstat.Own()
	r, err := runner.New(runner.Config{Registerer: reg}, quiet{partitions}, replay.New(replay.Config{}), b.stores[1])
	if err != nil {
		return c, err
	}
	need := 0
	for p := range int32(partitions) {
		spans, err := b.stores[1].Spans(ctx, p)
		if err != nil {
			return c, err
		}
		need += len(spans)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(running) }()
	defer func() {
		stop()
		if e := <-ended; err == nil {
			err = e
		}
	}()
	for c.Clusters < need {
		if err := sleep.For(ctx, 20*time.Millisecond); err != nil {
			return c, err
		}
		if c.Clusters, err = heldBy(reg); err != nil {
			return c, err
		}
	}
	c.Partitions, c.Seconds, c.CPU = partitions, time.Since(began).Seconds(), (procstat.Own() - used).Seconds()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.HeapMB = float64(m.HeapAlloc) / 1e6
	return c, nil
}

// heldBy returns how many clusters a runner holds, by its metrics.
func heldBy(reg prometheus.Gatherer) (int, error) {
	families, err := reg.Gather()
	if err != nil {
		return 0, err
	}
	for _, f := range families {
		if f.GetName() == "retrial_runner_clusters" {
			return int(f.GetMetric()[0].GetGauge().GetValue()), nil
		}
	}
	return 0, fmt.Errorf("the runner has no metric of the clusters it holds")
}

// quiet is a stream on which nothing comes, of which a process owns the first partitions.
type quiet struct{ partitions int }

// policyOffset is past all policy: every row reflects it.
const policyOffset = math.MaxInt32

// Events implements runner.Source.
func (q quiet) Events(ctx context.Context, h runner.PartitionHandler) error {
	var all sync.WaitGroup
	for p := range int32(q.partitions) {
		a := stream.Assignment{Topic: stream.TopicEvents, Partition: p, Epoch: 1,
			Metadata: stream.NoPending(map[int32]int64{0: policyOffset})}
		all.Go(func() { _ = h(ctx, a, quietPartition{}) })
	}
	all.Wait()
	return nil
}

// DeadLetters implements runner.Source.
func (quiet) DeadLetters(ctx context.Context, _ runner.PartitionHandler) error {
	<-ctx.Done()
	return nil
}

// Policy implements runner.Source.
func (quiet) Policy(ctx context.Context, _ map[int32]int64, _ func([]stream.Record) error, _ func(int32)) runner.PolicyFeed {
	return quietFeed{ctx}
}

// CommitPolicy implements runner.Source.
func (quiet) CommitPolicy(context.Context, map[int32]int64) error { return nil }

// Ends implements runner.Source.
func (quiet) Ends(context.Context, string) (map[int32]int64, error) {
	return map[int32]int64{0: policyOffset}, nil
}

// Commits implements runner.Source.
func (quiet) Commits(context.Context, string) (map[int32]stream.Commit, error) { return nil, nil }

// Forward implements runner.Source.
func (quiet) Forward(context.Context, stream.Layout, []stream.Record) error { return nil }

// Announce implements runner.Source.
func (quiet) Announce(context.Context, stream.Layout, ...int32) error { return nil }

type quietPartition struct{}

// Fetch implements runner.Partition.
func (quietPartition) Fetch(ctx context.Context, _, _ int) (stream.Batch, error) {
	return stream.Batch{}, sleep.For(ctx, time.Second)
}

// Commit implements runner.Partition.
func (quietPartition) Commit(context.Context, int64, stream.Pending) error { return nil }

// Position implements runner.Partition.
func (quietPartition) Position() int64 { return 0 }

// quietFeed is a reader of policy that has read everything.
type quietFeed struct{ ctx context.Context } //nolint:containedctx // it ends with it

// WaitFor implements runner.PolicyFeed.
func (quietFeed) WaitFor(context.Context, map[int32]int64) error { return nil }

// Positions implements runner.PolicyFeed.
func (quietFeed) Positions() map[int32]int64 { return map[int32]int64{0: policyOffset} }

// Done implements runner.PolicyFeed.
func (f quietFeed) Done() <-chan struct{} { return f.ctx.Done() }

// Err implements runner.PolicyFeed.
func (quietFeed) Err() error { return nil }

// Close implements runner.PolicyFeed.
func (quietFeed) Close() error { return nil }
