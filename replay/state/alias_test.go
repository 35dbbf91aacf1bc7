package state_test

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	samples "github.com/retrial-io/retrial/test/recorded"
)

// TestStateLetsGoOfEvents: what is kept of an event does not hold the memory it was read into, which is many times as large.
func TestStateLetsGoOfEvents(t *testing.T) {
	s := state.New("c")
	var freed atomic.Int64
	buffers := int64(0)
	var effects []state.Effect // which stay, too, until all rows are corrected for them
	dec := new(event.Decoder)
	for _, line := range samples.Sample(t) {
		text := bytes.Clone(line)
		e, err := dec.Decode(text, event.Bodies{})
		if err != nil {
			t.Fatal(err)
		}
		if !event.KeepsPolicy(e) {
			continue
		}
		list, err := observe.FromEvent(e)
		if err != nil {
			continue
		}
		buffers++
		runtime.AddCleanup(&text[0], func(struct{}) { freed.Add(1) }, struct{}{})
		effects = append(effects, s.Apply(list...)...)
	}
	dec = nil
	for range 5 {
		runtime.GC()
	}
	if held := buffers - freed.Load(); held > 0 {
		t.Errorf("%d of %d events are held by the state", held, buffers)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(effects)
}
