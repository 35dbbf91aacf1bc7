package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/spool"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/replay/runner"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// process is one process of the product, from its start to its end. Everything it sends and
// is sent goes through its wires and its line, so that a killed one has no effect any more
// and a stopped one none until it goes on.
type process struct {
	w                 *world
	name              string
	receives, replays bool

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when nothing of it runs
	reg    *prometheus.Registry

	serving atomic.Int64 // posts that a handler has not answered

	mu     sync.Mutex
	dead   bool
	resume chan struct{} // not nil while it is stopped
	wires  map[*wire]struct{}
	up     *parts // nil until it is up
}

// parts is what a running process consists of.
type parts struct {
	client           *stream.Client
	store            *storage.Store
	runner           *runner.Runner
	spool            *spool.Spool
	webhook, trusted http.Handler
	close            []func() error
}

var errKilled = errors.New("process was killed")

// alive returns an error once the process was killed, and waits while it is stopped.
func (p *process) alive() error {
	for {
		p.mu.Lock()
		dead, resume := p.dead, p.resume
		p.mu.Unlock()
		if dead {
			return errKilled
		}
		if resume == nil {
			return nil
		}
		<-resume
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// die kills the process.
func (p *process) die() {
	p.mu.Lock()
	p.dead = true
	if p.resume != nil {
		close(p.resume)
		p.resume = nil
	}
	wires := p.wires
	p.wires = nil
	p.mu.Unlock()
	p.cancel()
	for w := range wires {
		w.close()
	}
}

// stopFor stops the process for a while; what runs in it waits at its next exchange.
func (p *process) stopFor(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead || p.resume != nil {
		return
	}
	resume := make(chan struct{})
	p.resume = resume
	time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.resume == resume {
			close(resume)
			p.resume = nil
		}
	})
}

// proceed ends a stop.
func (p *process) proceed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resume != nil {
		close(p.resume)
		p.resume = nil
	}
}

func (p *process) add(w *wire) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return false
	}
	p.wires[w] = struct{}{}
	return true
}

func (p *process) drop(w *wire) {
	w.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.wires, w)
}

func (p *process) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.wires {
		w.close()
	}
}

func (p *process) now() *parts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.up
}

