// Package lineage follows credentials across events and finds what no single event shows: a token with two identities or in two places
// at once, an audit ID that was used again, bursts of refused credentials, and requests that reached an aggregated API server past the
// kube-apiserver. [Trail] follows credentials from their issue through every use, [Twins] joins the two events of a request through an
// aggregated server.
//
// The package is pure: no I/O, no clock, no logging. What it remembers is bounded.
package lineage

import (
	"slices"
	"time"

	"github.com/retrial-io/retrial/replay/authn"
)

// Lineage is the observed life of one credential.
type Lineage struct {
	Credential string `json:"credential"`
	// Issue is nil if the log does not show it: certificates, tokens of providers, and what
	// was issued before the log began.
	Issue *Issue `json:"issue,omitempty"`
	// Users are the names it authenticated; more than one only if something is wrong.
	Users []string `json:"users"`
	// Uses are distinguished by client, address, pod and node, and ordered by their first time.
	Uses []Use `json:"uses"`
	// More counts uses that are in no entry of Uses, because there are too many.
	More           int64                 `json:"more,omitempty"`
	First          time.Time             `json:"first"`
	Last           time.Time             `json:"last"`
	Count          int64                 `json:"count"`
	Contradictions []authn.Contradiction `json:"contradictions,omitempty"`
}

// Issue is the request a token was issued by.
type Issue struct {
	At             time.Time `json:"at"`
	Namespace      string    `json:"namespace"`
	ServiceAccount string    `json:"serviceAccount"`
	By             string    `json:"by"`
	UserAgent      string    `json:"userAgent"`
	SourceIP       string    `json:"sourceIP"`
	AuditID        string    `json:"auditID"`
}

// Use is a client that came with a credential.
type Use struct {
	UserAgent string    `json:"userAgent"`
	SourceIP  string    `json:"sourceIP"`
	Pod       string    `json:"pod,omitempty"` // the pod it is bound to, as the credential says
	PodUID    string    `json:"podUID,omitempty"`
	Node      string    `json:"node,omitempty"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	Count     int64     `json:"count"`
}

// Lineage returns the life of a credential, by its id; ok is false if it was not seen, or is
// forgotten.
func (t *Trail) Lineage(credential string) (l Lineage, ok bool) {
	c, ok := t.credentials.peek(credential)
	if !ok {
		return Lineage{}, false
	}
	return t.lineage(credential, c), true
}

func (t *Trail) lineage(id string, c *trace) Lineage {
	l := Lineage{Credential: id, Issue: c.issue, Users: []string{}, Uses: slices.Clone(c.uses), More: c.more, Count: c.count(),
		Contradictions: t.byID[id]}
	for i := range c.identities {
		if !slices.Contains(l.Users, c.identities[i].name) {
			l.Users = append(l.Users, c.identities[i].name)
		}
	}
	slices.SortFunc(l.Uses, func(a, b Use) int { return a.First.Compare(b.First) })
	l.First, l.Last = c.span()
	return l
}

// span is from the issue, or the first use, to the last use.
func (c *trace) span() (first, last time.Time) {
	if c.issue != nil {
		first, last = c.issue.At, c.issue.At
	}
	for i := range c.identities {
		k := &c.identities[i]
		if first.IsZero() {
			first, last = k.first, k.last
			continue
		}
		first, last = earlier(first, k.first), later(last, k.last)
	}
	return first, last
}

func (c *trace) count() int64 {
	n := c.more
	for i := range c.uses {
		n += c.uses[i].Count
	}
	return n
}
