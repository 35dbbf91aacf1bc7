package replay

import (
	"slices"
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/implied"
	"github.com/retrial-io/retrial/replay/reason"
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
		switch ans := t.ask(m, &t.e.User, a); {
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
	return slices.ContainsFunc([]string{
		"impersonating the system:masters group is not allowed", "impersonating the empty string ",
		"impersonating an invalid key in extra is not allowed", "impersonating a non-lowercase key in extra is not allowed",
		"impersonating empty values in extra is not allowed",
	}, func(text string) bool { return strings.HasPrefix(reason, text) })
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
	a := &f.attributes
	w := reason.Words{Rest: message}
	if !w.Has("forbidden: User ") { // there is a resource, and perhaps a name
		w.To(" ")
		if strings.HasPrefix(w.Rest, `"`) {
			a.Name = w.Quoted(strconv.Unquote)
			w.Has(" ")
		}
		w.Take("is forbidden: User ")
	}
	f.user = w.Quoted(unquoteHTML)
	w.Take(" cannot ")
	a.Verb = unescapeHTML(w.To(" "))
	if w.Has("path ") {
		a.Path = w.Quoted(unquoteHTML)
	} else {
		a.ResourceRequest = true
		w.Take("resource ")
		a.Resource, a.Subresource, _ = strings.Cut(w.Quoted(unquoteHTML), "/")
		w.Take(" in API group ")
		a.APIGroup = w.Quoted(unquoteHTML)
		if !w.Has(" at the cluster scope") {
			w.Take(" in the namespace ")
			a.Namespace = w.Quoted(unquoteHTML)
		}
	}
	if w.Rest != "" {
		w.Take(": ")
	}
	f.reason = w.Rest
	return f, !w.Failed
}

// unquoteHTML unquotes what the apiserver made safe for HTML.
func unquoteHTML(quoted string) (string, error) { return strconv.Unquote(unescapeHTML(quoted)) }

func unescapeHTML(s string) string {
	return strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(s)
}
