package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/retrial-io/retrial/test/kafkatest"
)

// TestScaleOutOnKafka runs the two halves as processes of their own, two of each, on a real
// Kafka whose partitions the replay processes share. While events come in, one of those is
// killed, another joins, one leaves, a receiver is killed, Kafka is killed and stopped; a
// RoleBinding arrives late, and the process that begins to correct verdicts for it is killed.
// In the end every posted event is stored once, every verdict is that of an offline
// evaluation, and verdicts and rollups are those of one process that saw all in order.
//
// RETRIAL_TEST_KAFKA_ALL has it run, as make test-kafka does.
func TestScaleOutOnKafka(t *testing.T) {
	if !kafkatest.All() {
		t.Skip("takes minutes for each version of Kafka: make test-kafka")
	}
	for _, setting := range kafkatest.Settings() {
		if setting.Mechanism != "" { // the listener makes no difference to who owns what
			t.Run(setting.String(), func(t *testing.T) { scaleOut(t, setting) })
		}
	}
}

const scalePartitions = 6

func scaleOut(t *testing.T, setting kafkatest.Setting) {
	s := newFleet(t, setting, scalePartitions, scalePartitions)
	at := func(name string) string { return filepath.Join(s.dir, name) }
	without, late, with := lateLog(t)
	state, whole := writeState(t, s.dir), writeLog(t, at("audit.jsonl"), with)

	replay := func() *running { return s.member("replay", "--replay-hold", "0s", "--replay-batch-rows", "400") }
	first, second := replay(), replay()
	first.run(t, "import", "--cluster", "prod", "--state", state, "--wait=false").ok(t)
	group := &balancer{t: t, kubeconfig: at("prod.kubeconfig")}
	group.put(0, s.member("ingest"))
	group.put(1, s.member("ingest"))
	owned := func(m *running) float64 { return m.gauge(t, "retrial_runner_partitions") }
	until(t, "the partitions to be shared out", func() (bool, string) {
		a, b := owned(first), owned(second)
		return a == scalePartitions/2 && b == scalePartitions/2, fmt.Sprintf("%v and %v", a, b)
	})

	bodies := batches(without, 7)
	part := func(i, n int) [][]byte { return bodies[i*len(bodies)/n : (i+1)*len(bodies)/n] }
	var third, fourth *running
	group.deliver(part(0, 6), func() { second.kill() })
	group.deliver(part(1, 6), func() { third = replay() })
	group.deliver(part(2, 6), func() {
		killed := group.members[0].Load()
		killed.kill()
		group.put(0, s.again(killed.install, "ingest"))
	})
	group.deliver(part(3, 6), func() { s.kafka.Nodes[0].Kill(); s.kafka.Nodes[0].Restart(t) })
	// The late one: whoever has begun to correct is killed.
	first.drained(t)
	third.drained(t)
	group.deliver([][]byte{eventList([][]byte{late})}, nil)
	victim, survivor := first, third
	until(t, "somebody to correct verdicts", func() (bool, string) {
		if third.gauge(t, "retrial_runner_corrections_total") > 0 {
			victim, survivor = third, first
			return true, ""
		}
		return first.gauge(t, "retrial_runner_corrections_total") > 0, ""
	})
	done := victim.gauge(t, "retrial_runner_corrections_total") // more by the time it ends
	victim.kill()
	group.deliver(part(4, 6), func() { fourth = replay() })
	survivor.drained(t)
	fourth.drained(t)
	t.Logf("corrected by the one that was killed: at least %v; by the others: %v and %v", done,
		survivor.gauge(t, "retrial_runner_corrections_total"), fourth.gauge(t, "retrial_runner_corrections_total"))
	group.deliver(part(5, 6), func() { survivor.stop(t); s.kafka.Nodes[0].Restart(t) })
	fourth.drained(t)
	if n := owned(fourth); n != scalePartitions {
		t.Errorf("the last process owns %v partitions of %d", n, scalePartitions)
	}
	fourth.stop(t)
	for i := range group.members {
		group.members[i].Load().stop(t)
	}
	s.closeStore()
	checkImported(t, s.install, "prod", state, whole, with)
	likeOneProcess(t, s.install, state, whole)
}

// likeOneProcess compares verdicts and rollups of the cluster with those of one process that
// imports the state and then the whole log: given together, the state would be known to be as
// old as the log.
func likeOneProcess(t *testing.T, in install, state, log string) {
	t.Helper()
	scratch := newInstall(t)
	s := scratch.serve(t)
	scratch.run(t, "import", "--cluster", "prod", "--state", state).ok(t)
	scratch.run(t, "import", "--cluster", "prod", log).ok(t)
	s.stop(t)
	ask := func(in install) (verdicts map[string]string, usage []string) {
		t.Helper()
		at := func(name string) string { return filepath.Join(in.dir, name) }
		inspect(t,
			inspection{Data: in.data(), Queries: map[string]string{at("verdicts"): verdictsOf("prod"), at("usage"): usageOf("prod")}})
		return requests(t, lines(t, at("verdicts"))), lines(t, at("usage"))
	}
	got, usage := ask(in)
	want, wantUsage := ask(scratch)
	for id := range changed(got, want) {
		t.Errorf("%s is %s, not %s", id, difference(got[id], want[id]), difference(want[id], got[id]))
	}
	sameLines(t, "rollups", usage, wantUsage)
}

// until polls until something is so.
func until(t *testing.T, what string, so func() (bool, string)) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		ok, is := so()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain for %s: %s", what, is)
		}
	}
}

// balancer posts to several receivers, as what stands before them does: to each in turn, and
// to the next when one does not take a body.
type balancer struct {
	t          *testing.T
	kubeconfig string
	members    [2]atomic.Pointer[running]
	senders    [2]atomic.Pointer[sender]
	turn       atomic.Int64
}

func (b *balancer) put(i int, s *running) {
	to := s.sender(b.t, b.kubeconfig)
	b.members[i].Store(s)
	b.senders[i].Store(&to)
}

// deliver posts bodies until they are taken, three at a time; something happens when a third
// of them has been.
func (b *balancer) deliver(bodies [][]byte, then func()) {
	b.t.Helper()
	deliverEach(b.t, bodies, b.post, len(bodies)/3, then)
}

func (b *balancer) post(body []byte) bool {
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	for {
		to := b.senders[b.turn.Add(1)%int64(len(b.senders))].Load()
		a, err := to.post(ctx, bytes.NewReader(body))
		switch {
		case err == nil && a.code == 200:
			return true
		case ctx.Err() != nil, err == nil && a.code != 429 && a.code < 500:
			b.t.Errorf("a body was not taken: %d %s %v", a.code, a.text, err)
			return false
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
