package replay

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// An apiserver decides by what its caches hold, which is what was written a little earlier. A
// request whose record agrees with the policy before a write that was answered x before the
// request arrived shows a lag of x at least. Such requests are rare: somebody must use a right
// right after it was given or taken.

// Bounds of what is learnt of an apiserver's cache lag.
const (
	MinLag = 10 * time.Millisecond
	MaxLag = 5 * time.Second
)

// lagWitnesses is how many requests must show a lag before it is believed: one may be explained
// otherwise.
const lagWitnesses = 3

// Behind tells how old the policy was that a request was decided by: the time from the answer
// to the write that ended it to the arrival of the request, when the record disagrees with the
// policy at its arrival and agrees with one of the MaxLag before. It asks nothing of verdicts
// other than drift and those that are ambiguous for a change of policy.
func (eng *Engine) Behind(e *event.Event, s *state.State, v *verdict.Verdict) (lag time.Duration, ok bool) {
	switch v.Class {
	case verdict.ClassAllowForbid, verdict.ClassForbidAllow, verdict.ClassReason, verdict.ClassRaced:
	default:
		return 0, false
	}
	if s == nil || !Kept(s, e.RequestReceivedTimestamp) {
		return 0, false
	}
	t := eng.begin(e, s, &verdict.Verdict{})
	defer t.end()
	t.base = t.momentAt(e.RequestReceivedTimestamp)
	if !t.decide() {
		return 0, false
	}
	rec := readRecord(e)
	if ok, _ := t.agrees(&rec); ok {
		return 0, false
	}
	views := s.RBACWindow(e.RequestReceivedTimestamp.Add(-MaxLag), e.RequestReceivedTimestamp)
	for i := len(views) - 1; i > 0; i-- {
		ended := views[i].Changed[0].NotAfter
		if ended.After(e.RequestReceivedTimestamp) {
			continue
		}
		m := t.with(&views[i-1])
		ans := t.askAgain(&m)
		if ok, _ := agreesWith(&ans, &rec, t.bufs.reason); ok {
			return e.RequestReceivedTimestamp.Sub(ended), true
		}
	}
	return 0, false
}

// Lag is what is learnt of the cache lag of one apiserver.
type Lag struct {
	Cluster string `json:"cluster"`
	Server  string `json:"apiserver,omitempty"` // as its endpoint names it
	// Requests that were decided by a policy that had ended when they arrived.
	Requests int64 `json:"requests"`
	// Longest is the longest such a policy had ended before; one request may be explained
	// otherwise, such as by clocks that do not agree.
	Longest time.Duration `json:"longest"`
	// Learnt is what three requests show at least, within MinLag and MaxLag; zero while there
	// are fewer: then DefaultLag is assumed.
	Learnt time.Duration `json:"learnt"`
}

// Lags learns the cache lags of apiservers. The zero value is ready to use; it is safe for
// concurrent use. What it says does not depend on the order of what it is told.
type Lags struct {
	mu sync.Mutex
	by map[lagKey]*lagSeen
}

type lagKey struct{ cluster, server string }

type lagSeen struct {
	count   int64
	longest [lagWitnesses]time.Duration // in falling order
}

// Observe notes a lag that Behind told of.
func (l *Lags) Observe(cluster, server string, lag time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[lagKey]*lagSeen{}
	}
	k := lagKey{cluster, server}
	s := l.by[k]
	if s == nil {
		s = &lagSeen{}
		l.by[k] = s
	}
	s.count++
	i, _ := slices.BinarySearchFunc(s.longest[:], lag, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	if i < len(s.longest) {
		copy(s.longest[i+1:], s.longest[i:])
		s.longest[i] = lag
	}
}

// All returns what was learnt, by cluster and apiserver.
func (l *Lags) All() []Lag {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Lag, 0, len(l.by))
	for k, s := range l.by {
		lag := Lag{Cluster: k.cluster, Server: k.server, Requests: s.count, Longest: s.longest[0]}
		if s.count >= lagWitnesses {
			lag.Learnt = min(max(s.longest[lagWitnesses-1], MinLag), MaxLag)
		}
		out = append(out, lag)
	}
	slices.SortFunc(out, func(a, b Lag) int { return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Server, b.Server)) })
	return out
}
