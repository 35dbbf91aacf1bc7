package lineage

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/request"
)

// twinWindow is how far apart the two servers may report to have received a request: their clocks
// differ, and clients may reuse audit IDs.
const twinWindow = 5 * time.Minute

// Users as which a kube-apiserver calls aggregated servers, by version and purpose.
const (
	userAggregator     = "system:aggregator"
	userKubeAggregator = "system:kube-aggregator"
)

// Aggregators returns the users as which a kube-apiserver calls aggregated servers on its own
// behalf: discovery, their OpenAPI documents, availability.
func Aggregators() []string {
	return []string{userAggregator, userKubeAggregator, authn.UserLoopback}
}

// Twins joins the two events of a request through an aggregated API server: the one its
// kube-apiserver recorded before it passed the request on, and the one of the server itself.
// They share the audit ID, the path and the parameters; the server sees as its user whom the
// kube-apiserver authorized.
//
// Pass every event to Observe, in any order; then call Settle once; About and Found are safe for
// concurrent use after that. Its memory is bounded: a request whose front was forgotten gives no
// contradiction. Nil Twins observe nothing and find nothing.
type Twins struct {
	aggregated func(server string) bool
	fronts     remembered[*front]
	backs      map[backKey]*back
	limit      int
	forgotten  int64
	joined     int64
	found      []Found
	byID       map[string][]authn.Contradiction
}

// front is a request as its kube-apiserver recorded it.
type front struct {
	target, user, groups uint64
	name                 string
	received             time.Time
	passed               bool // it was not refused
}

type backKey struct {
	id, server string
	target     uint64
}

// back is a request as the aggregated server recorded it.
type back struct {
	user, groups uint64
	name, addr   string
	what         string
	received     time.Time
}

// NewTwins returns empty twins. aggregated reports whether an event's Server is an aggregated API
// server; limit bounds the requests that are remembered, 0 means a million.
func NewTwins(aggregated func(server string) bool, limit int) *Twins {
	limit = cmp.Or(limit, defaultRequests)
	return &Twins{aggregated: aggregated, limit: limit, fronts: remember[*front](limit), backs: map[backKey]*back{},
		byID: map[string][]authn.Contradiction{}}
}

// Observe takes in one event. It keeps only copies.
func (t *Twins) Observe(e *event.Event) {
	if t == nil || e.Stage == event.StageRequestReceived || e.AuditID == "" || e.User.Username == "" {
		return
	}
	u, target := e.EffectiveUser(), digestTarget(e.RequestURI)
	if !t.aggregated(e.Server) {
		if f, ok := t.fronts.get(e.AuditID); ok && (f.target == target || f.passed) {
			f.passed = f.passed || e.Code() != 403
			return
		}
		t.fronts.put(strings.Clone(e.AuditID), &front{
			target: target, user: digestText(u.Username), groups: digestText(joined(u.Groups)), name: strings.Clone(u.Username),
			received: e.RequestReceivedTimestamp, passed: e.Code() != 403,
		})
		return
	}
	if ownRequest(e) {
		return
	}
	key := backKey{strings.Clone(e.AuditID), e.Server, target}
	if t.backs[key] != nil {
		return
	}
	if len(t.backs) >= t.limit {
		t.forgotten++
		return
	}
	t.backs[key] = &back{
		user: digestText(u.Username), groups: digestText(joined(u.Groups)), name: strings.Clone(u.Username), addr: strings.Clone(peerOf(e)),
		what: e.Verb + " " + withoutQuery(e.RequestURI), received: e.RequestReceivedTimestamp,
	}
}

// ownRequest reports whether a request to an aggregated server cannot have a twin: the
// kube-apiserver makes it on its own behalf, or it is a probe without credentials.
func ownRequest(e *event.Event) bool {
	switch e.User.Username {
	case userAggregator, userKubeAggregator, authn.UserLoopback:
		return true
	case authn.UserAnonymous:
	default:
		return false
	}
	a, err := request.Of(e.Verb, e.RequestURI)
	return err == nil && !a.ResourceRequest
}

// Settle joins what was observed.
func (t *Twins) Settle() {
	if t == nil {
		return
	}
	for key, b := range t.backs {
		f, ok := t.fronts.peek(key.id)
		name, evidence := "", ""
		switch {
		case ok && f.passed && f.target == key.target && f.received.Sub(b.received).Abs() <= twinWindow:
			t.joined++
			if f.user == b.user && f.groups == b.groups {
				continue
			}
			name = authn.ContradictionAggregatedIdentity
			evidence = fmt.Sprintf("%s took %s for %q with other groups than the kube-apiserver, which authorized %q", key.server, b.what,
				b.name, f.name)
			if f.user != b.user {
				evidence = fmt.Sprintf("%s took %s for %q, the kube-apiserver had authorized %q", key.server, b.what, b.name, f.name)
			}
		case !ok && t.fronts.forgotten > 0:
			continue
		default:
			name = authn.ContradictionBypass
			evidence = fmt.Sprintf("%s by %q from %s reached %s at %s, and no kube-apiserver's event has this audit ID and target", b.what,
				b.name, b.addr, key.server, authn.FormatTime(b.received))
		}
		t.found = append(t.found, Found{Contradiction: authn.Contradiction{Name: name, Evidence: evidence}, Subject: key.id,
			First: b.received,
			Last:  b.received, Count: 1})
	}
	sortFound(t.found)
	for i := range t.found {
		f := &t.found[i]
		t.byID[f.Subject] = append(t.byID[f.Subject], f.Contradiction)
	}
}

// Joined returns how many requests of aggregated servers have their twin.
func (t *Twins) Joined() int64 {
	if t == nil {
		return 0
	}
	return t.joined
}

// Forgotten returns how many requests were forgotten.
func (t *Twins) Forgotten() int64 {
	if t == nil {
		return 0
	}
	return t.forgotten + t.fronts.forgotten
}

// Found returns everything found, by time. It must not be modified.
func (t *Twins) Found() []Found {
	if t == nil {
		return nil
	}
	return t.found
}

// About returns the contradictions that concern an event of an aggregated server, nil for none.
func (t *Twins) About(e *event.Event) []authn.Contradiction {
	if t == nil || len(t.byID) == 0 || !t.aggregated(e.Server) {
		return nil
	}
	return t.byID[e.AuditID]
}
