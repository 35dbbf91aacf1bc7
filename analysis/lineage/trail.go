package lineage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state"
)

// TrailConfig bounds what a Trail remembers. The zero value works.
type TrailConfig struct {
	// Credentials is how many credentials are remembered, the most recently seen; 0 = 100,000 (some
	// 50 MB if each is used by one client from one place, 0.2 kB for every other use).
	Credentials int
	// Requests is how many audit IDs are remembered, the newest; 0 = 500,000 (some 60 MB).
	Requests int
	// Burst is how many refused credentials from one address within BurstWindow are a burst;
	// 0 = 60. Behind a load balancer all clients may have one address.
	Burst int
}

// BurstWindow is the length of the stretches of time, from multiples of it since 1970 UTC, in
// which refused credentials are counted.
const BurstWindow = 5 * time.Minute

const (
	defaultCredentials = 100_000
	defaultRequests    = 500_000
	defaultBurst       = 60
	maxUses            = 32 // of one credential, kept apart
	maxIdentities      = 4
	maxPlaces          = 16
	maxPeers           = 1 << 16
)

// Trail follows credentials from their issue through every use, and finds what no single event
// shows. Pass every event to Observe, in any order and any number of times; then call Settle once;
// About, Found and the lineages are safe for concurrent use after that. Its memory is bounded; what
// it forgot is counted and gives no contradiction.
type Trail struct {
	cfg         TrailConfig
	credentials remembered[*trace]
	requests    remembered[*sighting]
	peers       map[string]*peerUse
	bursts      map[burst]int
	found       []Found
	byID        map[string][]authn.Contradiction // by credential, or audit ID behind auditPrefix
}

// Found is a contradiction and what it is about.
type Found struct {
	authn.Contradiction
	Subject     string // credential, audit ID or address
	First, Last time.Time
	Count       int64 // events, as far as they were counted
}

// NewTrail returns an empty trail.
func NewTrail(cfg TrailConfig) *Trail {
	cfg.Credentials = cmp.Or(cfg.Credentials, defaultCredentials)
	cfg.Requests = cmp.Or(cfg.Requests, defaultRequests)
	cfg.Burst = cmp.Or(cfg.Burst, defaultBurst)
	return &Trail{
		cfg: cfg, credentials: remember[*trace](cfg.Credentials), requests: remember[*sighting](cfg.Requests),
		peers: map[string]*peerUse{}, bursts: map[burst]int{}, byID: map[string][]authn.Contradiction{},
	}
}

// trace is what is remembered of one credential.
type trace struct {
	issue      *Issue
	identities []identity
	uses       []Use
	more       int64 // uses beyond maxUses
	places     []place
	node       string // of a pod's token
	bound      bool   // to a pod
	nodeUser   string // system:node:… that came with it, of a certificate
}

// identity is whom a credential authenticated.
type identity struct {
	name, uid   string
	groups      string // sorted, joined; certificates only
	first, last time.Time
}

// place is an address a credential came from.
type place struct {
	addr        string
	first, last time.Time
}

// peerUse is who comes from an address.
type peerUse struct {
	node  string // of the pods' tokens seen from there
	nodes bool   // of more than one node
	pod   string
	pods  bool   // of more than one pod
	host  string // node whose kubelet comes from there
}

// sighting is a request seen under an audit ID.
type sighting struct {
	user, target uint64
	received     time.Time
	reused       bool
}

type burst struct {
	addr string
	at   int64
}

// Observe takes in one event. It keeps only copies.
func (t *Trail) Observe(e *event.Event) {
	if e.Stage == event.StageRequestReceived {
		return
	}
	fresh := t.seen(e)
	if id, ok := e.Annotations.Get(authn.AnnotationIssued); ok {
		t.issued(id, e)
	}
	if e.User.Username == "" {
		if fresh && e.Code() == 401 {
			t.failed(e)
		}
		return
	}
	x := authn.PresentedBy(e)
	t.peer(e, &x)
	if x.ID != "" {
		t.used(e, &x, fresh)
	}
}

// seen records the audit ID; it is false for another stage, or a copy, of a request that was seen
// before.
func (t *Trail) seen(e *event.Event) bool {
	if e.AuditID == "" {
		return true
	}
	user, target := digestText(e.EffectiveUser().Username), digestTarget(e.RequestURI)
	key := e.AuditID
	s, ok := t.requests.get(key)
	if !ok {
		t.requests.put(strings.Clone(key), &sighting{user: user, target: target, received: e.RequestReceivedTimestamp})
		return true
	}
	if s.user == user && s.target == target {
		return !s.received.Equal(e.RequestReceivedTimestamp)
	}
	if !s.reused {
		s.reused = true
		id := strings.Clone(key)
		t.add(auditPrefix+id, Found{
			Contradiction: authn.Contradiction{Name: authn.ContradictionAuditID,
				Evidence: fmt.Sprintf("audit ID %q is on a request received at %s and on "+
					"%s %s by %q received at %s", id, authn.FormatTime(s.received), e.Verb, withoutQuery(e.RequestURI),
					e.EffectiveUser().Username, authn.FormatTime(e.RequestReceivedTimestamp))},
			Subject: id, First: earlier(s.received, e.RequestReceivedTimestamp), Last: later(s.received, e.RequestReceivedTimestamp),
			Count: 2,
		})
	}
	return true
}

// State answers questions about credentials that the apiserver issued; *state.State is one.
type State interface {
	Credential(id string) (state.Credential, state.Known)
}

const auditPrefix = "audit-id:"

