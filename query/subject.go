package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// MostUses bounds the lists of an answer about a subject.
const MostUses = 1000

// Doings says what a subject did, could do and never did.
type Doings struct {
	Cluster string     `json:"cluster"`
	Subject string     `json:"subject"`
	User    string     `json:"user"`   // the subject; the name will be removed in the next release
	Groups  [][]string `json:"groups"` // sets it was seen with
	// OtherGroups counts requests with further sets, which are not told apart.
	OtherGroups int64 `json:"otherGroups,omitempty"`
	// GroupsFrom is "requests", or "name" when there are none: what its name alone gives it.
	GroupsFrom string     `json:"groupsFrom"`
	First      *time.Time `json:"first"` // null without requests
	Last       *time.Time `json:"last"`
	Requests   int64      `json:"requests"`  // of the range; 0 and null without any
	Forbidden  int64      `json:"forbidden"` // requests of those
	Drift      int64      `json:"drift"`     // requests of those
	Folded     int64      `json:"folded"`    // requests that usage counts as (other)
	// Untold counts requests of subjects that are not told apart on the days of the range: some may be this one's.
	Untold int64        `json:"untold,omitempty"`
	Usage  []SubjectUse `json:"usage"` // distinct things it asked for, most requests first, 1,000 at most
	More   bool         `json:"more"`  // there are more uses
	// Rules are what its bindings and those of its groups give it, with how often each was
	// used; Known is false when the policy is not known.
	Known     bool          `json:"known"`
	Rules     []SubjectRule `json:"rules"`     // its own and the unused first, 1,000 at most
	MoreRules bool          `json:"moreRules"` // there are more rules than the 1,000 of the answer
}

// SubjectUse is one thing a subject asked for, counted. Generated names are folded to *; beyond what is
// counted by name in a day, name or path is (other).
type SubjectUse struct {
	Verb        string    `json:"verb"`
	Group       string    `json:"group"`
	Resource    string    `json:"resource"`
	Subresource string    `json:"subresource"`
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	Path        string    `json:"path"`
	Implied     string    `json:"implied,omitempty"` // the check behind other requests that it is
	Covered     bool      `json:"covered,omitempty"` // which passes without the verb
	Requests    int64     `json:"requests"`
	Allowed     int64     `json:"allowed"`   // requests, as recorded
	Forbidden   int64     `json:"forbidden"` // requests, as recorded
	First       time.Time `json:"first"`
	Last        time.Time `json:"last"`
}

// SubjectRule is one rule of one binding.
type SubjectRule struct {
	verdict.GrantNames
	Own   bool   `json:"own"`   // named itself, not through a group
	Scope string `json:"scope"` // namespace, "" for the whole cluster
	Rule
	// Requests, and checks behind them, that it is the first rule of its role to allow; 0: never used.
	Requests int64      `json:"requests"`
	Last     *time.Time `json:"last"` // when it was last used
}

// SubjectRequest asks what a subject did, could do and never did. The sums are of whole days. 404 when
// nothing is stored of it in the range and no binding names it.
type SubjectRequest struct {
	Asks[Doings] `question:"subject"`
	Cluster      string    `json:"cluster" required:"true" help:"cluster the question is about"`
	Subject      string    `json:"subject" old:"user" required:"true" help:"user name, as requests are authorized"`
	From         time.Time `json:"from" help:"requests at or after this time; widened to whole days"`
	To           time.Time `json:"to" help:"requests before this time; widened to whole days"`
}

func (r SubjectRequest) check() error { return before(r.From, r.To) }

// Subject answers what a subject did, could do and never did.
func (a *Service) Subject(ctx context.Context, tables Tables, q SubjectRequest) (out Doings, err error) {
	cluster, user, from, to := q.Cluster, q.Subject, q.From, q.To
	u, err := tables.SubjectUsage(ctx, cluster, user, from, to, MostUses)
	if err != nil {
		return out, err
	}
	out = Doings{Cluster: cluster, Subject: user, User: user, Groups: u.Groups, GroupsFrom: "requests", OtherGroups: u.OtherGroups,
		Requests: u.Requests, Forbidden: u.Forbidden,
		Drift: u.Drift, Folded: u.Folded, Untold: u.Untold, Usage: []SubjectUse{}, More: u.More, Rules: []SubjectRule{}}
	if u.Requests > 0 {
		out.First, out.Last = &u.First, &u.Last
	} else {
		out.Groups, out.GroupsFrom = [][]string{leastpriv.GroupsOf(user)}, "name"
	}
	for _, x := range u.Uses {
		out.Usage = append(out.Usage, SubjectUse(x))
	}
	own := false
	var policy *rbacindex.Snapshot
	st, err := a.stateOf(ctx, cluster, orLatest(to))
	if err != nil {
		return out, err
	}
	if st != nil {
		view := st.RBAC(orLatest(to))
		out.Known, policy = view.Certain(), view.RBAC
		own = out.holds(view.RBAC, u.Grants)
	}
	if u.Requests == 0 && !own && u.Untold == 0 {
		near, err := a.near(ctx, cluster, user, policy)
		if err != nil {
			return out, err
		}
		return out, none("no request of %q is stored in this range, and no binding names it%s", user, didYouMean(quoted(near)))
	}
	return out, nil
}

// holds lists the rules a subject has, the unused first, and returns whether any binding names the subject itself.
func (s *Doings) holds(policy *rbacindex.Snapshot, grants []queries.GrantUse) (own bool) {
	used := map[verdict.GrantNames]queries.GrantUse{} // roles left out
	for _, use := range grants {
		g := &use.Grant
		used[verdict.GrantNames{Binding: objectText(g.BindingKind, g.BindingNamespace, g.Binding), Rule: g.Rule,
			Subject: objectText(g.SubjectKind, g.SubjectNamespace, g.Subject)}] = use
	}
	groups := slices.Concat(s.Groups...)
	for _, h := range leastpriv.HeldBy(policy, s.Subject, groups) {
		subject, role := objectText(h.Subject.Kind, "", h.Subject.Name), rbacindex.RoleKey(&h.Role, h.Binding.Namespace).String()
		if h.Subject.Kind == rbacv1.ServiceAccountKind {
			subject = objectText(h.Subject.Kind, cmp.Or(h.Subject.Namespace, h.Binding.Namespace), h.Subject.Name)
		}
		mine := h.Subject.Kind != rbacv1.GroupKind
		own = own || mine
		for i := range h.Rules {
			line := SubjectRule{Own: mine, Scope: h.Binding.Namespace, Rule: Rule(h.Rules[i]),
				GrantNames: verdict.GrantNames{Binding: h.Binding.String(), Role: role, Rule: i, Subject: subject}}
			if g, ok := used[verdict.GrantNames{Binding: line.Binding, Rule: i, Subject: subject}]; ok {
				line.Requests, line.Last = g.Requests+g.Implied, &g.Last
			}
			s.Rules = append(s.Rules, line)
		}
	}
	slices.SortStableFunc(s.Rules, func(a, b SubjectRule) int {
		if a.Own != b.Own {
			if a.Own {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Requests, b.Requests), strings.Compare(a.Binding, b.Binding),
			cmp.Compare(a.GrantNames.Rule, b.GrantNames.Rule))
	})
	if s.MoreRules = len(s.Rules) > MostUses; s.MoreRules {
		s.Rules = s.Rules[:MostUses]
	}
	return own
}
