package replay

import (
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/implied"
	"github.com/retrial-io/retrial/verdict"
)

// refusedImpersonation evaluates a refusal again as far as the event goes: whom the requestor
// wanted to be is not recorded, the message names the check that failed first. The replica
// answers that check like any other; what it shows of the response is read, like everything
// recorded, after the replica's own decision on the request.
func (t *trial) refusedImpersonation(rec *record) {
	switch rec.class {
	case verdict.ClassImpersonationBad:
		t.v.Impersonation = &verdict.ImpersonationCheck{Replayed: verdict.DecisionForbid}
		t.v.CompleteImpersonation(false)
		constrained := strings.HasPrefix(t.e.ResponseStatus.Message, "requested &user.DefaultInfo{")
		if constrained && !t.constrains() {
			t.v.AddContradiction(authn.ContradictionImpersonatedMode, "constrained impersonation words the refusal, and the apiserver's "+
				"version or feature gates know legacy impersonation alone")
		}
	case verdict.ClassImpersonationDenied:
		if t.uriErr == nil && t.e.User.Username != "" {
			t.v.Impersonation = t.refusal(t.e.ResponseStatus.Message)
			t.v.CompleteImpersonation(false)
		}
	}
}

// refusal answers the check that a refusal names.
func (t *trial) refusal(message string) *verdict.ImpersonationCheck {
	check := &verdict.ImpersonationCheck{}
	r, ok := parseForbidden(message)
	if !ok {
		return check
	}
	a := r.attributes
	on := ""
	switch {
	case a.Verb == verbImpersonate:
		check.Mode = modeLegacy
	case strings.HasPrefix(a.Verb, "impersonate-on:"):
		mode, _, _ := strings.Cut(strings.TrimPrefix(a.Verb, "impersonate-on:"), ":")
		check.Mode = "impersonate:" + mode
		own := t.v.Attributes
		own.Verb = "impersonate-on:" + mode + ":" + own.Verb
		if !sameQuestion(&own, &a) {
			t.contradiction("the refusal names " + verdict.Clip(a.Question()) + ", the request was " +
				verdict.Clip(t.v.Attributes.Question()))
		}
		a = own
	default:
		check.Mode = a.Verb
		on = "impersonate-on:" + strings.TrimPrefix(a.Verb, "impersonate:") + ":" + t.v.Attributes.Verb
	}
	if r.user != t.e.User.Username {
		t.contradiction("the refusal names user " + verdict.Clip(r.user))
	}
	if check.Mode != modeLegacy && !t.constrains() {
		t.v.AddContradiction(authn.ContradictionImpersonatedMode, verdict.Clip(check.Mode)+" is refused, and the apiserver's version or "+
			"feature gates know legacy impersonation alone")
	}
	if on != "" {
		// That the mode came to the pieces of the identity shows that it may act on the request.
		own := t.v.Attributes
		own.Verb = on
		t.shown(&own, verdict.DecisionAllow, "")
	}
	check.Missing = []string{a.Question()}
	if check.Mode != modeLegacy && neverPermitted(r.reason) {
		check.Replayed = verdict.DecisionForbid
		return check
	}
	c := t.shown(&a, verdict.DecisionForbid, r.reason)
	check.Replayed, check.Grants = c.Replayed, c.Grants
	if c.Replayed == verdict.DecisionNone {
		check.Missing = c.Missing
	}
	return check
}

// shown answers a check of the requestor whose answer the response shows, keeps it, and notes a
// contradiction. reason is that of a refusal.
func (t *trial) shown(a *verdict.Attributes, recorded verdict.Decision, reason string) verdict.Implied {
	decision, grants, missing := t.further(&t.base, &t.e.User, a)
	c := verdict.Implied{Check: verdict.CheckImpersonation, Attributes: *a, Replayed: decision, Recorded: recorded, Grants: grants,
		Missing: missing}
	t.v.Implied = append(t.v.Implied, c)
	if decision == verdict.DecisionNone {
		return c
	}
	agrees := func(m *moment) bool {
		ans := m.authorize(&t.e.User, a, t.bufs.other)
		t.bufs.other = keep(t.bufs.other, ans.RBAC.Grants)
		switch {
		case ans.Decision == verdict.DecisionNone || ans.Free():
			return true // it may
		case ans.Decision == verdict.DecisionAllow:
			return recorded == verdict.DecisionAllow
		case ans.Decision == verdict.DecisionForbid:
			return recorded == verdict.DecisionForbid && ans.Gives(reason, t.bufs.reason)
		}
		return recorded == verdict.DecisionForbid // an error, worded by whoever failed
	}
	if agrees(&t.base) {
		return c
	}
	for _, other := range t.impersonationCandidates(a.Verb) {
		if agrees(&other.moment) {
			return c
		}
	}
	why := verdict.CheckImpersonation + ": recorded " + recorded.String() + ", replayed " + decision.String() + " of " +
		verdict.Clip(a.Question())
	if decision == recorded {
		why += ", for another reason than " + strconv.Quote(verdict.Clip(reason))
	}
	t.contradiction(why)
	return c
}

