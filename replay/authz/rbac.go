package authz

import (
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/reason"
	"github.com/retrial-io/retrial/verdict"
)

// rbac is the RBAC authorizer, answered by the index of the policy at that moment.
type rbac struct {
	super string // the super user of earliest versions
}

func newRBAC(z *config.Authorizer, _ *config.APIServer) registered {
	return registered{authorizer: &rbac{z.SuperUser}}
}

// tooCostly is what is missing when there is more policy than an event is given work for.
const tooCostly = "what the subject's roles and bindings allow: too large to check"

// noObjects is what is missing when there is no state at all.
const noObjects = "the cluster's roles and bindings"

func (x *rbac) ask(ans *Answer, u *event.User, a *verdict.Attributes, m *Moment) stepState {
	if x.super != "" && u.Username == x.super {
		return allowed
	}
	if m.View == nil {
		ans.lack(LackState)
		return unknown
	}
	put(&m.query, u, a)
	m.query.Steps = m.Steps
	ans.RBAC = m.View.RBAC.Authorize(&m.query, m.grants)
	if ans.RBAC.Allowed {
		return allowed
	}
	if ans.RBAC.TooCostly {
		ans.lack(LackTime)
		return unknown
	}
	// RBAC only adds: what is known does not allow it, but something unknown could.
	if ans.unseen = couldAllow(m.View, &m.query, &ans.RBAC); len(ans.unseen) == 0 {
		return noOpinion
	}
	ans.lack(LackObject)
	if len(m.View.UnknownKinds) > 0 {
		ans.lack(LackState)
	}
	return unknown
}

func (*rbac) silence(ans Answer) string { return ans.RBAC.Reason() }

func (*rbac) missing(ans Answer) string {
	switch {
	case ans.RBAC.TooCostly:
		return tooCostly
	case len(ans.unseen) == 0:
		return noObjects
	}
	return ans.unseen[0]
}

func (x *rbac) explain(s *Shortfall, ans Answer, u *event.User, a *verdict.Attributes, m *Moment, limit int) {
	s.Text = "no binding grants it"
	if text := ans.RBAC.Reason(); text != "" {
		s.Text += " (" + text + ")"
	}
	if s.Answer == verdict.AnswerUnknown {
		s.Text = "not known: " + x.missing(ans)
		if len(ans.unseen) > 0 {
			s.Text = "not known: " + strings.Join(ans.unseen, ", ")
		}
	}
	if m.View != nil {
		var query rbacindex.Attributes
		put(&query, u, a)
		miss := m.View.RBAC.NearestMiss(&query, limit)
		s.RBAC = &miss
	}
}

// put writes what RBAC is asked, with unbounded work.
func put(query *rbacindex.Attributes, u *event.User, a *verdict.Attributes) {
	*query = rbacindex.Attributes{
		User: u.Username, Groups: u.Groups, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup, Resource: a.Resource,
		Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path,
	}
}

// takeErrors takes the errors of RBAC's refusal from a text: they come in any order.
func takeErrors(w *reason.Words, errs []string) {
	w.Take("RBAC: ")
	n := errorsLen(errs)
	if len(w.Rest) < n || !sameErrors(w.Rest[:n], errs) {
		w.Failed = true
		return
	}
	w.Rest = w.Rest[n:]
}

// errorsLen returns the length of the text behind "RBAC: " for these errors.
func errorsLen(errs []string) int {
	if len(errs) == 1 {
		return len(errs[0])
	}
	n := len("[]") + len(", ")*(len(errs)-1)
	for _, e := range errs {
		n += len(e)
	}
	return n
}

// sameErrors reports whether the text behind "RBAC: " of a recorded refusal is these errors
// in any order: one as it is, several as "[a, b]".
func sameErrors(text string, errs []string) bool {
	if len(errs) == 1 {
		return text == errs[0]
	}
	if len(errs) == 0 || len(text) != errorsLen(errs) || text[0] != '[' || text[len(text)-1] != ']' {
		return false
	}
	text = text[1 : len(text)-1]
	used := make([]bool, len(errs))
	for n := range errs {
		best := -1
		for i, e := range errs {
			if !used[i] && strings.HasPrefix(text, e) && (best < 0 || len(e) > len(errs[best])) {
				rest := text[len(e):]
				if rest == "" || strings.HasPrefix(rest, ", ") {
					best = i
				}
			}
		}
		if best < 0 {
			return false
		}
		used[best] = true
		text = text[len(errs[best]):]
		if n < len(errs)-1 {
			text = text[len(", "):]
		}
	}
	return text == ""
}

// rbac reports whether the link is RBAC, whose grants are listed and whose errors are worded in
// any order.
func (l *link) rbac() bool {
	_, ok := l.authorizer.(*rbac)
	return ok
}
