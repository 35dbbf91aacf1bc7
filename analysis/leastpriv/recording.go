package leastpriv

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state"
)

// Recording describes what the whole recording covers and what it lacks. Advice is only as good as
// that.
type Recording struct {
	From     time.Time `json:"from"` // first request
	To       time.Time `json:"to"`   // last request
	Requests int64     `json:"requests"`
	Judged   int64     `json:"judged"` // could be compared with the replica's decision
	// Coverage is Judged ÷ Requests, 0 if there are none.
	Coverage float64 `json:"coverage"`
	// Unjudged counts the others, and those with an uncertain or contradicting verdict, by outcome and
	// class.
	Unjudged map[string]int64 `json:"unjudged"`
	// Truncated events came without the bodies they had.
	Truncated int64 `json:"truncated"`
	// DeadLetters could not be read at all.
	DeadLetters int64 `json:"deadLetters"`
	// Dropped requests were recorded but are past retention.
	Dropped int64 `json:"dropped"`
	// Gaps describe all of that in words, and what is not known of the policy; see Describe.
	Gaps []string `json:"gaps"`
}

// Recording returns what the Collector itself has seen.
func (c *Collector) Recording() Recording {
	return Recording{From: c.from, To: c.to, Requests: c.requests, Judged: c.judged, Unjudged: maps.Clone(c.unjudged)}
}

// Describe fills in Coverage and Gaps. st is the state the recording was judged by, which has to know the policy since a moment; zero:
// since the first request. What is older was judged when it came.
func (r *Recording) Describe(st *state.State, since time.Time) {
	if since.Before(r.From) {
		since = r.From
	}
	if r.Requests > 0 {
		r.Coverage = float64(r.Judged) / float64(r.Requests)
	}
	if r.Unjudged == nil {
		r.Unjudged = map[string]int64{}
	}
	r.Gaps = []string{}
	add := func(format string, args ...any) { r.Gaps = append(r.Gaps, fmt.Sprintf(format, args...)) }
	classes := slices.SortedFunc(maps.Keys(r.Unjudged), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Unjudged[b], r.Unjudged[a]), strings.Compare(a, b))
	})
	for _, class := range classes {
		add("%s", unjudgedText(class, r.Unjudged[class]))
	}
	if r.Truncated > 0 {
		add("%d events were cut off before they came here: the content of their bodies is not known", r.Truncated)
	}
	if r.Dropped > 0 {
		add("%d requests are past retention: what only they show is missing", r.Dropped)
	}
	if r.DeadLetters > 0 {
		add("%d records could not be read, and are dead letters", r.DeadLetters)
	}
	for _, at := range []struct {
		when string
		time time.Time
	}{{"at its beginning", since}, {"at its end", r.To}} {
		view := st.RBAC(at.time)
		for _, k := range view.UnknownKinds {
			add("%s not every %s is known", at.when, k)
		}
		if n := len(view.Unknown); n > 0 {
			add("%s the content of %d roles or bindings is not known", at.when, n)
		}
	}
}

// unjudgedText describes how requests without a certain verdict are counted.
func unjudgedText(class string, n int64) string {
	if strings.HasPrefix(class, "ambiguous") {
		return fmt.Sprintf("%d requests count as used only where the record says that RBAC allowed them: %s", n, class)
	}
	return fmt.Sprintf("%d requests are not counted: %s", n, class)
}