// contradiction notes that a response contradicts the replica's answer to a check.
func (t *trial) contradiction(why string) { t.v.AddContradiction(implied.ContradictionMismatch, why) }

// neverPermitted recognises what constrained impersonation refuses without asking anybody.
func neverPermitted(reason string) bool {
	switch {
	case strings.HasPrefix(reason, "impersonating the system:masters group is not allowed"),
		strings.HasPrefix(reason, "impersonating the empty string "),
		strings.HasPrefix(reason, "impersonating an invalid key in extra is not allowed"),
		strings.HasPrefix(reason, "impersonating a non-lowercase key in extra is not allowed"),
		strings.HasPrefix(reason, "impersonating empty values in extra is not allowed"):
		return true
	}
	return false
}

// sameQuestion compares what a refusal's text holds of a question.
func sameQuestion(a, b *verdict.Attributes) bool {
	return a.Verb == b.Verb && a.ResourceRequest == b.ResourceRequest && a.APIGroup == b.APIGroup && a.Resource == b.Resource &&
		a.Subresource == b.Subresource && a.Namespace == b.Namespace && a.Name == b.Name && a.Path == b.Path
}

// forbidden is the text with which an apiserver refuses what an authorizer does not allow:
//
//	pods "p" is forbidden: User "u" cannot get resource "pods/log" in API group "" in the namespace "n": reason
type forbidden struct {
	user       string
	attributes verdict.Attributes
	reason     string
}

// parseForbidden takes a refusal's text apart; false if it is none, or an ambiguous one.
func parseForbidden(message string) (f forbidden, ok bool) {
	rest, plain := strings.CutPrefix(message, "forbidden: User ")
	if !plain { // there is a resource, and perhaps a name
		if _, rest, ok = strings.Cut(message, " "); !ok {
			return f, false
		}
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return f, false
			}
			if f.attributes.Name, err = strconv.Unquote(quoted); err != nil {
				return f, false
			}
			rest = strings.TrimPrefix(rest[len(quoted):], " ")
		}
		if rest, ok = strings.CutPrefix(rest, "is forbidden: User "); !ok {
			return f, false
		}
	}
	if f.user, rest, ok = quotedPrefix(rest); !ok {
		return f, false
	}
	if rest, ok = strings.CutPrefix(rest, " cannot "); !ok {
		return f, false
	}
	a := &f.attributes
	if a.Verb, rest, ok = strings.Cut(rest, " "); !ok {
		return f, false
	}
	a.Verb = unescapeHTML(a.Verb)
	if path, found := strings.CutPrefix(rest, "path "); found {
		if a.Path, rest, ok = quotedPrefix(path); !ok {
			return f, false
		}
		return f.end(rest)
	}
	a.ResourceRequest = true
	if rest, ok = strings.CutPrefix(rest, "resource "); !ok {
		return f, false
	}
	if a.Resource, rest, ok = quotedPrefix(rest); !ok {
		return f, false
	}
	a.Resource, a.Subresource, _ = strings.Cut(a.Resource, "/")
	if rest, ok = strings.CutPrefix(rest, " in API group "); !ok {
		return f, false
	}
	if a.APIGroup, rest, ok = quotedPrefix(rest); !ok {
		return f, false
	}
	if scope, found := strings.CutPrefix(rest, " at the cluster scope"); found {
		return f.end(scope)
	}
	if rest, ok = strings.CutPrefix(rest, " in the namespace "); !ok {
		return f, false
	}
	if a.Namespace, rest, ok = quotedPrefix(rest); !ok {
		return f, false
	}
	return f.end(rest)
}

// end takes the reason.
func (f forbidden) end(rest string) (forbidden, bool) {
	if rest == "" {
		return f, true
	}
	var ok bool
	f.reason, ok = strings.CutPrefix(rest, ": ")
	return f, ok
}

// quotedPrefix reads a quoted string, which the apiserver made safe for HTML.
func quotedPrefix(s string) (text, rest string, ok bool) {
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", "", false
	}
	text, err = strconv.Unquote(unescapeHTML(quoted))
	return text, s[len(quoted):], err == nil
}

func unescapeHTML(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	return strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(s)
}
