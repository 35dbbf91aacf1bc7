// Package drift sorts the verdicts that are not a match into groups with one cause each, and
// says for each what probably lies behind it and what to give Retrial to settle it.
//
//	verdicts ──Observe──▶ Collector ──Groups──▶ counts, examples, likely causes, remedies
//
// It explains what the replica could not; it changes no verdict. The package is pure.
package drift

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/reason"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

const (
	// maxExamples bounds the examples of a group.
	maxExamples = 3
	// maxGroups bounds the groups of a collector: names in causes are the clients' to choose.
	// What does not fit is counted under its class alone.
	maxGroups = 10_000
	// maxUsers bounds the users a group counts exactly.
	maxUsers = 1000
)

// Sample is one request whose verdict is not a match, or many alike.
type Sample struct {
	Cluster, Server string // server as its endpoint names it, often ""
	Outcome         verdict.Outcome
	Class, Cause    string
	Missing         []string
	Recorded        verdict.Decision
	RecordedReason  string
	Replayed        verdict.Decision
	Code            int32 // of the response, 0 if not recorded
	Config          string
	User, Verb, URI string // of a request; "": none of those alike is known
	AuditID         string
	At              time.Time
	// Of many alike: the time of the latest (zero: At) and the number of users (0: one).
	Last  time.Time
	Users int
}

// Example is one request of a group.
type Example struct {
	AuditID string    `json:"auditID"`
	At      time.Time `json:"at"`
	Subject string    `json:"subject"`
	User    string    `json:"user"` // the subject; the name will be removed in the next release
	Verb    string    `json:"verb"`
	URI     string    `json:"requestURI"`
	Cause   string    `json:"cause"`
}

// Group is what drifts for one reason.
type Group struct {
	Cluster string `json:"cluster"`
	Server  string `json:"apiserver,omitempty"`
	Outcome string `json:"outcome"`
	Verdict string `json:"verdict"` // the outcome; the name will be removed in the next release
	Class   string `json:"class"`
	Text    string `json:"text"` // the class in one line
	// About is the object, or what is missing, that the requests have in common; "" if they
	// share the class alone.
	About    string    `json:"about,omitempty"`
	Count    int64     `json:"count"`
	Users    int       `json:"users"` // distinct, at most 1000
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Examples []Example `json:"examples"` // the earliest
	Likely   []Cause   `json:"likely"`   // most likely first
}

// Collector groups samples. The zero value is ready to use; it is not safe for concurrent
// use. What it returns does not depend on the order of the samples, as long as they fit its
// bounds.
type Collector struct {
	groups map[groupKey]*group
}

type groupKey struct {
	cluster, server, class, about string
	outcome                       verdict.Outcome
}

type group struct {
	Group
	users map[string]struct{}
	least int // users, as the largest sample says
	kinds map[string]Cause
}

// Add counts n requests like the sample.
func (c *Collector) Add(s *Sample, n int64) {
	if c.groups == nil {
		c.groups = map[groupKey]*group{}
	}
	likely := causes(s)
	k := groupKey{s.Cluster, s.Server, s.Class, about(s), s.Outcome}
	g := c.groups[k]
	if g == nil && len(c.groups) >= maxGroups {
		k.about = ""
		g = c.groups[k]
	}
	if g == nil {
		g = &group{
			Group: Group{Cluster: s.Cluster, Server: s.Server, Outcome: s.Outcome.String(), Verdict: s.Outcome.String(), Class: s.Class,
				Text: verdict.Explain(s.Class), About: k.about, First: s.At, Last: s.At},
			users: map[string]struct{}{}, kinds: map[string]Cause{},
		}
		c.groups[k] = g
	}
	g.Count += n
	if len(g.users) < maxUsers && s.URI != "" {
		g.users[s.User] = struct{}{}
	}
	if s.At.Before(g.First) {
		g.First = s.At
	}
	last := s.Last
	if last.IsZero() {
		last = s.At
	}
	if last.After(g.Last) {
		g.Last = last
	}
	g.least = max(g.least, s.Users)
	for _, l := range likely {
		g.kinds[l.Kind] = l
	}
	if s.URI != "" {
		g.example(s)
	}
}

// example keeps the earliest requests, by time and then audit ID.
func (g *group) example(s *Sample) {
	x := Example{s.AuditID, s.At, s.User, s.User, s.Verb, s.URI, s.Cause}
	i, _ := slices.BinarySearchFunc(g.Examples, x, func(a, b Example) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.AuditID, b.AuditID))
	})
	if i == maxExamples {
		return
	}
	g.Examples = slices.Insert(g.Examples, i, x)
	if len(g.Examples) > maxExamples {
		g.Examples = g.Examples[:maxExamples]
	}
}

// Groups returns the groups: drift first, then indeterminate, then ambiguous, the largest of
// each first.
func (c *Collector) Groups() []Group {
	out := make([]Group, 0, len(c.groups))
	for _, g := range c.groups {
		g.Users = max(len(g.users), g.least)
		g.Likely = g.Likely[:0]
		for _, l := range g.kinds {
			g.Likely = append(g.Likely, l)
		}
		slices.SortFunc(g.Likely, func(a, b Cause) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
		out = append(out, g.Group)
	}
	order := map[string]int{verdict.OutcomeDrift.String(): 0, verdict.OutcomeIndeterminate.String(): 1,
		verdict.OutcomeAmbiguous.String(): 2}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(order[a.Outcome], order[b.Outcome]), -cmp.Compare(a.Count, b.Count),
			strings.Compare(a.Cluster, b.Cluster),
			strings.Compare(a.Server, b.Server), strings.Compare(a.Class, b.Class), strings.Compare(a.About, b.About))
	})
	return out
}

// about names what a sample has in common with others of its class.
func about(s *Sample) string {
	if s.Outcome == verdict.OutcomeIndeterminate && len(s.Missing) > 0 {
		return s.Missing[0]
	}
	if g, ok := reason.Names(s.RecordedReason); ok {
		return g
	}
	if a, err := request.Of(s.Verb, s.URI); err == nil && a.ResourceRequest {
		what := a.Resource
		if a.Subresource != "" {
			what += "/" + a.Subresource
		}
		return a.Verb + " " + what
	}
	return ""
}
