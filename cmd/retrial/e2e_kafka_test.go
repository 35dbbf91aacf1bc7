package main

import (
	"bytes"
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/retrial-io/retrial/test/kafkatest"
)

// onKafka are the flags of a process that uses a real Kafka of one broker.
func onKafka(a kafkatest.Access, more ...string) []string {
	return append(append(a.Flags(), "--kafka-replication", "1", "--kafka-partitions", "4"), more...)
}

// TestPipelineOnKafka sends the recorded log over mutual TLS through a real Kafka into the
// embedded store, as apiservers do: bodies of all sizes, out of order, some events twice. In
// the middle the broker is killed and started again, later it is stopped and started again.
// Every event is stored once and judged as an offline evaluation judges it, and the rollups
// are the sums of the rows.
func TestPipelineOnKafka(t *testing.T) {
	for _, setting := range kafkatest.Settings() {
		t.Run(setting.String(), func(t *testing.T) {
			t.Parallel()
			needStore(t)
			kafka := kafkatest.Run(t, kafkatest.Config{Version: setting.Version})
			in := newInstall(t)
			log := portion(t)
			file, state := writeLog(t, filepath.Join(in.dir, "audit.jsonl"), log), writeState(t, in.dir)

			s := in.serve(t, onKafka(setting.Access(kafka))...)
			to := s.addCluster(t, "prod")
			in.run(t, "import", "--cluster", "prod", "--state", state).ok(t)
			bodies := batches(log, 1)
			third := len(bodies) / 3
			node := kafka.Nodes[0]
			deliverAll(t, to, bodies[:third], func() { node.Kill(); node.Restart(t) })
			deliverAll(t, to, bodies[third:2*third], func() { node.Restart(t) })
			deliverAll(t, to, bodies[2*third:], nil)
			s.drained(t)
			s.stop(t)
			checkImported(t, in, "prod", state, file, log)

			// Another process takes up where the first has committed: nothing comes again.
			s = in.serve(t, onKafka(setting.Access(kafka))...)
			s.drained(t)
			if n, ok := s.metric(t.Context(), `retrial_stream_fetched_records_total{topic="audit.events"}`); !ok || n != 0 {
				t.Errorf("%v events were read again after an orderly stop", n)
			}
			s.stop(t)
			checkImported(t, in, "prod", state, file, log)
		})
	}
}

// deliverAll posts bodies as a cluster does, a few at a time and again when asked to come
// back; something happens when half of them have been taken.
func deliverAll(t *testing.T, to sender, bodies [][]byte, halfway func()) {
	t.Helper()
	deliverEach(t, bodies, func(body []byte) bool { return !t.Failed() && to.untilTaken(t, body) }, len(bodies)/2, halfway)
}

// deliverEach posts bodies three at a time; then is called once so many of them have been taken.
func deliverEach(t *testing.T, bodies [][]byte, post func([]byte) (taken bool), after int, then func()) {
	t.Helper()
	next := make(chan []byte)
	var taken atomic.Int64
	var once sync.Once
	var group, disturbance sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for body := range next {
				if !post(body) {
					continue
				}
				if taken.Add(1) >= int64(after) && then != nil {
					once.Do(func() { disturbance.Go(then) })
				}
			}
		})
	}
	for _, body := range bodies {
		next <- body
	}
	close(next)
	group.Wait()
	disturbance.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// untilTaken posts a body until it is answered with 200, as an apiserver tries again after
// 429, 5xx and broken connections.
func (p sender) untilTaken(t *testing.T, body []byte) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		a, err := p.post(ctx, bytes.NewReader(body))
		switch {
		case ctx.Err() != nil:
			t.Errorf("a body was not taken: %d %s %v", a.code, a.text, err)
			return false
		case err == nil && a.code == 200:
			return true
		case err == nil && a.code != 429 && a.code < 500:
			t.Errorf("a body was refused: %d %s", a.code, a.text)
			return false
		}
		select { // as an apiserver waits between attempts, only shorter
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
