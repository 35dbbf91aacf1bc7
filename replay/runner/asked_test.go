package runner

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/stream/streamtest"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/test/workload"
)

// TestCatchUp: events that wait for their turn, and policy that no event needs, are there when somebody asks for them.
func TestCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &simWorld{log: newSimLog(simPlan{}, 1, 1), rows: newSimRows(""), engine: replay.New(replay.Config{})}
		ctx, stop := context.WithCancel(t.Context())
		l := &life{world: w, cancel: stop, reg: prometheus.NewRegistry()}
		r, err := New(Config{Hold: 100 * time.Millisecond, Linger: time.Hour}, &simSource{w.log, l}, w.engine, &simStore{w.rows, l})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		post := func(i int) {
			now := time.Now()
			e := requestEvent(i, 1, 1, event.StageResponseComplete, now, time.Millisecond, true)
			w.log.append(stream.TopicEvents, streamtest.EventRecord("east", "webhook", "", now, e))
			binding := workload.BindRole(fmt.Sprint("b", i), 3*i+1, 1, 1, now, false)
			w.log.append(stream.TopicPolicy, streamtest.PolicyEventRecord("east", "webhook", "", now, binding))
		}
		check := func(when string, events, bindings int) {
			t.Helper()
			if n := len(w.rows.visible()); n != events {
				t.Errorf("%s: %d events are stored, want %d", when, n, events)
			}
			s, err := r.State(t.Context(), "east", latest)
			if err != nil {
				t.Fatal(err)
			}
			known := 0
			for i := range 10 {
				if s == nil {
					break
				}
				_, found := s.Version(kept.RoleBindings, "ns1", fmt.Sprint("b", i), time.Now().Add(time.Minute))
				if found == state.Present {
					known++
				}
			}
			if known != bindings {
				t.Errorf("%s: %d bindings are known, want %d", when, known, bindings)
			}
		}
		post(0)
		time.Sleep(10 * time.Second)
		check("the first, which waits for nothing", 1, 1)
		r.pace.mu.Lock()
		r.pace.next = time.Now().Add(time.Hour) // as after an insert that took long
		r.pace.mu.Unlock()
		post(1)
		time.Sleep(5 * time.Minute)
		check("while nobody asks", 1, 1)
		r.CatchUp(t.Context())
		check("when somebody has asked", 2, 2)
		time.Sleep(10 * time.Second)
		post(2)
		r.CatchUp(t.Context())
		check("asked for at once: policy alone", 2, 3)
		post(3)
		if err := r.WaitDrained(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("waited for", 4, 4)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