// begin starts a process.
func (w *world) begin(name string, receives, replays bool) *process {
	p := &process{w: w, name: name, receives: receives, replays: replays, done: make(chan struct{}), wires: map[*wire]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	w.mu.Lock()
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	go p.run()
	return p
}

// run opens the process, again and again as a supervisor would, and works until it ends.
func (p *process) run() {
	defer close(p.done)
	defer p.cancel()
	for p.ctx.Err() == nil {
		p.reg = prometheus.NewRegistry()
		up, err := p.open()
		if err != nil {
			up.shut()
			select {
			case <-time.After(time.Second):
			case <-p.ctx.Done():
			}
			continue
		}
		p.mu.Lock()
		p.up = up
		p.mu.Unlock()
		if p.replays {
			err := up.runner.Run(p.ctx)
			switch {
			case err == nil:
			case errors.Is(err, stream.ErrLogReplaced):
				// The policy log was cut off under its reader: the next start reads it anew.
				p.w.did("policy log cut off under its reader")
			default:
				p.w.report("%s: the runner ended by itself: %v", p.name, err)
			}
		} else {
			<-p.ctx.Done()
		}
		p.mu.Lock()
		p.up = nil
		p.mu.Unlock()
		up.shut()
		for p.serving.Load() > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		p.w.books(p)
	}
}

func (u *parts) shut() {
	for i := len(u.close) - 1; i >= 0; i-- {
		_ = u.close[i]()
	}
}

// registered are the clusters of the harness.
type registered struct{ webhook.Clusters }

func (registered) Known(string) bool { return true }

// marks notes what corrections change.
type marks struct{}

// Tag implements runner.Tagger.
func (marks) Tag(cluster string, _ *event.Event, v *verdict.Verdict) []verdict.Mark {
	out := []verdict.Mark{{Name: v.Outcome.String() + "/" + v.Replayed.String(), Key: uint64(len(v.Grants))}}
	if v.Outcome == verdict.OutcomeDrift {
		out = append(out, verdict.Mark{Name: "drift", Key: uint64(len(cluster))})
	}
	return out
}

// open wires the process the way the product's executable does.
func (p *process) open() (*parts, error) {
	u := &parts{}
	log := p.w.log.Named(p.name)
	var err error
	if u.client, err = stream.NewClient(stream.Config{
		Brokers: []string{"embedded:9092"}, Dial: p.dial, Partitions: eventPartitions, Replication: 1, FetchWait: 500 * time.Millisecond,
		MaxRecordBytes: maxEvent + 2<<10, HeartbeatInterval: 3 * time.Second, SessionTimeout: sessionTimeout, RebalanceTimeout: 20 *
			time.Second,
		PartitionsEvery: 10 * time.Second, InFlightBytes: 32 << 20, ProduceTimeout: 10 * time.Second, Log: log, Registerer: p.reg,
	}); err != nil {
		return u, err
	}
	u.close = append(u.close, u.client.Close)
	p.w.mu.Lock()
	p.w.clients = append(p.w.clients, u.client)
	p.w.mu.Unlock()
	if err := p.topics(u); err != nil {
		return u, err
	}
	redactor := redact.New([]byte("a key of the harness, 32 bytes.."))
	if p.replays {
		if u.store, err = storage.Open(p.ctx, storage.Config{Transport: line{p}, Database: p.w.db, Shared: p.w.db == shared, Log: log,
			Registerer: p.reg}); err != nil {
			return u, err
		}
		u.close = append(u.close, u.store.Close)
		u.background(p.ctx, u.store.RollUpEvery)
		if u.runner, err = runner.New(runner.Config{
			Hold: 100 * time.Millisecond, HoldLimit: 5 * time.Second, Linger: 30 * time.Millisecond, BatchRecords: 24, CorrectionRows: 7,
			CorrectionLog: 64, Parallel: 1, RetryMin: 20 * time.Millisecond, RetryMax: 2 * time.Second, LongestRequest: time.Minute,
			RejudgePoll: 10 * time.Minute, Tagger: marks{}, Redact: redactor.RedactBytes, Log: log, Registerer: p.reg,
		}, runner.Kafka{Client: u.client}, p.w.judge, u.store); err != nil {
			return u, err
		}
	}
	if p.receives {
		if err := p.listen(u, redactor, log); err != nil {
			return u, err
		}
	}
	return u, nil
}

// topics makes the topics. A receiver alone has a spool and begins without the broker.
func (p *process) topics(u *parts) error {
	if p.replays {
		return u.client.EnsureTopics(p.ctx)
	}
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
	defer cancel()
	err := u.client.EnsureTopics(ctx)
	if err == nil || !errors.Is(err, stream.ErrTransient) {
		return err
	}
	u.background(p.ctx, func(ctx context.Context) { _ = u.client.EnsureTopics(ctx) }) // it tries until ctx ends
	return nil
}

// background runs f until the parts are shut.
func (u *parts) background(ctx context.Context, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	u.close = append(u.close, func() error {
		cancel()
		<-done
		return nil
	})
}

// listen makes the handlers of a receiver, behind its spool.
func (p *process) listen(u *parts, redactor *redact.Redactor, log *zap.Logger) (err error) {
	direct := 2 * time.Second
	if p.w.plan.One {
		direct = 10 * time.Second
	}
	if u.spool, err = spool.Open(spool.Config{FS: mount{p.w.disk, p}, MaxBytes: spoolBytes, MinFree: -1, SegmentBytes: 64 << 10,
		Direct:         direct,
		MaxRecordBytes: maxEvent + 2<<10, Log: log, Registerer: p.reg}, u.client.Producer()); err != nil {
		return err
	}
	u.close = append(u.close, u.spool.Close)
	u.background(p.ctx, func(ctx context.Context) {
		if err := u.spool.Run(ctx); err != nil && p.alive() == nil {
			p.w.report("%s: the spool ended by itself: %v", p.name, err)
		}
	})
	cfg := webhook.Config{MaxBody: 32 << 20, MaxEvent: maxEvent, MaxInFlight: 64 << 20, MaxClusterInFlight: 32 << 20, Now: p.w.clock}
	cfg.Trusted = true
	if u.trusted, err = webhook.New(cfg, u.spool, redactor, nil, log, p.reg); err != nil {
		return fmt.Errorf("trusted: %w", err)
	}
	cfg.Trusted, cfg.Anonymous = false, true
	if u.webhook, err = webhook.New(cfg, u.spool, redactor, registered{}, log, p.reg); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

const (
	eventPartitions = 2
	mostPartitions  = 4        // when some have been added
	maxEvent        = 64 << 10 // bytes; events above it lose their bodies
	spoolBytes      = 1 << 20  // of the spool, so that an outage fills it
	sessionTimeout  = 12 * time.Second
)
