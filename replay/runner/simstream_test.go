package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/sleep"
)

// Mutants: each takes one safeguard away, and the simulation must notice.
const (
	mutantNoToken      = "no token"
	mutantNoPending    = "no pending range"
	mutantAckFirst     = "offset committed before the insertion"
	mutantNoKnown      = "no look for duplicates"
	mutantNoRecover    = "rollups not recovered"
	mutantNoCorrection = "no corrections"
	mutantCorrectedAll = "corrections committed before they are made"
	mutantNoWait       = "no wait for the other partitions"
	mutantStoresAll    = "what stands in the wrong partition stored"
	mutantStaleTable   = "states loaded without what was saved last"
)

const simFetchWait = 50 * time.Millisecond

// simLog is the broker of the simulation: logs, commits and one consumer group whose
// generations hand partitions from process to process.
type simLog struct {
	mutant string
	counts map[string]int // partitions by topic

	mu      sync.Mutex
	logs    map[place][]stream.Record
	commits map[place]simCommit
	epochs  map[place]uint32
	owner   map[place]chan struct{} // capacity 1: held while a handler runs
	members []*life
	layouts []stream.Layout // that were in force, in their order
	changed chan struct{}   // closed and replaced when membership changes
}

type simCommit struct {
	next    int64
	pending stream.Pending
}

const simEpoch = 7

func newSimLog(plan simPlan, events, policy int) *simLog {
	first := stream.Layout{Partitions: int32(events), PerCluster: int32(events)}
	if plan.grouped {
		first.PerCluster = 1
	}
	g := &simLog{mutant: plan.mutant,
		counts: map[string]int{stream.TopicEvents: events, stream.TopicPolicy: policy, stream.TopicDeadLetter: 1},
		logs:   map[place][]stream.Record{}, commits: map[place]simCommit{}, epochs: map[place]uint32{}, owner: map[place]chan struct{}{},
		layouts: []stream.Layout{first}, changed: make(chan struct{})}
	for topic, n := range g.counts {
		for p := range int32(n) {
			g.logs[place{topic, p}], g.epochs[place{topic, p}] = nil, simEpoch
			g.owner[place{topic, p}] = make(chan struct{}, 1)
		}
	}
	return g
}

// append acknowledges a record.
func (g *simLog) append(topic string, rec stream.Record) { g.appendLate(topic, rec, 0) }

// appendLate acknowledges a record of a producer that has not noticed the last changes of the layout.
func (g *simLog) appendLate(topic string, rec stream.Record, missed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := place{topic, stream.PartitionOf(rec.Key, g.counts[topic])}
	if topic == stream.TopicEvents {
		at.partition = g.layouts[max(0, len(g.layouts)-1-missed)].PartitionOf(rec.Cluster, rec.Key)
	}
	g.put(at, rec)
}

// put appends a record to a partition; the caller holds the lock.
func (g *simLog) put(at place, rec stream.Record) {
	topic := at.topic
	rec.Topic, rec.Appended = topic, time.Now()
	rec.Position = event.Position{Epoch: g.epochs[at], Partition: at.partition, Offset: int64(len(g.logs[at]))}
	g.logs[at] = append(g.logs[at], rec)
}

// announce appends the barrier of a layout to a partition.
func (g *simLog) announce(l stream.Layout, partition int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.put(place{stream.TopicEvents, partition}, stream.LayoutRecord(l, time.Now()))
}

// use puts a layout in force, unless a later one is.
func (g *simLog) use(l stream.Layout) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.Compare(g.layouts[len(g.layouts)-1]) > 0 {
		g.layouts = append(g.layouts, l)
	}
}

// grow adds partitions of the events.
func (g *simLog) grow(to int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for p := int32(g.counts[stream.TopicEvents]); p < int32(to); p++ {
		at := place{stream.TopicEvents, p}
		g.logs[at], g.epochs[at], g.owner[at] = nil, simEpoch, make(chan struct{}, 1)
	}
	g.counts[stream.TopicEvents] = max(to, g.counts[stream.TopicEvents])
	g.wake()
}

func (g *simLog) partitions(topic string) (list []int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all(topic)
}

func (g *simLog) all(topic string) (list []int32) {
	for p := range int32(g.counts[topic]) {
		list = append(list, p)
	}
	return list
}

// read returns up to n records from an offset on, and the end.
func (g *simLog) read(at place, from int64, n int) ([]stream.Record, int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	log := g.logs[at]
	to := min(int64(len(log)), from+int64(n))
	if from >= to {
		return nil, int64(len(log))
	}
	return slices.Clone(log[from:to]), int64(len(log))
}

