package webhook

import (
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Reason is why a client was turned away, one of a closed set. Those of refused requests
// are the label values of retrial_webhook_refused_requests_total; those of failed handshakes
// are listed here.
type Reason string

// Reasons that say something about how a cluster is connected.
const (
	// ReasonUnknownAuthority: the client's certificate is from another authority.
	ReasonUnknownAuthority Reason = "unknown-authority"
	// ReasonExpired: the client's certificate is expired, or not valid yet.
	ReasonExpired Reason = "certificate-expired"
	// ReasonNotTrusted: the client does not trust the receiver's certificate.
	ReasonNotTrusted Reason = "receiver-not-trusted"
	// ReasonNotTLS: the client speaks plain HTTP.
	ReasonNotTLS Reason = "not-tls"
	// ReasonHandshake: the TLS handshake failed in another way.
	ReasonHandshake Reason = "handshake"
	// ReasonCredential: no credential, or none that is accepted (any more).
	ReasonCredential Reason = refusedCredential
	// ReasonCluster: the credential is another cluster's, or the cluster is not registered.
	ReasonCluster Reason = refusedCluster
	// ReasonPath: no such path.
	ReasonPath Reason = refusedPath
)

// Accepted is what was posted for a cluster since the receiver started.
type Accepted struct {
	First, Last time.Time
	Posts       int64
	Events      int64
	Remote      string // host of the last post
}

// Refusal is a request or a handshake that was turned away, the latest of its kind.
type Refusal struct {
	// Cluster is the credential's, or without one the path's; empty if neither is known, as
	// for a handshake.
	Cluster     string
	Remote      string // host
	Reason      Reason
	Detail      string // as it was answered or logged; may hold what the client chose
	First, Last time.Time
	Count       int64
}

const (
	// keptRefusals and keptClusters bound the memory: anyone who reaches the port may be refused.
	keptRefusals = 64
	keptClusters = 4096
	// keptServers bounds how many apiservers of a cluster are told apart: clients choose their names.
	keptServers = 64
	// detailBytes bounds a refusal's text.
	detailBytes = 300
)

// Contacts remembers who reached the receiver, so that people can be told how far a cluster's
// connection has come. It is bounded, kept in memory only, and safe for use by several
// goroutines. A nil Contacts remembers nothing.
type Contacts struct {
	now   func() time.Time
	since time.Time

	mu       sync.Mutex
	accepted map[string]*Accepted
	followed map[string]*Accepted
	servers  map[string]map[string]*postTimes // by cluster and name
	refusals []Refusal                        // oldest first, by Last
}

// postTimes is when an apiserver posted first and last, and when a follower of its log last did.
type postTimes struct{ began, posted, followed time.Time }

// NewContacts returns an empty record; now is its clock, nil is time.Now.
func NewContacts(now func() time.Time) *Contacts {
	if now == nil {
		now = time.Now
	}
	return &Contacts{
		now: now, since: now(), accepted: map[string]*Accepted{}, followed: map[string]*Accepted{},
		servers: map[string]map[string]*postTimes{},
	}
}

// Since returns when the record begins.
func (c *Contacts) Since() time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.since
}

// Accepted returns what the cluster's apiservers posted, nil if they posted nothing.
func (c *Contacts) Accepted(cluster string) *Accepted {
	if c == nil {
		return nil
	}
	return c.posted(c.accepted, cluster)
}

// Followed returns what followers of the cluster's audit logs posted, nil if they posted nothing.
func (c *Contacts) Followed(cluster string) *Accepted {
	if c == nil {
		return nil
	}
	return c.posted(c.followed, cluster)
}

