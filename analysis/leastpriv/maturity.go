package leastpriv

import (
	"fmt"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
)

// Maturity says how far what a subject needs of its own roles is known: a subject that has been doing the same for long is learned, another
// one is still learning.
type Maturity struct {
	Learned bool `json:"learned"` // else it is still learning
	// New estimates the share of requests to come that need something of the roles that was never used: (s+1) / (n+1), where s is how
	// many verbs on resources the subject used once, and n the requests that its own roles allowed. This is Good and Turing's estimate,
	// smoothed.
	New     float64   `json:"new"`
	Since   time.Time `json:"since"`         // its first request that its own roles allowed; zero: there was none
	LastNew time.Time `json:"lastNew"`       // when it last used something for the first time
	Why     string    `json:"why,omitempty"` // what is missing; empty if learned

	seen   time.Time // its first request that RBAC allowed
	folded int64     // requests that a cap left untold
}

// fold takes in how many requests a cap left untold.
func (m *Maturity) fold(requests int64) {
	if m.folded = requests; requests > 0 {
		m.Learned, m.Why = false, fmt.Sprintf("requests that were only counted together with others: %d", requests)
	}
}

// new reports whether too little is known of a subject to narrow anything.
func (m *Maturity) new(r *Recording) bool {
	return m.folded > 0 || m.seen.After(r.To.Add(-r.To.Sub(r.From)/recent))
}

// tooNew says why.
func (m *Maturity) tooNew() string {
	if m.folded > 0 {
		return fmt.Sprintf("%d of its requests were counted together with others, because there were too many kinds: what they asked "+
			"for is not known, and nothing is suggested (--strict suggests what its stored events show)", m.folded)
	}
	return fmt.Sprintf("it was first seen at %s, in the last tenth of the recording: too little is known of it to suggest anything "+
		"(--strict suggests what it used)", m.seen.UTC().Format(time.RFC3339))
}

// What makes a subject learned; docs/least-privilege.md shows what it is worth.
const (
	mostNew = 0.01 // at most, of what is to come
	quiet   = 5    // nothing was new in the last of so many parts of the time it is known
	recent  = 10   // who was first seen in the last of so many parts of the recording is new
)

// maturityOf returns how far a history tells what a subject needs of its own roles: beyond what a policy allows that has no binding of it.
func maturityOf(h *history, base *rbacindex.Snapshot, end time.Time) Maturity {
	type used struct {
		count int64
		first time.Time
	}
	pairs := map[pair]used{}
	var m Maturity
	requests, once := int64(0), int64(0)
	for i := range h.needs {
		n := &h.needs[i]
		if m.seen.IsZero() || n.first.Before(m.seen) {
			m.seen = n.first
		}
		if n.allowed(base) {
			continue
		}
		k := askedPair(&n.attrs)
		u := pairs[k]
		if u.first.IsZero() || n.first.Before(u.first) {
			u.first = n.first
		}
		u.count += n.count
		pairs[k] = u
		requests += n.count
	}
	for _, u := range pairs {
		if u.count == 1 {
			once++
		}
		if m.Since.IsZero() || u.first.Before(m.Since) {
			m.Since = u.first
		}
		if u.first.After(m.LastNew) {
			m.LastNew = u.first
		}
	}
	m.New = float64(once+1) / float64(requests+1)
	switch known := end.Sub(m.Since); {
	case requests == 0:
		m.Why = "its own roles allowed none of its requests"
	case m.New > mostNew:
		m.Why = fmt.Sprintf("requests that its own roles allowed: %d, of them the only one of its kind: %d", requests, once)
	case end.Sub(m.LastNew) < known/quiet:
		m.Why = fmt.Sprintf("it used something for the first time at %s", m.LastNew.UTC().Format(time.RFC3339))
	default:
		m.Learned = true
	}
	return m
}