// wake starts a new generation.
func (g *simLog) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *simLog) join(l *life) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = append(g.members, l)
	g.wake()
}

func (g *simLog) leave(l *life) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = slices.DeleteFunc(g.members, func(m *life) bool { return m == l })
	g.wake()
}

// assigned returns a member's partitions in the present generation and what ends it.
func (g *simLog) assigned(l *life, topic string) (parts []int32, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.members, l)
	for k, p := range g.all(topic) {
		if i >= 0 && k%len(g.members) == i {
			parts = append(parts, p)
		}
	}
	return parts, g.changed
}

// simSource is one process's connection to the broker.
type simSource struct {
	*simLog
	life *life
}

func (s *simSource) Events(ctx context.Context, h PartitionHandler) error {
	s.join(s.life)
	defer s.leave(s.life)
	return s.consume(ctx, stream.TopicEvents, h)
}

func (s *simSource) DeadLetters(ctx context.Context, h PartitionHandler) error {
	return s.consume(ctx, stream.TopicDeadLetter, h)
}

func (s *simSource) consume(ctx context.Context, topic string, h PartitionHandler) error {
	for ctx.Err() == nil {
		parts, changed := s.assigned(s.life, topic)
		generation, end := context.WithCancel(ctx)
		var handlers sync.WaitGroup
		for _, p := range parts {
			handlers.Go(func() {
				s.handle(generation, place{topic, p}, h)
				end()
			})
		}
		select {
		case <-changed:
		case <-generation.Done():
		}
		end()
		handlers.Wait()
		if err := sleep.For(ctx, time.Millisecond+time.Duration(s.life.intn(topic, 1_000_000))); err != nil {
			return nil
		}
	}
	return nil
}

func (s *simSource) handle(ctx context.Context, at place, h PartitionHandler) {
	s.mu.Lock()
	owner := s.owner[at]
	s.mu.Unlock()
	select {
	case owner <- struct{}{}:
		defer func() { <-owner }()
	case <-ctx.Done():
		return
	}
	if sleep.For(ctx, time.Duration(s.life.intn(actorOf(at.topic, at.partition), 1_000_000))) != nil {
		return
	}
	s.mu.Lock()
	c, ok := s.commits[at]
	s.mu.Unlock()
	if !ok {
		c.pending = stream.NoPending(nil)
	}
	p := &simPartition{simLog: s.simLog, life: s.life, at: at, next: c.next, actor: actorOf(at.topic, at.partition)}
	a := stream.Assignment{Topic: at.topic, Partition: at.partition, Epoch: simEpoch, Committed: c.next, Metadata: c.pending}
	a.Metadata.PolicyOffsets = maps.Clone(c.pending.PolicyOffsets)
	_ = h(context.WithValue(ctx, actorKey{}, p.actor), a, p)
}

// actorKey is the key of a handler's actor in its context.
type actorKey struct{}

// actorIn returns the actor whose handler asks, another if none does.
func actorIn(ctx context.Context, other string) string {
	if actor, ok := ctx.Value(actorKey{}).(string); ok {
		return actor
	}
	return other
}

func (s *simSource) CommitPolicy(ctx context.Context, _ map[int32]int64) error {
	return s.life.step(ctx, stream.TopicPolicy, "commit policy")
}

func (s *simSource) Ends(ctx context.Context, topic string) (map[int32]int64, error) {
	if err := s.life.step(ctx, "ends", "ends"); err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	for _, p := range s.partitions(topic) {
		_, ends[p] = s.read(place{topic, p}, 0, 0)
	}
	return ends, nil
}

