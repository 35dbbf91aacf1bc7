package storage

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// TestRecent: whatever is stored is looked up, in whichever order requests come and however late; of what is new little is.
func TestRecent(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRecent()
		r.most = 20 + rng.IntN(30)
		type request struct {
			cluster string
			at      int64
		}
		stored := map[event.Hash128]request{}
		last := map[string]int64{} // minutes, of what is stored
		row := func(id uint64, of request) *verdict.Row {
			v := &verdict.Row{Cluster: of.cluster, Request: event.Hash128{Lo: id}, Event: &event.Event{}}
			v.Event.RequestReceivedTimestamp = time.Unix(of.at, 0)
			return v
		}
		store := func(id uint64, of request) {
			stored[event.Hash128{Lo: id}] = of
			last[of.cluster] = max(last[of.cluster], of.at/60*60)
		}
		cluster := func() string { return fmt.Sprint("c", rng.IntN(3)) }
		now := int64(1_700_000_000)
		for id := range uint64(rng.IntN(100)) { // before the start
			store(id, request{cluster(), now - rng.Int64N(3600)})
		}
		asked, posted := 0, 0
		for id := uint64(1000); id < 1400; id++ {
			now += rng.Int64N(10)
			of := request{cluster(), now - rng.Int64N(30)}
			if rng.IntN(50) == 0 {
				of.at -= rng.Int64N(3600)
			}
			rows := []*verdict.Row{row(id, of)}
			for again := range stored { // delivered again
				rows = append(rows, row(again.Lo, stored[again]))
				break
			}
			for name := range r.unknown(rows) {
				from := int64(0)
				if at, has := last[name]; has {
					from = at + 1
				}
				r.begin(name, from)
			}
			maybe := map[event.Hash128]bool{}
			for _, m := range r.among(rows) {
				maybe[m.Request] = true
			}
			for _, m := range rows {
				if _, is := stored[m.Request]; is && !maybe[m.Request] {
					t.Fatalf("seed %d: request %d of %s is stored and not looked up", seed, m.Request.Lo, m.Cluster)
				}
			}
			posted++
			if maybe[rows[0].Request] {
				asked++
			}
			r.note([]verdict.Row{*rows[0]})
			if rng.IntN(20) > 0 { // or the insert fails
				store(id, of)
			}
		}
		if seed == 0 {
			t.Logf("%d of %d new requests are looked up", asked, posted)
		}
		if asked > posted*3/4 {
			t.Errorf("seed %d: %d of %d new requests are looked up", seed, asked, posted)
		}
	}
}
