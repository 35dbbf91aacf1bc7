package faults

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay"
)

// world is an installation while a schedule is played on it.
type world struct {
	plan  schedule
	host  *host
	db    string
	views []string // materialized views of events, or of corrections
	dir   string
	lives int // of the broker's directory
	disk  *disk
	judge *replay.Engine
	log   *zap.Logger
	told  *tail

	posting sync.WaitGroup

	mu        sync.Mutex
	broker    *embedded.Broker
	gone      string // how the broker cannot be reached
	durable   map[inode]int64
	faults    []step
	store     step // a failing store; Kind is empty if it does not fail
	processes []*process
	slots     []*slot
	skew      time.Duration

	batches [][]item // everything sent, by post
	owner   []string // cluster of each
	sent    map[identity]bool
	acked   map[identity]time.Time // and when
	began   time.Time
	clients []*stream.Client  // of all processes there were
	policy  map[identity]bool // acknowledged writes of policy
	letters map[string]bool   // digests of acknowledged entries that are not events
	wrong   []string
	fired   map[string]int // what actually happened, by name
	heap    uint64
}

func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// report notes that something is not as promised.
func (w *world) report(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) < 25 {
		w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	}
}

// clock returns what the receivers take for the time.
func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.skew)
}

// take returns the fault that waits for such an exchange, if one is due.
func (w *world) take(p *process, on string) step {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.faults {
		f := &w.faults[i]
		if f.On != on {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			return step{}
		}
		out := *f
		w.faults = slices.Delete(w.faults, i, i+1)
		w.fired[on+" "+out.What]++
		return step{What: out.What, N: out.N, For: out.For}
	}
	return step{}
}

// storeNow says how the store fails at the moment.
func (w *world) storeNow(class string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.store
	writes := class == onInsert || class == onPolicy || class == onLetters || class == onRepair
	switch {
	case s.Kind == "", s.On == onInsert && !writes, s.On == onQuery && writes:
		return ""
	case (s.What == doDisk || s.What == doReadOnly) && !writes:
		return "" // reading goes on
	}
	w.fired["store "+s.What]++
	return s.What
}

func (w *world) cutAll() {
	w.mu.Lock()
	list := slices.Clone(w.processes)
	w.mu.Unlock()
	for _, p := range list {
		p.cutAll()
	}
}

// slot is a process that is started again when it ends.
type slot struct {
	name              string
	receives, replays bool
	stopped           chan struct{}

	mu   sync.Mutex
	p    *process
	stop bool
	end  step // how the broker goes with the process, when it does
}

func (s *slot) now() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

// keep starts a slot.
func (w *world) keep(name string, receives, replays bool) *slot {
	s := &slot{name: name, receives: receives, replays: replays, stopped: make(chan struct{})}
	w.mu.Lock()
	w.slots = append(w.slots, s)
	w.mu.Unlock()
	s.p = w.begin(name, receives, replays)
	go func() {
		defer close(s.stopped)
		for {
			<-s.now().done
			s.mu.Lock()
			stop, end := s.stop, s.end
			s.end = step{}
			s.mu.Unlock()
			if w.plan.One && s.receives {
				if end.What == "" {
					end.What = endKilled
				}
				if stop {
					end.What = endClosed
				}
				rng := rand.New(rand.NewPCG(w.plan.Seed, end.Seed))
				if end.What == endPower {
					w.disk.power(rng)
				}
				if err := w.endBroker(end.What, rng); err != nil {
					w.report("end the broker: %v", err)
				}
			}
			if !w.plan.One && s.receives && end.What == endPower {
				w.disk.power(rand.New(rand.NewPCG(w.plan.Seed, end.Seed)))
			}
			if stop {
				return
			}
			time.Sleep(time.Second + end.For)
			if w.plan.One && s.receives {
				if err := w.startBroker(); err != nil {
					w.report("start the broker: %v", err)
				}
			}
			p := w.begin(name, receives, replays)
			s.mu.Lock()
			s.p = p
			s.mu.Unlock()
		}
	}()
	return s
}

// leave stops a slot in an orderly way.
func (s *slot) leave() {
	s.mu.Lock()
	s.stop = true
	s.mu.Unlock()
	for {
		p := s.now()
		p.proceed()
		p.cancel()
		select {
		case <-s.stopped:
			return
		case <-time.After(time.Second): // it was starting another one
		}
	}
}

