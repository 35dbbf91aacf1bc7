package lineage

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
)

func TestTwins(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	alice := event.User{Username: "alice", Groups: []string{"devs", authn.GroupAuthenticated}}
	const uri = "/apis/wardle.example.com/v1alpha1/namespaces/a/flunders?limit=5&labelSelector=x"
	ev := func(server, id, uri string, u event.User, mods ...func(*event.Event)) *event.Event {
		e := &event.Event{
			Server: server, AuditID: id, Stage: event.StageResponseComplete, Verb: "list", RequestURI: uri, User: u,
			SourceIPs:      []string{"192.0.2.7"},
			ResponseStatus: &event.Status{Code: 200}, RequestReceivedTimestamp: at, StageTimestamp: at.Add(time.Millisecond),
		}
		for _, mod := range mods {
			mod(e)
		}
		return e
	}
	acting := func(e *event.Event) { e.ImpersonatedUser = &alice }
	refused := func(e *event.Event) { e.ResponseStatus = &event.Status{Code: 403} }
	later := func(e *event.Event) { e.RequestReceivedTimestamp = at.Add(time.Hour) }
	admin := event.User{Username: "admin", Groups: []string{"system:masters"}}

	cases := []struct {
		name   string
		events []*event.Event
		joined int64
		want   string // contradictions
	}{
		{"case 65: acting as another, parameters in another order", []*event.Event{
			ev("", "1", uri, admin, acting), ev("w", "1", strings.Replace(uri, "limit=5&labelSelector=x", "labelSelector=x&limit=5", 1),
				alice),
		}, 1, ""},
		{"both stages of a watch", []*event.Event{
			ev("", "1", uri, alice, func(e *event.Event) { e.Stage = event.StageResponseStarted }), ev("", "1", uri, alice),
			ev("w", "1", uri, alice, func(e *event.Event) { e.Stage = event.StageResponseStarted }), ev("w", "1", uri, alice),
		}, 1, ""},
		{"two policies: the backend refuses", []*event.Event{ev("", "1", uri, alice), ev("w", "1", uri, alice, refused)}, 1, ""},
		{"another user", []*event.Event{ev("", "1", uri, admin), ev("w", "1", uri, alice)}, 1, authn.ContradictionAggregatedIdentity},
		{"other groups", []*event.Event{ev("", "1", uri, event.User{Username: "alice", Groups: []string{authn.GroupAuthenticated}}),
			ev("w", "1", uri, alice)}, 1, authn.ContradictionAggregatedIdentity},
		{"nothing in front of it", []*event.Event{ev("w", "1", uri, alice)}, 0, authn.ContradictionBypass},
		{"refused in front of it", []*event.Event{ev("", "1", uri, alice, refused), ev("w", "1", uri, alice)}, 0,
			authn.ContradictionBypass},
		{"the ID of another request", []*event.Event{ev("", "1", "/api/v1/pods", alice), ev("w", "1", uri, alice)}, 0,
			authn.ContradictionBypass},
		{"the ID of an hour ago", []*event.Event{ev("", "1", uri, alice), ev("w", "1", uri, alice, later)}, 0, authn.ContradictionBypass},
		{"discovery by the kube-apiserver", []*event.Event{ev("w", "1", "/apis/wardle.example.com/v1alpha1",
			event.User{Username: "system:kube-aggregator"})}, 0, ""},
		{"a probe", []*event.Event{ev("w", "1", "/readyz", event.User{Username: authn.UserAnonymous})}, 0, ""},
		{"anonymous to a resource", []*event.Event{ev("w", "1", uri, event.User{Username: authn.UserAnonymous})}, 0,
			authn.ContradictionBypass},
		{"not an aggregated server", []*event.Event{ev("kube-2", "1", uri, alice)}, 0, ""},
		{"nobody authenticated", []*event.Event{ev("w", "1", uri, event.User{})}, 0, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var want []Found
			for seed := range uint64(4) {
				events := append([]*event.Event(nil), tc.events...)
				events = append(events, events...) // every event comes twice
				rand.New(rand.NewPCG(seed, 1)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
				tw := NewTwins(func(server string) bool { return server == "w" }, 0)
				for _, e := range events {
					tw.Observe(e)
				}
				tw.Settle()
				var names []string
				for _, f := range tw.Found() {
					names = append(names, f.Name)
				}
				if got := strings.Join(names, " "); got != tc.want || tw.Joined() != tc.joined {
					t.Fatalf("found %q and joined %d, want %q and %d", got, tw.Joined(), tc.want, tc.joined)
				}
				if want == nil {
					want = tw.Found()
				}
				if !reflect.DeepEqual(want, tw.Found()) {
					t.Fatalf("the order of events shows: %+v and %+v", want, tw.Found())
				}
				for _, e := range tc.events {
					if about := tw.About(e); (len(about) > 0) != (tc.want != "" && e.Server == "w") {
						t.Errorf("about the event of %q: %+v", e.Server, about)
					}
				}
			}
		})
	}
}

// TestTwinsAreBounded: what is forgotten is counted, and no contradiction comes of it.
func TestTwinsAreBounded(t *testing.T) {
	tw := NewTwins(func(server string) bool { return server == "w" }, 100)
	u := event.User{Username: "u"}
	for i := range 500 {
		for _, server := range []string{"", "w"} {
			tw.Observe(&event.Event{Server: server, AuditID: fmt.Sprint(i), Stage: event.StageResponseComplete, Verb: "get",
				RequestURI: "/apis/g/v/r", User: u})
		}
	}
	tw.Settle()
	if len(tw.backs) > 100 || tw.Forgotten() == 0 || len(tw.Found()) > 0 {
		t.Errorf("%d remembered, %d forgotten, found %+v", len(tw.backs), tw.Forgotten(), tw.Found())
	}
}
