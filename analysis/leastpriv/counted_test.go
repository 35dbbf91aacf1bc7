package leastpriv

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/verdict"
)

// counted takes in a recording as rollups and what they do not tell, and the subjects that have to be read from events as events.
func (p *recordedPast) counted(t *testing.T, policy *rbacindex.Snapshot) (events, counted *Collector, exact []string) {
	events, counted = NewCollector(), NewCollector()
	p.each(t, func(e *event.Event, v *verdict.Verdict) {
		events.Observe(e, v)
		for u := range codec.UsesOf(&verdict.Row{Event: e, Verdict: v}) {
			counted.Used(&u)
		}
		if v.Untold() {
			counted.Untold(e, v, Count{Requests: 1, First: e.RequestReceivedTimestamp, Last: e.RequestReceivedTimestamp})
		}
	})
	exact = counted.Unspelled(policy)
	for _, name := range exact {
		counted.Take(name, events)
	}
	return events, counted, exact
}

// TestCountedSuggestsTheSame: what rollups tell gives the suggestions that events give, of more than one recording.
func TestCountedSuggestsTheSame(t *testing.T) {
	for _, p := range []recordedPast{bundled(t), weeksOf(t, 4)} {
		t.Run(p.name, func(t *testing.T) {
			events, counted, exact := p.counted(t, p.state.RBAC(newest).RBAC)
			a, b := events.Advise(p.state, newest, Options{}), counted.Advise(p.state, newest, Options{})
			if !slices.Equal(events.Subjects(), counted.Subjects()) {
				t.Errorf("subjects %q, want %q", counted.Subjects(), events.Subjects())
			}
			if r := counted.Recording(); !reflect.DeepEqual(r, events.Recording()) {
				t.Errorf("recording %+v, want %+v", r, events.Recording())
			}
			different, read := 0, 0
			for _, want := range everybody(t, a) {
				got, err := b.Suggest(want.Subject)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(exact, want.Subject) {
					read++
				}
				if got.Proof.Accesses != want.Proof.Accesses {
					different++
				}
				// There are fewer distinct ones.
				got.Proof.Accesses, got.Proof.Refusals, got.Keeps = want.Proof.Accesses, want.Proof.Refusals, want.Keeps
				got.Proof.AllowedByKept, got.Proof.AllowedToday = want.Proof.AllowedByKept, want.Proof.AllowedToday
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s:\n%+v, want\n%+v", want.Subject, got, want)
				}
			}
			t.Logf("%d subjects, %d with fewer accesses, %d read from events", len(a.collector.Subjects()), different, read)
			if different == 0 {
				t.Error("no subject has a generated name: nothing was compared")
			}
		})
	}
}

// use is a request that RBAC allowed, as rollups count it.
func use(who, verb, resource, name string, n int64) verdict.Use {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return verdict.Use{Subject: who, Told: true, Recorded: verdict.DecisionAllow, Replayed: verdict.DecisionAllow, Granted: true,
		Outcome: verdict.OutcomeMatch, Requests: n, First: at, Last: at.Add(time.Hour),
		Attributes: verdict.Attributes{ResourceRequest: true, Verb: verb, Resource: resource, Namespace: "shop", Name: name}}
}

// TestUnspelled: a name that stands for several is enough where any name is allowed, and not where names are listed.
func TestUnspelled(t *testing.T) {
	one := rule("get", "", "pods")
	one.ResourceNames = []string{"web-7d4b9c8f6d-x2x4x"}
	policy, err := rbacindex.New(clusterRole("any", rule("get", "", "pods")), clusterRole("one", one),
		everywhere("ann-any", "any", user("ann")), everywhere("bob-one", "one", user("bob")))
	if err != nil {
		t.Fatal(err)
	}
	c := NewCollector()
	for _, u := range []verdict.Use{use("ann", "get", "pods", "web-*", 3), use("ann", "get", "pods", codec.Other, 1),
		use("bob", "get", "pods", "web-*", 2)} {
		c.Used(&u)
	}
	if got := c.Unspelled(policy); !slices.Equal(got, []string{"bob"}) {
		t.Errorf("got %q, want bob alone", got)
	}
}