// kill kills what runs in a slot.
func (s *slot) kill(end step) {
	s.mu.Lock()
	s.end = end
	p := s.p
	s.mu.Unlock()
	p.die()
}

// receiver returns a process that takes posts, nil if none is up.
func (w *world) receiver() (*process, *parts) {
	w.mu.Lock()
	list := slices.Clone(w.processes)
	w.mu.Unlock()
	for _, p := range slices.Backward(list) {
		if p.receives && !p.isDead() {
			if up := p.now(); up != nil {
				return p, up
			}
		}
	}
	return nil, nil
}

// post delivers a batch as an apiserver does, up to so many times.
func (w *world) post(cluster string, items []item, imported bool, attempts int) {
	w.mu.Lock()
	w.batches = append(w.batches, items)
	w.owner = append(w.owner, cluster)
	for _, it := range items {
		if it.digest == "" {
			w.sent[it.id] = true
		}
	}
	w.mu.Unlock()
	body := list(items)
	w.posting.Go(func() {
		for n := range attempts {
			if n > 0 {
				time.Sleep(time.Duration(n) * 2 * time.Second)
			}
			if w.attempt(cluster, body, imported) {
				w.acknowledge(items)
				return
			}
		}
	})
}

// attempt posts once and reports whether the answer, seen by the sender, was 200.
func (w *world) attempt(cluster string, body []byte, imported bool) bool {
	p, up := w.receiver()
	if p == nil || p.alive() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "/v1/clusters/"+cluster+"/audit", bytes.NewReader(body))
	if err != nil {
		w.report("make a request: %v", err)
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	rec, h := httptest.NewRecorder(), up.webhook
	if imported {
		h = up.trusted
	}
	p.serving.Add(1)
	h.ServeHTTP(rec, req)
	p.serving.Add(-1)
	if p.alive() != nil {
		return false
	}
	switch rec.Code {
	case http.StatusOK:
		return true
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if rec.Header().Get("Retry-After") == "" {
			w.report("answer %d without Retry-After: %s", rec.Code, rec.Body)
		}
	default:
		w.report("answer %d: %s", rec.Code, rec.Body)
	}
	return false
}

func (w *world) acknowledge(items []item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range items {
		if it.digest != "" {
			w.letters[it.digest] = true
			continue
		}
		if _, before := w.acked[it.id]; !before {
			w.acked[it.id] = time.Now()
		}
		if it.policy {
			w.policy[it.id] = true
		}
	}
}

// result is what playing a schedule gave.
type result struct {
	wrong  []string
	fired  map[string]int
	events int    // acknowledged
	log    string // the last warnings
	heap   uint64 // highest seen, in bytes
}

// databases of the harness: of schedules in which one process has the store to itself, of those in
// which several write, and the one in which rollups are made from scratch.
const (
	alone    = "faults"
	shared   = "faults_shared"
	scratchy = "faults_scratch"
)

// play plays a schedule in a bubble of its own.
func play(t *testing.T, s schedule) (out result) {
	t.Helper()
	h := needHost(t)
	if err := h.prepare(); err != nil {
		t.Fatal(err)
	}
	db := shared
	if s.One {
		db = alone
	}
	views, err := h.names("SELECT name FROM system.tables WHERE database = '" + db +
		"' AND engine = 'MaterializedView' ORDER BY name FORMAT TSV")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(scratch(), "retrial-faults-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	synctest.Test(t, func(*testing.T) {
		told := &tail{}
		w := &world{plan: s, host: h, db: db, views: views, dir: dir, disk: newDisk(), durable: map[inode]int64{},
			judge: replay.New(replay.Config{}), told: told, log: zap.New(told.core(zapcore.WarnLevel)),
			sent: map[identity]bool{}, acked: map[identity]time.Time{}, policy: map[identity]bool{}, letters: map[string]bool{},
			fired: map[string]int{}}
		// Epochs are times: schedules must not share them, or their tokens would be the same.
		time.Sleep(time.Duration(h.played) * time.Hour)
		h.played++
		w.run()
		out = result{wrong: w.wrong, fired: w.fired, events: len(w.acked), log: told.String(), heap: w.heap}
	})
	return out
}