func (t *Trail) issued(id string, e *event.Event) {
	a, err := request.Of(e.Verb, e.RequestURI)
	if err != nil || a.Resource != "serviceaccounts" {
		return
	}
	c := t.trace(id)
	if c.issue != nil {
		return
	}
	c.issue = &Issue{
		At: e.RequestReceivedTimestamp, Namespace: strings.Clone(a.Namespace), ServiceAccount: strings.Clone(a.Name),
		By: strings.Clone(e.User.Username), UserAgent: strings.Clone(e.UserAgent), SourceIP: strings.Clone(peerOf(e)),
		AuditID: strings.Clone(e.AuditID),
	}
}

func (t *Trail) trace(id string) *trace {
	c, ok := t.credentials.get(id)
	if !ok {
		c = &trace{}
		t.credentials.put(strings.Clone(id), c)
	}
	return c
}

func (t *Trail) used(e *event.Event, x *authn.Presented, fresh bool) {
	c, u, at := t.trace(x.ID), &e.User, e.RequestReceivedTimestamp
	groups := ""
	if x.Certificate {
		groups = joined(u.Groups)
		if c.nodeUser == "" && x.Kubelet {
			c.nodeUser = strings.Clone(u.Username)
		}
	}
	i := slices.IndexFunc(c.identities, func(k identity) bool {
		return k.name == u.Username && k.uid == u.UID && k.groups == groups
	})
	switch {
	case i >= 0:
		widen(&c.identities[i].first, &c.identities[i].last, at)
	case len(c.identities) < maxIdentities:
		c.identities = append(c.identities, identity{strings.Clone(u.Username), strings.Clone(u.UID), groups, at, at})
	}
	addr := peerOf(e)
	if x.PodUID != "" && x.Token {
		c.bound = true
		if c.node == "" {
			c.node = strings.Clone(x.Node)
		}
		p := slices.IndexFunc(c.places, func(p place) bool { return p.addr == addr })
		switch {
		case p >= 0:
			widen(&c.places[p].first, &c.places[p].last, at)
		case len(c.places) < maxPlaces:
			c.places = append(c.places, place{strings.Clone(addr), at, at})
		}
	}
	if !fresh {
		return
	}
	use := slices.IndexFunc(c.uses, func(k Use) bool {
		return k.UserAgent == e.UserAgent && k.SourceIP == addr && k.Pod == x.Pod && k.Node == x.Node
	})
	switch {
	case use >= 0:
		widen(&c.uses[use].First, &c.uses[use].Last, at)
		c.uses[use].Count++
	case len(c.uses) < maxUses:
		c.uses = append(c.uses, Use{
			UserAgent: strings.Clone(e.UserAgent), SourceIP: strings.Clone(addr), Pod: strings.Clone(x.Pod),
			PodUID: strings.Clone(x.PodUID),
			Node:   strings.Clone(x.Node), First: at, Last: at, Count: 1,
		})
	default:
		c.more++
	}
}

// peer records who comes from an address.
func (t *Trail) peer(e *event.Event, x *authn.Presented) {
	if x.PodUID == "" && !x.Kubelet {
		return
	}
	addr := peerOf(e)
	p := t.peers[addr]
	if p == nil {
		if len(t.peers) >= maxPeers {
			return
		}
		p = &peerUse{}
		t.peers[strings.Clone(addr)] = p
	}
	note := func(have *string, more *bool, value string) {
		switch {
		case value == "" || *have == value:
		case *have == "":
			*have = strings.Clone(value)
		default:
			*more = true
		}
	}
	if x.Kubelet {
		note(&p.host, &p.nodes, strings.TrimPrefix(e.User.Username, authn.PrefixNode))
		return
	}
	note(&p.node, &p.nodes, x.Node)
	note(&p.pod, &p.pods, x.PodUID)
}

func (t *Trail) failed(e *event.Event) {
	b := burst{peerOf(e), e.RequestReceivedTimestamp.UnixNano() / int64(BurstWindow)}
	if _, ok := t.bursts[b]; !ok {
		if len(t.bursts) >= maxPeers {
			return
		}
		b.addr = strings.Clone(b.addr)
	}
	t.bursts[b]++
}

func (t *Trail) add(key string, f Found) {
	f.Evidence = authn.ClipEvidence(f.Evidence)
	t.found = append(t.found, f)
	t.byID[key] = append(t.byID[key], f.Contradiction)
}

// Found returns everything found, by time. It must not be modified.
func (t *Trail) Found() []Found { return t.found }

// Forgotten returns how many credentials and audit IDs were forgotten.
func (t *Trail) Forgotten() int64 { return t.credentials.forgotten + t.requests.forgotten }

// About returns the contradictions that concern an event, nil for none. A nil Trail has none.
func (t *Trail) About(e *event.Event) []authn.Contradiction {
	if t == nil || len(t.byID) == 0 {
		return nil
	}
	out := t.byID[auditPrefix+e.AuditID]
	if e.User.Username == "" {
		if e.Code() == 401 {
			out = join(out, t.byID[burstKey(peerOf(e), e.RequestReceivedTimestamp.UnixNano()/int64(BurstWindow))])
		}
		return out
	}
	if x := authn.PresentedBy(e); x.ID != "" {
		out = join(out, t.byID[x.ID])
	}
	return out
}

// peerOf returns the address that an event's request came from: the last one, which the apiserver itself
// saw.
func peerOf(e *event.Event) string {
	if len(e.SourceIPs) == 0 {
		return ""
	}
	return e.SourceIPs[len(e.SourceIPs)-1]
}

func join(a, b []authn.Contradiction) []authn.Contradiction {
	if len(a) == 0 {
		return b
	}
	return append(slices.Clone(a), b...)
}
