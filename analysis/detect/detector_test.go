package detect

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/retrial-io/retrial/ingest/event"
)

var t0 = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// podGet returns a request of a user, at seconds after t0.
func podGet(user, pod string, seconds int) *event.Event {
	at := t0.Add(time.Duration(seconds) * time.Second)
	return &event.Event{
		AuditID: fmt.Sprintf("%s-%s-%d", user, pod, seconds), Stage: event.StageResponseComplete, Verb: "get",
		RequestURI: "/api/v1/namespaces/a/pods/" + pod, User: event.User{Username: user},
		RequestReceivedTimestamp: at, StageTimestamp: at,
	}
}

func mustLoad(t *testing.T, text string) *Set {
	t.Helper()
	set, err := Load(files("rule.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

const windowRule = `
id: pods-enumerated
title: Pods enumerated
description: Several pods were read.
severity: low
kind: window
match: {verbs: [get], resources: [pods]}
window: {length: 60s, every: 10s, fold: 60s}
counts: [{distinct: name, atLeast: 3}]
`

func TestWindows(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  string
		at    []int // seconds of requests for pods 0, 1, 2 …
		count []int64
	}{
		{"three within the window", windowRule, []int{0, 20, 40}, []int64{3}},
		{"over the border of a minute", windowRule, []int{40, 55, 70}, []int64{3}},
		{"three, but not within one window", windowRule, []int{0, 40, 80}, nil},
		{"two", windowRule, []int{0, 1}, nil},
		{"seconds apart, and again later", windowRule, []int{0, 1, 2, 600, 601, 602}, []int64{3, 3}},
		{"before 1970 is a time too", windowRule, []int{-4e9, -4e9 + 1, -4e9 + 2}, []int64{3}},
		{"after, in order", `
id: r
title: t
description: d
severity: low
kind: window
window: {length: 60s}
counts: [{where: 'name == "0"', atLeast: 1}, {where: 'name == "1"', atLeast: 1, after: true}]
`, []int{0, 20}, []int64{2}},
		{"after, in the wrong order", `
id: r
title: t
description: d
severity: low
kind: window
window: {length: 60s}
counts: [{where: 'name == "0"', atLeast: 1}, {where: 'name == "1"', atLeast: 1, after: true}]
`, []int{20, 0}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := New(mustLoad(t, c.rule), Config{})
			for i, at := range c.at {
				d.Observe("prod", podGet("bob", fmt.Sprint(i), at), nil)
			}
			var got []int64
			for _, f := range d.Flush() {
				got = append(got, f.Count)
			}
			if !slices.Equal(got, c.count) {
				t.Errorf("counts of the findings = %v, want %v", got, c.count)
			}
		})
	}
}

// TestOrderDoesNotMatter gives the requests of all cases in several orders: the findings
// are the same, and so are those of a second run.
func TestOrderDoesNotMatter(t *testing.T) {
	set, requests := builtinSet(t), allRequests(t)
	run := func() []Finding {
		d := New(set, Config{})
		for _, q := range requests {
			d.Observe("prod", q.decode(t), q.Verdict)
		}
		return d.Flush()
	}
	want := run()
	if len(want) < 20 {
		t.Fatalf("%d findings", len(want))
	}
	for seed := range uint64(3) {
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
		if got := run(); !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: %d findings differ from the %d of the first order", seed, len(got), len(want))
		}
	}
}

func TestTooManyGroups(t *testing.T) {
	d := New(mustLoad(t, windowRule), Config{MaxPanes: 2})
	for i := range 5 {
		d.Observe("prod", podGet(fmt.Sprint("u", i), "1", 0), nil)
	}
	if s := d.Stats(); s.Dropped != 3 || s.Requests != 5 {
		t.Errorf("stats %+v, want 3 dropped of 5", s)
	}
}

// TestTimesNoLogShouldHold checks that impossible times terminate, and do not lose the request.
func TestTimesNoLogShouldHold(t *testing.T) {
	for _, at := range []time.Time{{}, time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(-300, 1, 1, 0, 0, 0, 0, time.UTC)} {
		for _, rule := range []string{windowRule, goodRule} {
			d := New(mustLoad(t, rule), Config{})
			for i := range 3 {
				e := podGet("bob", fmt.Sprint(i), 0)
				e.RequestReceivedTimestamp = at
				d.Observe("prod", e, nil)
			}
			if f := d.Flush(); len(f) != 1 || f[0].Count != 3 {
				t.Errorf("%s: findings %+v, want one of 3 requests", at, f)
			}
		}
	}
}

func TestLongNamesAreCut(t *testing.T) {
	d := New(mustLoad(t, goodRule), Config{})
	d.Observe("prod", podGet(strings.Repeat("é", 5000), "1", 0), nil)
	f := d.Flush()
	if len(f) != 1 || len(f[0].Subject) > maxText+3 || len(f[0].Text) > maxText+3 || !utf8.ValidString(f[0].Text+f[0].Subject) {
		t.Errorf("findings %+v", f)
	}
}

func TestFindingIdentity(t *testing.T) {
	set := mustLoad(t, goodRule)
	one := func(cluster, user string, at int) Finding {
		d := New(set, Config{})
		d.Observe(cluster, podGet(user, "1", at), nil)
		f := d.Flush()
		if len(f) != 1 {
			t.Fatalf("%d findings", len(f))
		}
		return f[0]
	}
	base := one("prod", "bob", 0)
	if same := one("prod", "bob", 60); same.ID != base.ID {
		t.Error("the same subject within the hour is another finding")
	}
	for name, other := range map[string]Finding{
		"cluster": one("test", "bob", 0), "subject": one("prod", "eve", 0), "window": one("prod", "bob", 7200),
	} {
		if other.ID == base.ID {
			t.Errorf("another %s has the same id", name)
		}
	}
	if base.Text != "bob get pods a/1" || base.Subject != "bob" || len(base.Evidence) != 1 || base.Evidence[0].AuditID != "bob-1-0" {
		t.Errorf("finding %+v", base)
	}
}