// Unfollowed returns, in order, the cluster's apiservers that posted before and after since, and whose logs no follower posted from since.
func (c *Contacts) Unfollowed(cluster string, since time.Time) []string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for name, h := range c.servers[cluster] {
		if !h.began.IsZero() && h.began.Before(since) && !h.posted.Before(since) && h.followed.Before(since) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (c *Contacts) posted(by map[string]*Accepted, cluster string) *Accepted {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := by[cluster]; ok {
		own := *a
		return &own
	}
	return nil
}

// Refusals returns the cluster's refusals and those that may be any cluster's, the latest first.
func (c *Contacts) Refusals(cluster string) []Refusal {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Refusal
	for _, r := range slices.Backward(c.refusals) {
		if r.Cluster == cluster || r.Cluster == "" {
			out = append(out, r)
		}
	}
	return out
}

// accept notes an acknowledged post of an apiserver.
func (c *Contacts) accept(cluster, apiserver, remote string, events int) {
	if c != nil {
		c.add(c.accepted, cluster, apiserver, remote, events, func(h *postTimes, now time.Time) {
			if h.posted = now; h.began.IsZero() {
				h.began = now
			}
		})
	}
}

// follow notes an acknowledged post of a follower.
func (c *Contacts) follow(cluster, apiserver, remote string, events int) {
	if c != nil {
		c.add(c.followed, cluster, apiserver, remote, events, func(h *postTimes, now time.Time) { h.followed = now })
	}
}

func (c *Contacts) add(by map[string]*Accepted, cluster, apiserver, remote string, events int, last func(*postTimes, time.Time)) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := by[cluster]
	if !ok {
		if len(by) >= keptClusters {
			return
		}
		a = &Accepted{First: now}
		by[cluster] = a
	}
	a.Last, a.Remote = now, host(remote)
	a.Posts++
	a.Events += int64(events)
	servers := c.servers[cluster]
	if servers == nil {
		servers = map[string]*postTimes{}
		c.servers[cluster] = servers
	}
	h := servers[apiserver]
	if h == nil {
		if len(servers) >= keptServers {
			return
		}
		h = &postTimes{}
		servers[apiserver] = h
	}
	last(h, now)
}

// refuse notes a refusal. It replaces one of the same cluster, host and reason: one that retries every second does not push out others.
func (c *Contacts) refuse(cluster, remote string, reason Reason, detail string) {
	if c == nil {
		return
	}
	now := c.now()
	r := Refusal{Cluster: cluster, Remote: host(remote), Reason: reason, Detail: clip(detail), First: now, Last: now, Count: 1}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.refusals, func(o Refusal) bool {
		return o.Cluster == r.Cluster && o.Remote == r.Remote && o.Reason == r.Reason
	})
	switch {
	case i >= 0:
		r.First, r.Count = c.refusals[i].First, c.refusals[i].Count+1
		c.refusals = slices.Delete(c.refusals, i, i+1)
	case len(c.refusals) == keptRefusals:
		c.refusals = slices.Delete(c.refusals, 0, 1)
	}
	c.refusals = append(c.refusals, r)
}

// handshake notes a line of net/http's error log if it is about a handshake.
func (c *Contacts) handshake(line string) {
	rest, ok := strings.CutPrefix(line, "http: TLS handshake error from ")
	if c == nil || !ok {
		return
	}
	remote, detail, ok := strings.Cut(rest, ": ")
	if !ok {
		return
	}
	if reason, ok := handshakeReason(detail); ok {
		c.refuse("", remote, reason, detail)
	}
}

// handshakeReason classifies what crypto/tls and net/http say about a handshake; ok is false for those that just ended: probes.
func handshakeReason(detail string) (reason Reason, ok bool) {
	has := func(s string) bool { return strings.Contains(detail, s) }
	switch {
	case has("certificate has expired or is not yet valid"):
		return ReasonExpired, true
	case has("remote error: tls:") && has("certificate"):
		return ReasonNotTrusted, true
	case has("x509:"), has("failed to verify certificate"):
		return ReasonUnknownAuthority, true
	case has("HTTP request to an HTTPS server"):
		return ReasonNotTLS, true
	case detail == "EOF", has("connection reset"), has("i/o timeout"), has("broken pipe"):
		return "", false
	}
	return ReasonHandshake, true
}

func host(remote string) string {
	if h, _, err := net.SplitHostPort(remote); err == nil {
		return h
	}
	return clip(remote)
}

// clip cuts s to detailBytes, at the end of a character.
func clip(s string) string {
	if len(s) <= detailBytes {
		return s
	}
	return strings.ToValidUTF8(s[:detailBytes], "") + "…"
}
