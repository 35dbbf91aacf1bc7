package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retrial-io/retrial/ingest/stream"
)

var clusters = []string{"east", "west"} //nolint:gochecknoglobals // constant table

// step does one step of the schedule.
func (w *world) step(s *step) {
	rng := rand.New(rand.NewPCG(s.Seed, w.plan.Seed))
	cluster := clusters[rng.IntN(2)]
	name := fmt.Sprintf("%s-%d", s.Kind, s.Seed)
	switch s.Kind {
	case stepPost:
		skew := time.Duration(0)
		if s.What == "skew" { // an apiserver whose clock is wrong
			skew = time.Duration(rng.IntN(144)-72) * time.Hour
		}
		w.post(cluster, requests(rng, cluster, name, s.N, skew), false, 5)
	case stepImport:
		if cluster, items := w.earlier(rng, 1); len(items) > 0 {
			w.post(cluster, items, true, 3)
		}
	case stepRepeat:
		w.repeat(rng, s.N)
	case stepBinding:
		w.bind(rng, cluster, name, s.N)
	case stepListing:
		w.list(cluster)
	case stepHuge:
		w.post(cluster, append(requests(rng, cluster, name, 3, 0), huge(cluster, name+"-huge", 10<<20)), false, 5)
	case stepGarbage:
		w.post(cluster, append(requests(rng, cluster, name, 3, 0), malformed(name)), false, 5)
	case stepPoison:
		w.poison(name)
	case stepFault:
		w.mu.Lock()
		w.faults = append(w.faults, *s)
		w.mu.Unlock()
	case stepStore:
		w.failStore(*s)
	case stepBroker:
		w.stopBroker(rng, s)
	case stepGone:
		w.hide(s)
	case stepDisk:
		w.disk.fail(s.What, s.For)
		w.did("spool disk " + s.What)
	case stepStop:
		w.any(rng).stopFor(s.For)
		w.did("stop")
	case stepKill:
		victim := w.slots[rng.IntN(len(w.slots))]
		if s.On == "ingest" {
			victim = w.slots[0]
		}
		victim.kill(step{What: s.What, For: time.Duration(s.N) * time.Second, Seed: s.Seed})
		w.did("kill")
	case stepClock:
		w.mu.Lock()
		w.skew = s.For
		w.mu.Unlock()
		w.did("clock")
	case stepJoin:
		w.join()
	case stepLayout:
		w.layout(*s)
	case stepTruncate, stepRecreate:
		w.lose(rng, s)
	}
}

func (w *world) did(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fired[what]++
}

// any returns one of the processes that run.
func (w *world) any(rng *rand.Rand) *process { return w.slots[rng.IntN(len(w.slots))].now() }

// earlier returns events of some batches of one cluster that were sent before.
func (w *world) earlier(rng *rand.Rand, batches int) (cluster string, items []item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.batches) == 0 {
		return "", nil
	}
	first := rng.IntN(len(w.batches))
	cluster = w.owner[first]
	items = append(items, w.batches[first]...)
	for range batches - 1 {
		if i := rng.IntN(len(w.batches)); i != first && w.owner[i] == cluster {
			items = append(items, w.batches[i]...)
		}
	}
	for i := 0; i < len(items); i++ {
		if items[i].digest != "" || len(items[i].raw) > 1<<20 {
			items = append(items[:i:i], items[i+1:]...)
			i--
		}
	}
	return cluster, items
}

// repeat sends events again: in another order, cut into batches elsewhere, some of them in
// two batches at once.
func (w *world) repeat(rng *rand.Rand, batches int) {
	cluster, items := w.earlier(rng, batches)
	rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	for len(items) > 0 {
		n := 1 + rng.IntN(len(items))
		w.post(cluster, items[:n:n], false, 3)
		if rng.IntN(3) == 0 {
			n = max(1, n/2) // its second half comes once more
		}
		items = items[n:]
	}
	w.did("repeat")
}

// bind writes a binding among requests that it decides, before or after them.
func (w *world) bind(rng *rand.Rand, cluster, name string, n int) {
	rv := 2000 + rng.IntN(9000)
	write := []item{binding(rng, cluster, name, rv, false)}
	if rng.IntN(3) == 0 {
		write = append(write, binding(rng, cluster, name, rv, true))
	}
	asked := requests(rng, cluster, name, n, 0)
	switch rng.IntN(3) {
	case 0:
		w.post(cluster, append(write, asked...), false, 5)
	case 1: // late
		w.post(cluster, asked, false, 5)
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
		w.post(cluster, write, false, 5)
	case 2:
		w.post(cluster, write, false, 5)
		w.post(cluster, asked, false, 5)
	}
	w.did("binding")
}

// list takes a cluster's state in, as the receiver's door for states does.
func (w *world) list(cluster string) {
	w.posting.Go(func() {
		p, up := w.receiver()
		if p == nil {
			return
		}
		var records []stream.Record
		for _, o := range listing().Observations() {
			records = append(records, stream.PolicyRecord(stream.KindObservation, cluster, "import", w.clock(), o.Append(nil)))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if up.spool.Produce(ctx, records...) == nil && p.alive() == nil {
			w.did("listing")
		}
	})
}

// poison puts a record into the log that no release can read.
func (w *world) poison(name string) {
	w.posting.Go(func() {
		p, up := w.receiver()
		if p == nil {
			return
		}
		value := fmt.Appendf(nil, "{nope %s", name)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		err := up.spool.Produce(ctx, stream.Record{Topic: stream.TopicEvents, Kind: stream.KindEvent, Key: []byte(name),
			Cluster: "east", Source: "webhook", Value: value, Received: w.clock()})
		if err == nil && p.alive() == nil {
			w.mu.Lock()
			w.letters[digestOf(value)] = true
			w.mu.Unlock()
			w.did("poison")
		}
	})
}

// failStore has the store fail for a while.
func (w *world) failStore(s step) {
	w.mu.Lock()
	w.store = s
	w.mu.Unlock()
	time.AfterFunc(s.For, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.store.Seed == s.Seed {
			w.store = step{}
		}
	})
}