func (w *world) run() {
	w.began = time.Now()
	if err := w.startBroker(); err != nil {
		w.report("start the broker: %v", err)
		return
	}
	if w.plan.One {
		w.keep("serve", true, true)
	} else {
		w.keep("ingest", true, false)
		w.keep("replay-1", false, true)
	}
	for i := range w.plan.Steps {
		w.step(&w.plan.Steps[i])
		time.Sleep(w.plan.Steps[i].Then)
	}
	w.finish()
	for _, c := range w.clients { // a call that came too late may have opened connections again
		_ = c.Close()
	}
	time.Sleep(3 * time.Minute) // until what is left behind in clients' pools has timed out
}

// finish ends all faults, lets the installation settle and looks at what it holds.
func (w *world) finish() {
	w.mu.Lock()
	w.faults, w.store, w.gone = nil, step{}, ""
	slots := w.slots
	w.mu.Unlock()
	w.disk.fail("", 0)
	w.posting.Wait()
	w.weigh()
	for _, s := range slots {
		s.leave()
	}
	if b, _ := w.brokerNow(); b == nil {
		if err := w.startBroker(); err != nil {
			w.report("start the broker at the end: %v", err)
			return
		}
	}
	w.mu.Lock()
	w.processes = nil
	w.mu.Unlock()
	last := w.begin("last", true, true)
	if up := w.await(last); up != nil {
		before := len(w.acked)
		w.post("east", requests(rand.New(rand.NewPCG(w.plan.Seed, 9)), "east", "last", 3, 0), false, 20)
		w.posting.Wait()
		if len(w.acked) == before {
			w.report("a post is not acknowledged although nothing fails any more")
		}
		err := w.drain(up, 15*time.Minute)
		if err != nil && !w.plan.One && w.ghost() {
			// The stand-in for a Kafka of its own keeps a member whose connection broke while
			// it waited in a rebalance, forever. A real one does not, and the embedded one
			// dies with its only members: begin it anew without them.
			w.did("ghost member of the stand-in broker")
			err = errors.Join(w.endBroker(endKilled, nil), w.startBroker())
			if err == nil {
				err = w.drain(up, 15*time.Minute)
			}
		}
		if err != nil {
			w.report("not drained: %v, lag %+v, groups %v", err, up.runner.Lag(), w.groups())
		}
		time.Sleep(5 * time.Second) // the commit of an idle partition
		if lag := up.runner.Lag(); lag.Events != 0 || lag.Policy != 0 || lag.DeadLetters != 0 || lag.Corrections != 0 {
			w.report("drained with lag %+v", lag)
		}
	} else {
		w.report("the process does not come up although nothing fails any more")
	}
	last.cancel()
	<-last.done
	if err := w.endBroker(endClosed, nil); err != nil {
		w.report("close the broker: %v", err)
	}
	w.check()
}

// drain waits until nothing is spooled and everything is settled.
func (w *world) drain(up *parts, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for up.spool != nil && up.spool.Status().Records > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("spool: %+v", up.spool.Status())
		case <-time.After(time.Second):
		}
	}
	return up.runner.WaitDrained(ctx)
}

// await waits until a process is up.
func (w *world) await(p *process) *parts {
	for range 600 {
		if up := p.now(); up != nil {
			return up
		}
		time.Sleep(time.Second)
	}
	return nil
}

// weigh notes how much memory is held.
func (w *world) weigh() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heap = max(w.heap, m.HeapInuse)
	if m.HeapInuse > maxHeap {
		w.wrong = append(w.wrong, fmt.Sprintf("%d MiB of heap in use", m.HeapInuse>>20))
	}
}

// maxHeap bounds what all processes of a schedule hold together: their in-flight budgets and
// a huge event's forms.
const maxHeap = 768 << 20

// tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (l *tail) core(level zapcore.Level) zapcore.Core {
	enc := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "m", TimeKey: "t", NameKey: "n",
		EncodeTime: zapcore.TimeEncoderOfLayout("02 15:04:05.000"), LineEnding: "\n"})
	return zapcore.NewCore(enc, zapcore.AddSync(l), level)
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(p, []byte("connection refused")) {
		return len(p), nil // what an outage brings, many times over
	}
	l.lines = append(l.lines, fmt.Sprintf("%.500s", p))
	if n := len(l.lines); n > 200 {
		l.lines = slices.Clone(l.lines[n-100:])
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b bytes.Buffer
	for _, s := range l.lines[max(0, len(l.lines)-60):] {
		b.WriteString(s)
	}
	return b.String()
}
