package state_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// seen is a request of an apiserver itself.
func seen(t *testing.T, at string, server string, minor int) []observe.Observation {
	t.Helper()
	obs, err := observe.FromEvent(&event.Event{
		Stage: event.StageResponseComplete, Verb: "get", RequestURI: "/api/v1/nodes", RequestReceivedTimestamp: clock(t,
			at), Server: server,
		User: event.User{Username: "system:apiserver"}, SourceIPs: []string{"::1"}, UserAgent: fmt.Sprintf(
			"kube-apiserver/v1.%d.1 (linux/amd64) kubernetes/abc", minor),
	})
	if err != nil || len(obs) != 1 {
		t.Fatal(obs, err)
	}
	return obs
}

func TestReleases(t *testing.T) {
	s := state.New("c")
	for _, o := range [][]observe.Observation{
		seen(t, "12:03:00", "", 36), seen(t, "13:00:00", "", 36), // and then it was updated
		seen(t, "13:25:00", "", 37), seen(t, "15:00:00", "", 37),
		seen(t, "12:00:00", "other", 28),
	} {
		s.Apply(o...)
	}
	for _, c := range []struct {
		server, at string
		want       []int
	}{
		{"", "10:30:00", nil}, // too long before
		{"", "11:10:00", []int{36}},
		{"", "12:30:00", []int{36}},
		{"", "13:05:00", []int{36}},
		{"", "13:15:00", []int{36, 37}}, // either, between the two
		{"", "13:30:00", []int{37}},
		{"", "23:00:00", []int{37}},
		{"other", "23:00:00", []int{28}},
		{"never seen", "23:00:00", []int{37, 28}}, // merged with one of them
	} {
		if got := s.Releases(c.server, clock(t, c.at), nil); !slices.Equal(got, c.want) {
			t.Errorf("%q at %s: %v, want %v", c.server, c.at, got, c.want)
		}
	}
	if got := s.Servers(); len(got) != 2 || len(got[""]) != 2 || got[""][0].String() != "1.36" || got["other"][0].Minor != 28 {
		t.Errorf("servers %+v", got)
	}
}

// What is said of versions is a function of the set of sightings, and every change of it has
// an effect that covers it; one more sighting of the same version is none.
func TestReleasesInAnyOrder(t *testing.T) {
	var times []time.Time
	for i := range 12 * 20 {
		times = append(times, clock(t, "06:00:00").Add(time.Duration(i)*5*time.Minute+time.Second))
	}
	ask := func(s *state.State, at time.Time) string { return fmt.Sprint(s.Releases("", at, nil)) }
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var obs []observe.Observation
		for range 1 + rnd.IntN(8) {
			at := fmt.Sprintf("%02d:%02d:00", 8+rnd.IntN(8), rnd.IntN(60))
			obs = append(obs, seen(t, at, "", 36+rnd.IntN(3))...)
		}
		want := state.New("c")
		want.Apply(obs...)
		rnd.Shuffle(len(obs), func(i, j int) { obs[i], obs[j] = obs[j], obs[i] })
		s := state.New("c")
		for _, o := range append(obs, obs...) {
			before := map[time.Time]string{}
			for _, at := range times {
				before[at] = ask(s, at)
			}
			decoded, err := observe.Decode(o.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			effects := s.Apply(decoded)
			for _, at := range times {
				covered := slices.ContainsFunc(effects, func(e state.Effect) bool {
					return !at.Before(e.From) && (e.To.IsZero() || !at.After(e.To)) && e.Subjects().All
				})
				if was := before[at]; was != ask(s, at) && !covered {
					t.Fatalf("seed %d: at %s %s became %s, effects %+v", seed, at, was, ask(s, at), effects)
				}
			}
		}
		for _, at := range times {
			if got, w := ask(s, at), ask(want, at); got != w {
				t.Fatalf("seed %d: at %s %s, in another order %s", seed, at, got, w)
			}
		}
		if effects := s.Apply(obs...); len(effects) != 0 {
			t.Fatalf("seed %d: what was known has effects %+v", seed, effects)
		}
	}
}
