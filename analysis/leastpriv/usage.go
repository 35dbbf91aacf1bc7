package leastpriv

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/verdict"
)

// Collector takes in verdicts and keeps, for every subject, the distinct requests RBAC
// decided. Its memory grows with distinct requests, not with events. It is not safe for
// concurrent use.
type Collector struct {
	subjects map[string]*usage
	strings  content.Interner
	from, to time.Time

	requests, judged int64
	unjudged         map[string]int64 // by outcome and class
}

// NewCollector returns an empty Collector.
func NewCollector() *Collector {
	return &Collector{subjects: map[string]*usage{}, unjudged: map[string]int64{}}
}

// usage is what one subject did.
type usage struct {
	user      string
	groups    [][]string // distinct sets, sorted
	groupSets map[string]int

	masters          bool // seen in system:masters
	requests, judged int64
	unjudged         map[string]int64 // by class

	allowed, refused map[accessKey]*access
	hidden           map[string]*candidate
	unreadable       int64 // policy writes whose content the log does not hold
	writes, written  int64 // checks of such writes that are counted, and those whose content was read
	folded           int64 // requests that a cap left untold
}

// accessKey is one distinct access check of RBAC: a subject with one of its group sets, and
// attributes.
type accessKey struct {
	groups                                               int
	resource                                             bool
	verb, namespace, group, res, subresource, name, path string
}

type access struct {
	count       int64
	first, last time.Time
	days        days
	why         string // the hidden check it comes from, "" for the request itself
}

func keyOf(groups int, a *verdict.Attributes) accessKey {
	if !a.ResourceRequest {
		return accessKey{groups: groups, verb: a.Verb, path: a.Path}
	}
	return accessKey{groups: groups, resource: true, verb: a.Verb, namespace: a.Namespace, group: a.APIGroup,
		res: a.Resource, subresource: a.Subresource, name: a.Name}
}

// attributes returns the check in the form the index takes.
func (k *accessKey) attributes(u *usage) rbacindex.Attributes {
	return rbacindex.Attributes{
		User: u.user, Groups: u.groups[k.groups], Verb: k.verb, Namespace: k.namespace, APIGroup: k.group,
		Resource: k.res, Subresource: k.subresource, Name: k.name, ResourceRequest: k.resource, Path: k.path,
	}
}

// Observe takes in one request and its verdict. Nothing of them is kept.
//
// What counts as used is what RBAC allowed in the record and in the replica alike (match,
// or ambiguous with the record on the allowing side): a forged or unexplained allow must
// not become a grant.
func (c *Collector) Observe(e *event.Event, v *verdict.Verdict) {
	c.ObserveMany(e, v, Count{Requests: 1, First: e.RequestReceivedTimestamp, Last: e.RequestReceivedTimestamp})
}

// Count says how many requests were alike, and when they were received.
type Count struct {
	Requests    int64
	First, Last time.Time
	Days        []uint16 // on which there were any, in days since 1970 (UTC); nil: those of First and Last
}

// ObserveMany takes in requests that are alike: one of them as the representative, and their count.
// Requests are alike if they have equal requestor, subject, groups, attributes, decisions, outcome
// and class, and, if a hidden check depends on it, equal response code and content; the result is
// that of Observe with each.
func (c *Collector) ObserveMany(e *event.Event, v *verdict.Verdict, n Count) {
	who := e.EffectiveUser()
	u, certain := c.counted(who.Username, who.Groups, v.Outcome, v.Class, n)
	if !certain {
		return
	}
	switch {
	case allowedByRBAC(v):
		set := u.groupSet(c, who.Groups)
		c.add(u.allowed, keyOf(set, &v.Attributes), "", n)
		c.impliedChecks(u, set, e, v, n, func(string) bool { return true })
	case v.Recorded == verdict.DecisionForbid && v.Replayed == verdict.DecisionForbid && v.Outcome == verdict.OutcomeMatch:
		c.add(u.refused, keyOf(u.groupSet(c, who.Groups), &v.Attributes), "", n)
	}
	c.impersonation(e, v, n)
}

// allowedByRBAC reports whether RBAC allowed a request, in the record and in the replica alike or, where that is ambiguous, in the record.
func allowedByRBAC(v *verdict.Verdict) bool {
	return v.Recorded == verdict.DecisionAllow && (v.Replayed == verdict.DecisionAllow && v.Authorizer == verdict.AuthorizerRBAC ||
		v.Outcome == verdict.OutcomeAmbiguous && v.RecordedByRBAC())
}

// cover widens the window. Zero times are ignored.
func (c *Collector) cover(first, last time.Time) {
	if !first.IsZero() && (c.from.IsZero() || first.Before(c.from)) {
		c.from = first
	}
	if last.After(c.to) {
		c.to = last
	}
}

// subject returns the usage of a user name.
func (c *Collector) subject(user string) *usage {
	u, ok := c.subjects[user]
	if !ok {
		user = c.strings.Str(user)
		u = &usage{user: user, groupSets: map[string]int{}, unjudged: map[string]int64{},
			allowed: map[accessKey]*access{}, refused: map[accessKey]*access{}, hidden: map[string]*candidate{}}
		c.subjects[user] = u
	}
	return u
}

// groupSet returns the number of a set of groups, regardless of the order and number of times each
// was recorded.
func (u *usage) groupSet(c *Collector, groups []string) int {
	sorted := slices.Clone(groups)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	key := strings.Join(sorted, "\x00")
	if i, ok := u.groupSets[key]; ok {
		return i
	}
	for i := range sorted {
		sorted[i] = c.strings.Str(sorted[i])
	}
	i := len(u.groups)
	u.groups = append(u.groups, sorted)
	u.groupSets[key] = i
	return i
}

// add counts a check. Its strings alias an event's buffer and are copied once. Of several reasons
// the first in order is kept, so that the order of events does not matter.
func (c *Collector) add(into map[accessKey]*access, k accessKey, why string, n Count) {
	a, ok := into[k]
	if ok {
		a.why = min(a.why, why)
	} else {
		a = &access{why: why}
		for _, s := range []*string{&k.verb, &k.namespace, &k.group, &k.res, &k.subresource, &k.name, &k.path} {
			*s = c.strings.Str(*s)
		}
		into[k] = a
	}
	a.count += n.Requests
	a.days = a.days.with(&n)
	if a.first.IsZero() || n.First.Before(a.first) {
		a.first = n.First
	}
	if n.Last.After(a.last) {
		a.last = n.Last
	}
}

// Subjects returns the names of all subjects about which RBAC decided anything, sorted.
func (c *Collector) Subjects() []string {
	var out []string
	for name, u := range c.subjects {
		if len(u.allowed)+len(u.refused) > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Seen reports whether a subject made any request.
func (c *Collector) Seen(subject string) bool {
	_, ok := c.subjects[subject]
	return ok
}

// System reports whether a subject belongs to Kubernetes itself, by its name or because it came as a member
// of system:masters, about whom RBAC does not decide. Taking rights from one based on one window breaks
// clusters.
func (c *Collector) System(subject string) bool {
	u, ok := c.subjects[subject]
	return kubenames.Own(subject) || ok && u.masters
}

func compareKeys(a, b accessKey) int {
	return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.namespace, b.namespace), strings.Compare(a.group, b.group),
		strings.Compare(a.res, b.res), strings.Compare(a.subresource, b.subresource), strings.Compare(a.verb, b.verb),
		strings.Compare(a.name, b.name), a.groups-b.groups)
}
