package evaluate_test

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/recorded"
)

// TestVerdictsLetGoOfEvents: what an engine, a state and its index remember of requests does not hold the memory these were read into.
func TestVerdictsLetGoOfEvents(t *testing.T) {
	s, engine := state.New("c"), replay.New(replay.Config{})
	all := recorded.Sample(t)
	for _, line := range all {
		if e, err := new(event.Decoder).Decode(bytes.Clone(line), event.Bodies{}); err == nil && event.KeepsPolicy(e) {
			if list, err := observe.FromEvent(e); err == nil {
				s.Apply(list...)
			}
		}
	}
	var freed atomic.Int64
	for _, line := range all {
		text := bytes.Clone(line)
		e, err := new(event.Decoder).Decode(text, event.Bodies{})
		if err != nil {
			t.Fatal(err)
		}
		runtime.AddCleanup(&text[0], func(struct{}) { freed.Add(1) }, struct{}{})
		engine.Replay(e, s)
	}
	for range 5 {
		runtime.GC()
	}
	if held := int64(len(all)) - freed.Load(); held > 0 {
		t.Errorf("%d of %d events are held", held, len(all))
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(engine)
}
