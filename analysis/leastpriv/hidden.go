package leastpriv

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/replay/implied"
	"github.com/retrial-io/retrial/verdict"
)

// Checks the apiserver makes behind the authorization filter leave no event of their own. The
// verdict names and answers them (replay/implied); here they are counted. Those that a subject may
// pass in more than one way are kept as candidates until the state is complete, because only then
// are all alternative rules known.

// API groups whose objects decide who may do what.
const (
	groupRBAC         = "rbac.authorization.k8s.io"
	groupCertificates = "certificates.k8s.io"
	groupAuthn        = "authentication.k8s.io"
)

// candidate is a hidden check, answered.
type candidate struct {
	key     accessKey // the check
	why     string
	count   int64
	first   time.Time // of the first request
	at      time.Time // of the latest
	days    days
	refused bool
	held    bool // the replica grants it, one way or another
	covered bool // at the latest request the subject held the rules
	// rules are what the check on a role's write accepts instead: that the writer holds them. The
	// check on a binding's write accepts those of the role that the binding names.
	rules []rbacv1.PolicyRule
}

// impliedChecks counts the checks, of those wanted, that an allowed request implied for its subject.
func (c *Collector) impliedChecks(u *usage, groups int, e *event.Event, v *verdict.Verdict, n Count, wanted func(check string) bool) {
	code := e.Code()
	done := code == 0 || code < 300
	for i := range v.Implied {
		check := &v.Implied[i]
		refused := check.Recorded == verdict.DecisionForbid
		switch {
		case check.ByRequestor() || !wanted(check.Check):
			continue
		case check.Replayed == verdict.DecisionNone && done && needsContent(check.Check):
			u.unreadable += n.Requests
			continue
		case check.Replayed == verdict.DecisionNone, !done && !refused && check.Check != verdict.CheckWebsocket:
			continue
		}
		k := keyOf(groups, &check.Attributes)
		why := c.strings.Str(reasonOf(check))
		switch check.Check {
		case verdict.CheckCreateOnUpdate:
			if check.Replayed == verdict.DecisionAllow && !refused {
				c.add(u.allowed, k, why, n)
			}
			continue
		case verdict.CheckSignerApprove, verdict.CheckSignerSign, verdict.CheckSignerAttest:
			k.name = implied.SignerOf(check, e, &v.Attributes)
		}
		c.wait(u, candidate{key: parameterOf(check.Check, k), why: why, at: n.Last, refused: refused,
			held: check.Replayed == verdict.DecisionAllow, covered: check.Covered, rules: check.Wanted}, n)
	}
}

// parameterOf returns what a check of an admission policy's parameters asks for: all objects of all namespaces are written as none.
func parameterOf(check string, k accessKey) accessKey {
	if check == verdict.CheckPolicyParam && k.namespace == "*" {
		k.namespace, k.name = "", ""
	}
	return k
}

// needsContent reports whether a check cannot be derived without the content of the request.
func needsContent(check string) bool {
	return slices.Contains([]string{verdict.CheckRoleEscalate, verdict.CheckRoleBind, verdict.CheckSignerApprove, verdict.CheckSignerSign,
		verdict.CheckSignerAttest}, check)
}

// reasonOf describes why a check was made.
func reasonOf(check *verdict.Implied) string {
	switch check.Check {
	case verdict.CheckWebsocket:
		return "a websocket to pods/" + check.Attributes.Subresource + " needs create"
	case verdict.CheckCreateOnUpdate:
		return "an update or patch that created the object needs create"
	case verdict.CheckRoleEscalate:
		return "writing a role needs its rules, or escalate"
	case verdict.CheckRoleBind:
		return "writing a binding needs bind on its role, or the role's rules"
	case verdict.CheckSignerApprove, verdict.CheckSignerSign, verdict.CheckSignerAttest:
		return check.Attributes.Verb + " on the signer"
	case verdict.CheckPolicyParam:
		return "an admission policy's parameters have to be readable"
	case verdict.CheckImpersonation:
		return "impersonation of " + check.Attributes.Name
	}
	return "a check behind the request: " + check.Check
}

// wait stores a candidate, once for the same check on the same content.
func (c *Collector) wait(u *usage, cand candidate, n Count) {
	rules, err := json.Marshal(cand.rules)
	if err != nil {
		u.unreadable += n.Requests // strings alone: cannot fail, and would be reported as a gap
		return
	}
	k := cand.key
	id := strings.Join([]string{k.verb, k.namespace, k.group, k.res, k.subresource, k.name, string(rules),
		map[bool]string{true: "refused"}[cand.refused], strings.Join(u.groups[k.groups], "\x01")}, "\x00")
	have, ok := u.hidden[id]
	if !ok {
		for _, s := range []*string{&cand.key.verb, &cand.key.namespace, &cand.key.group, &cand.key.res, &cand.key.subresource,
			&cand.key.name} {
			*s = c.strings.Str(*s)
		}
		have = &cand
		u.hidden[id] = have
	}
	have.count += n.Requests
	have.days = have.days.with(&n)
	if have.first.IsZero() || n.First.Before(have.first) {
		have.first = n.First
	}
	if !cand.at.Before(have.at) {
		have.at, have.covered = cand.at, cand.covered
	}
	// A check that was granted once is needed; a refusal counts if the replica refuses too.
	have.held = have.held && cand.held || !have.refused && (have.held || cand.held)
}

// impersonation counts what the requestor had to be allowed to act as another.
func (c *Collector) impersonation(e *event.Event, v *verdict.Verdict, n Count) {
	if e.ImpersonatedUser == nil || v.Impersonation == nil || v.Impersonation.Replayed != verdict.DecisionAllow ||
		len(v.Impersonation.Grants) == 0 || slices.Contains(e.User.Groups, kubenames.Masters) {
		return
	}
	u := c.subject(e.User.Username)
	u.requests += n.Requests
	u.judged += n.Requests
	set := u.groupSet(c, e.User.Groups)
	for i := range v.Implied {
		if check := &v.Implied[i]; check.ByRequestor() && check.Replayed == verdict.DecisionAllow {
			c.add(u.allowed, keyOf(set, &check.Attributes), c.strings.Str(reasonOf(check)), n)
		}
	}
}
