package query

import (
	"errors"
	"slices"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/query/known"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
)

// targets reports whether a group, a role or a binding is asked about.
func (r *SuggestRequest) targets() bool { return r.Group+r.Role+r.Binding != "" }

// checkTarget returns an error unless a request is about one thing.
func (r *SuggestRequest) checkTarget() error {
	asked := []bool{r.All, len(r.Subjects) > 0, r.Group != "", r.Role != "", r.Binding != "", r.Namespace != ""}
	switch {
	case len(slices.DeleteFunc(asked, func(is bool) bool { return !is })) != 1:
		return Bad("name a subject, a namespace, a group, a role or a binding, or pass all=true: one of them")
	case r.targets() && (r.Strict || r.Wildcards == "verbs"):
		return Bad("roles of a subject's own (strict) are not for a group, a role or a binding")
	case r.targets() && r.Backtest:
		return Bad("a back-test is of subjects, not of a group, a role or a binding")
	}
	return nil
}

// read returns whose requests have to be read, nil for everybody's.
func (r *SuggestRequest) read() []string {
	if slices.ContainsFunc(r.Subjects, known.IsPattern) {
		return nil
	}
	return r.Subjects
}

// names returns the subjects that are named; none if all are asked about.
func (r *SuggestRequest) names(c *leastpriv.Collector, a *leastpriv.Advisor, policy *rbacindex.Snapshot) ([]string, error) {
	if r.All {
		return nil, nil
	}
	everybody := c.Subjects()
	if r.Unseen {
		for _, u := range a.Unseen() {
			everybody = append(everybody, u.Subject)
		}
	}
	var out []string
	system := 0
	add := func(is func(string) bool) (found bool) {
		for _, name := range everybody {
			switch {
			case !is(name):
			case c.System(name) && !r.System:
				system++
			default:
				out, found = append(out, name), true
			}
		}
		return found
	}
	if r.Namespace != "" {
		is := known.Matching(r.Namespace)
		if !add(func(name string) bool {
			namespace, _, account := authn.ServiceAccountUsername(name)
			return account && is(namespace)
		}) && system == 0 {
			return nil, none("no request of a service account in a namespace %q was decided by RBAC%s", r.Namespace,
				didYouMean(quoted(Nearest(r.Namespace, known.Namespaces(append(everybody, known.Users(policy)...)), mostNear))))
		}
	}
	for _, name := range r.Subjects {
		switch {
		case !known.IsPattern(name) || slices.Contains(everybody, name):
			out = append(out, name)
		case !add(known.Matching(name)) && system == 0:
			return nil, none("no subject of whom RBAC decided anything is called like %q", name)
		}
	}
	if len(out) == 0 && system > 0 {
		return nil, Bad("all %d that match belong to Kubernetes itself; taking rights from them can break the cluster: "+
			"add --include-system (includeSystem=true) if that is meant", system)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// suggestFor makes the suggestion for a group, a role or a binding.
func (a *SuggestAnswer) suggestFor(advisor *leastpriv.Advisor, r *SuggestRequest, policy *rbacindex.Snapshot) error {
	target := leastpriv.Target{Group: r.Group}
	if r.Group == "" {
		var err error
		if target.Object, err = objectOf(policy, r.Role+r.Binding, r.Role == ""); err != nil {
			return err
		}
	}
	if name := target.Group + target.Object.Name; kubenames.Own(name) && !r.System {
		return Bad("%q belongs to Kubernetes itself; taking rights from it can break the cluster: add --include-system "+
			"(includeSystem=true) if that is meant", name)
	}
	one, plan, err := advisor.SuggestFor(target)
	switch {
	case errors.Is(err, leastpriv.ErrUnbound) && r.Group != "":
		text, _ := known.Unbound(r.Group, false, policy)
		return none("%s", text)
	case errors.Is(err, leastpriv.ErrUnbound):
		return none("no binding is of %s: it gives nobody anything, and may be deleted", target.Object)
	case err != nil:
		return err //nolint:wrapcheck // it says what failed
	}
	if a.Plan = plan; one.Maturity.Learned || !r.Learned {
		a.Suggestions = append(a.Suggestions, one)
	} else {
		plan.Counted()
		plan.Proofs = []leastpriv.Proof{}
	}
	a.Texts, err = a.texts()
	return err
}

// objectOf returns the role or the binding that a text names.
func objectOf(policy *rbacindex.Snapshot, text string, bindings bool) (rbacindex.Key, error) {
	found, meant := known.Named(policy, text, bindings)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return rbacindex.Key{}, none("no %s is called %q%s", map[bool]string{false: "role", true: "binding"}[bindings], text,
			didYouMean(quoted(meant)))
	}
	return rbacindex.Key{}, Bad("several are called %q: name one as %s", text, known.Few(found))
}
