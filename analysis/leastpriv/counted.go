package leastpriv

import (
	"slices"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/verdict"
)

// What rollups count takes the place of events: it is kept for longer and read sooner, and lacks what only events say. Names are without
// their generated parts, so a role that lists such names has to be compared with events (Unspelled); what the content of writes decides,
// and who acted as somebody who was refused, is read from events too (Untold); and what a cap folded leaves its subject learning.

// Used takes in what is counted of an access, instead of its requests.
func (c *Collector) Used(u *verdict.Use) {
	n := Count{Requests: u.Requests, First: u.First, Last: u.Last, Days: u.Days}
	if u.Check == "" {
		c.usedByRequest(u, n)
		return
	}
	if !u.Told || u.Subject == "" || u.Outcome != verdict.OutcomeMatch && u.Outcome != verdict.OutcomeAmbiguous {
		return
	}
	who, refused := c.subject(u.Subject), u.Recorded == verdict.DecisionForbid
	if needsContent(u.Check) {
		who.writes += n.Requests
		return
	}
	if u.Replayed == verdict.DecisionNone || u.Replayed == verdict.DecisionAllow && !u.Granted {
		return // nothing is known, or another authorizer allowed it
	}
	set := who.groupSet(c, u.Groups)
	k, why := keyOf(set, &u.Attributes), c.strings.Str(reasonOf(&verdict.Implied{Check: u.Check, Attributes: u.Attributes}))
	switch u.Check {
	case verdict.CheckImpersonation:
		if u.Replayed != verdict.DecisionAllow || slices.Contains(u.Groups, kubenames.Masters) {
			return
		}
		if resource := u.Attributes.Resource; resource == "users" || resource == "serviceaccounts" {
			who.requests, who.judged = who.requests+n.Requests, who.judged+n.Requests
		}
		c.add(who.allowed, k, why, n)
	case verdict.CheckCreateOnUpdate:
		if u.Replayed == verdict.DecisionAllow && !refused {
			c.add(who.allowed, k, why, n)
		}
	default:
		c.wait(who, candidate{key: parameterOf(u.Check, k), why: why, at: n.Last, refused: refused,
			held: u.Replayed == verdict.DecisionAllow, covered: u.Covered}, n)
	}
}

func (c *Collector) usedByRequest(u *verdict.Use, n Count) {
	who, counts := c.counted(u.Subject, u.Groups, u.Outcome, u.Class, n)
	switch {
	case who == nil:
	case !counts:
	case !u.Told:
		if u.Recorded == verdict.DecisionAllow {
			who.folded += n.Requests
		}
	case u.Recorded == verdict.DecisionAllow && u.Granted:
		c.add(who.allowed, keyOf(who.groupSet(c, u.Groups), &u.Attributes), "", n)
	case u.Recorded == verdict.DecisionForbid && u.Replayed == verdict.DecisionForbid && u.Outcome == verdict.OutcomeMatch:
		c.add(who.refused, keyOf(who.groupSet(c, u.Groups), &u.Attributes), "", n)
	}
}

// counted counts requests, of a subject as well if there is one. It reports whether their verdict says what was used.
func (c *Collector) counted(subject string, groups []string, outcome verdict.Outcome, class string, n Count) (u *usage, certain bool) {
	if n.Requests <= 0 {
		return nil, false
	}
	c.cover(n.First, n.Last)
	c.requests += n.Requests
	judged := outcome == verdict.OutcomeMatch || outcome == verdict.OutcomeDrift || outcome == verdict.OutcomeAmbiguous
	if judged {
		c.judged += n.Requests
	}
	if outcome != verdict.OutcomeMatch {
		class = strings.TrimSpace(outcome.String() + " " + class)
		c.unjudged[class] += n.Requests
	}
	if subject == "" {
		return nil, false
	}
	u = c.subject(subject)
	u.requests += n.Requests
	u.masters = u.masters || slices.Contains(groups, kubenames.Masters)
	if judged {
		u.judged += n.Requests
	}
	if outcome != verdict.OutcomeMatch {
		u.unjudged[class] += n.Requests
	}
	return u, outcome == verdict.OutcomeMatch || outcome == verdict.OutcomeAmbiguous
}

// Untold takes in what requests needed that Used does not tell: what the content of a write decides, and the right to act as somebody
// who was refused.
func (c *Collector) Untold(e *event.Event, v *verdict.Verdict, n Count) {
	who := e.EffectiveUser()
	if v.Recorded == verdict.DecisionForbid {
		c.impersonation(e, v, n)
		return
	}
	if who.Username == "" {
		return
	}
	u := c.subject(who.Username)
	for i := range v.Implied {
		if check := &v.Implied[i]; needsContent(check.Check) && check.Attributes.Verb != "" {
			u.written += n.Requests
		}
	}
	if allowedByRBAC(v) {
		c.impliedChecks(u, u.groupSet(c, who.Groups), e, v, n, needsContent)
	}
}

// contentUnknown is how many writes lack the content that says what they needed: it was not logged, or the events are past retention.
func (u *usage) contentUnknown() int64 { return u.unreadable + max(u.writes-u.written, 0) }

// Unspelled returns the subjects, sorted, whose accesses have to be read from events: a name or path stands for several, and the policy
// does not allow it as it is spelled.
func (c *Collector) Unspelled(policy *rbacindex.Snapshot) []string {
	var out []string
	for name, u := range c.subjects {
		if u.unspelled(policy) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (u *usage) unspelled(policy *rbacindex.Snapshot) bool {
	var buf [4]rbacindex.Grant
	is := func(k *accessKey) bool {
		if !verdict.Folded(k.name) {
			return verdict.Folded(k.path)
		}
		a := k.attributes(u)
		return !policy.Authorize(&a, buf[:0]).Allowed
	}
	for k := range u.allowed {
		if is(&k) {
			return true
		}
	}
	for _, cand := range u.hidden {
		if cand.held && is(&cand.key) {
			return true
		}
	}
	return false
}

// Take puts what another Collector has of a subject in place of what this one has. Sums over all subjects stay.
func (c *Collector) Take(subject string, from *Collector) {
	if u, ok := from.subjects[subject]; ok {
		c.subjects[subject] = u
	}
}