// stopBroker ends the broker, and with it the process it lives in when there is one.
func (w *world) stopBroker(rng *rand.Rand, s *step) {
	w.did("broker " + s.What)
	if w.plan.One {
		if s.What == endClosed {
			w.restart()
			return
		}
		w.slots[0].kill(*s)
		return
	}
	if err := w.endBroker(s.What, rng); err != nil {
		w.report("end the broker: %v", err)
	}
	time.Sleep(s.For)
	w.resumeBroker()
}

func (w *world) resumeBroker() {
	if b, _ := w.brokerNow(); b == nil {
		if err := w.startBroker(); err != nil {
			w.report("start the broker: %v", err)
		}
	}
}

// restart ends the one process in an orderly way and starts it again.
func (w *world) restart() {
	s := w.slots[0]
	s.leave()
	time.Sleep(time.Second)
	w.resumeBroker()
	w.mu.Lock()
	w.slots = nil
	w.mu.Unlock()
	w.keep(s.name, s.receives, s.replays)
}

// hide makes the broker unreachable for a while. In one process there is no network between.
func (w *world) hide(s *step) {
	if w.plan.One {
		return
	}
	w.mu.Lock()
	w.gone = s.What
	w.mu.Unlock()
	if s.What == doRefuse {
		w.cutAll()
	}
	w.did("gone " + s.What)
	time.AfterFunc(s.For, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.gone = ""
	})
	if s.For > time.Minute { // apiservers go on meanwhile
		rng := rand.New(rand.NewPCG(s.Seed, 3))
		for i := range 4 {
			w.post("west", requests(rng, "west", fmt.Sprintf("gone-%d-%d", s.Seed, i), 5, 0), false, 5)
			time.Sleep(s.For / 4)
		}
	}
}

// layout changes the layout, as `retrial partitions set` does, by the connection of a receiver, which then knows of it, or of
// a runner. Like somebody who was told to, it tries again after an error.
func (w *world) layout(s step) {
	w.posting.Go(func() {
		for range 20 {
			if w.setLayout(s) == nil {
				w.did("layout")
				return
			}
			time.Sleep(3 * time.Second)
		}
	})
}

func (w *world) setLayout(s step) error {
	p, up := w.receiver()
	w.mu.Lock()
	for _, other := range w.processes {
		if s.On == "replay" && other.replays && !other.isDead() {
			p, up = other, other.now()
		}
	}
	w.mu.Unlock()
	if p == nil || up == nil {
		return errNetwork
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	there, err := up.client.HighWatermarks(ctx, stream.TopicEvents)
	if err == nil {
		n := max(s.N, len(there))
		_, err = up.client.SetLayout(ctx, n, min(s.Per, n))
	}
	return err
}

// join has a second runner join, or leave again.
func (w *world) join() {
	if w.plan.One {
		return
	}
	w.did("rebalance")
	if n := len(w.slots); n > 2 {
		last := w.slots[n-1]
		w.mu.Lock()
		w.slots = w.slots[:n-1]
		w.mu.Unlock()
		last.leave()
		return
	}
	w.keep(fmt.Sprint("replay-", 1+len(w.slots)), false, true)
}

// lose waits until everything is consumed and then takes the end of a partition's log, or
// all of it, away: what comes then gets offsets that were used before.
func (w *world) lose(rng *rand.Rand, s *step) {
	w.posting.Wait()
	w.mu.Lock()
	w.faults, w.store, w.gone = nil, step{}, ""
	slots := w.slots
	w.mu.Unlock()
	w.disk.fail("", 0)
	for _, sl := range slots {
		sl.now().proceed()
	}
	ok := false
	for range 20 {
		if w.drained(slots) {
			ok = true
			break
		}
		time.Sleep(10 * time.Second)
	}
	if !ok {
		return
	}
	time.Sleep(5 * time.Second)
	for _, sl := range slots {
		sl.leave()
	}
	if err := w.endBroker(endClosed, nil); err != nil {
		w.report("close the broker: %v", err)
	}
	part := rng.IntN(eventPartitions)
	var err error
	if s.Kind == stepTruncate {
		err = w.truncate(part, float64(s.N)/100)
	} else {
		err = w.forget(part)
	}
	if err != nil {
		w.report("%s: %v", s.Kind, err)
	}
	w.resumeBroker()
	w.mu.Lock()
	w.slots = nil
	w.mu.Unlock()
	for _, sl := range slots {
		w.keep(sl.name, sl.receives, sl.replays)
	}
	w.did(s.Kind)
}

// drained reports whether the runners have settled everything.
func (w *world) drained(slots []*slot) bool {
	ends, settled := map[int32]int64{}, int64(0)
	for _, sl := range slots {
		up := sl.now().now()
		if up == nil {
			return false
		}
		if up.spool != nil && up.spool.Status().Records > 0 {
			return false
		}
		if up.runner == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		e, err := up.client.HighWatermarks(ctx, stream.TopicEvents)
		cancel()
		if err != nil {
			return false
		}
		lag := up.runner.Lag()
		if lag.Events != 0 || lag.Policy != 0 || lag.DeadLetters != 0 || lag.Corrections != 0 {
			return false
		}
		ends = e
	}
	// A lag is as of the last fetch: what is settled must be all there is.
	committed, err := w.committed()
	if err != nil {
		return false
	}
	var all int64
	for p, end := range ends {
		all += end
		settled += committed[p]
	}
	return all == settled
}