func (s *simSource) Commits(ctx context.Context, topic string) (map[int32]stream.Commit, error) {
	if err := s.life.step(ctx, actorIn(ctx, "commits"), "commits"); err != nil {
		return nil, err
	}
	commits := map[int32]stream.Commit{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.all(topic) {
		commits[p] = stream.Commit{Next: -1, Pending: stream.NoPending(nil)}
		if c, ok := s.commits[place{topic, p}]; ok {
			commits[p] = stream.Commit{Next: c.next, Pending: c.pending}
		}
		if s.mutant == mutantNoWait {
			c := commits[p]
			c.Pending.Layout = s.layouts[len(s.layouts)-1]
			c.Pending.Layout.Epoch++
			commits[p] = c
		}
	}
	return commits, nil
}

func (s *simSource) Forward(ctx context.Context, l stream.Layout, records []stream.Record) error {
	actor := actorOf(stream.TopicEvents, records[0].Position.Partition)
	for i, rec := range records {
		if err := s.life.flaky(ctx, actor, "forward"); err != nil {
			return err // some of them have been
		}
		s.mu.Lock()
		s.put(place{stream.TopicEvents, l.PartitionOf(rec.Cluster, rec.Key)}, records[i])
		s.mu.Unlock()
	}
	return s.life.step(ctx, actor, "forwarded")
}

func (s *simSource) Announce(ctx context.Context, l stream.Layout, partitions ...int32) error {
	if err := s.life.step(ctx, actorIn(ctx, "announce"), "announce"); err != nil {
		return err
	}
	for _, p := range partitions {
		s.announce(l, p)
	}
	s.use(l)
	return nil
}

// simPartition is an assigned partition.
type simPartition struct {
	*simLog
	life  *life
	at    place
	next  int64
	actor string
}

func (p *simPartition) Position() int64 { return p.next }

func (p *simPartition) Fetch(ctx context.Context, maxRecords, _ int) (stream.Batch, error) {
	if err := p.life.step(ctx, p.actor, "fetch"); err != nil {
		return stream.Batch{}, err
	}
	// Batches end anywhere, so that a range read again has other bounds unless it is
	// announced.
	n := min(maxRecords, 1+p.life.intn(p.actor, 9))
	records, end := p.read(p.at, p.next, n)
	if len(records) == 0 {
		if err := sleep.For(ctx, simFetchWait); err != nil {
			return stream.Batch{}, err
		}
		records, end = p.read(p.at, p.next, n)
	}
	p.next += int64(len(records))
	return stream.Batch{Records: records, HighWatermark: end}, nil
}

func (p *simPartition) Commit(ctx context.Context, next int64, pending stream.Pending) error {
	if err := p.life.step(ctx, p.actor, "commit"); err != nil {
		return err
	}
	pending.PolicyOffsets = maps.Clone(pending.PolicyOffsets)
	switch p.mutant {
	case mutantNoPending:
		pending.First, pending.Last = -1, -1
	case mutantAckFirst:
		if pending.Has() {
			next = pending.Last + 1
		}
		pending.First, pending.Last = -1, -1
	case mutantCorrectedAll:
		for _, q := range p.partitions(stream.TopicPolicy) {
			_, end := p.read(place{stream.TopicPolicy, q}, 0, 0)
			if pending.PolicyOffsets == nil {
				pending.PolicyOffsets = map[int32]int64{}
			}
			pending.PolicyOffsets[q] = end
		}
	}
	p.mu.Lock()
	p.commits[p.at] = simCommit{next, pending}
	p.mu.Unlock()
	return p.life.step(ctx, p.actor, "committed")
}

// simFeed reads the policy topic.
type simFeed struct {
	done chan struct{}
	err  error

	mu    sync.Mutex
	pos   map[int32]int64
	moved chan struct{}
}

func (s *simSource) Policy(ctx context.Context, from map[int32]int64, apply func([]stream.Record) error,
	rest func(partition int32)) PolicyFeed {
	f := &simFeed{done: make(chan struct{}), pos: maps.Clone(from), moved: make(chan struct{})}
	if f.pos == nil {
		f.pos = map[int32]int64{}
	}
	go func() {
		defer close(f.done)
		for s.life.step(ctx, stream.TopicPolicy, "read policy") == nil && ctx.Err() == nil {
			got := false
			for _, p := range s.partitions(stream.TopicPolicy) {
				records, _ := s.read(place{stream.TopicPolicy, p}, f.Positions()[p], 1+s.life.intn(stream.TopicPolicy, 4))
				if len(records) == 0 {
					continue
				}
				got = true
				if f.err = apply(records); f.err != nil {
					return
				}
				f.mu.Lock()
				f.pos[p] = records[len(records)-1].Position.Offset + 1
				close(f.moved)
				f.moved = make(chan struct{})
				f.mu.Unlock()
				rest(p)
			}
			if !got && sleep.For(ctx, simFetchWait) != nil {
				return
			}
		}
	}()
	return f
}

func (f *simFeed) WaitFor(ctx context.Context, marks map[int32]int64) error {
	for {
		f.mu.Lock()
		moved, done := f.moved, reached(f.pos, marks)
		f.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-moved:
		case <-f.done:
			return fmt.Errorf("policy reader ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *simFeed) Positions() map[int32]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.pos)
}

func (f *simFeed) Done() <-chan struct{} { return f.done }
func (f *simFeed) Err() error            { return f.err }
func (f *simFeed) Close() error          { <-f.done; return nil }
