package escalation_test

import (
	"slices"
	"testing"

	"github.com/retrial-io/retrial/analysis/escalation"
)

// valid checks that a path is what it says: each step begins where the one before ended, and
// every request has grants of the policy that are to who makes it, or is given by a role that
// an earlier step of the path bound or rewrote.
func valid(t *testing.T, p *escalation.Path) {
	t.Helper()
	at := p.From
	var gained []escalation.RoleAt
	fresh := false
	check := func(who escalation.Node, r *escalation.Request) {
		for _, g := range r.Grants {
			named := g.Subject()
			if g.SubjectKind() == "ServiceAccount" {
				named = "system:serviceaccount:" + g.SubjectNamespace() + ":" + named
			}
			if g.SubjectKind() == "Group" && !slices.Contains(r.Attributes.Groups, named) || g.SubjectKind() != "Group" &&
				r.Attributes.User != named {
				t.Errorf("%s: a grant to %s %s for a request of %s in %q", line(p), g.SubjectKind(), named, r.Attributes.User,
					r.Attributes.Groups)
			}
		}
		if len(r.Grants) > 0 {
			return
		}
		if r.Role == nil {
			t.Errorf("%s: nothing grants %+v to %s", line(p), r.Attributes, who)
			return
		}
		ok := fresh && r.Role.Name == ""
		for _, g := range gained {
			ok = ok || g.Role == *r.Role && (g.Namespace == "" || g.Namespace == r.Attributes.Namespace)
		}
		if !ok {
			t.Errorf("%s: %s was bound by no step", line(p), r.Role)
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if at.Kind == escalation.Bound {
			at.Kind = s.From.Kind
		}
		if at != s.From {
			t.Errorf("%s: step %d begins at %s", line(p), i, s.From)
		}
		if len(s.Requests) == 0 {
			t.Errorf("%s: step %d takes nothing", line(p), i)
		}
		// A role that a step binds may be what lets it bind the next.
		gained = append(gained, s.Roles...)
		for j := range s.Requests {
			check(s.From, &s.Requests[j])
		}
		fresh = fresh || s.Edge == escalation.Escalate && len(s.Roles) == 0
		at = s.To
	}
	for i := range p.Holds {
		check(at, &p.Holds[i])
	}
}
