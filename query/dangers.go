package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/analysis/escalation"
	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// DangersAnswer says who holds what is dangerous, and whether it is used.
type DangersAnswer struct {
	Cluster string `json:"cluster"`
	Policy
	// Since is the cluster's first stored request: what was never used was not used since. Null when nothing is stored.
	Since   *time.Time     `json:"since"`
	Dangers []Danger       `json:"dangers"` // all kinds there are, the worst first
	Holders []DangerHolder `json:"holders"` // the worst first, each for each danger and scope
	// More counts holders beyond those of the answer.
	More int `json:"more"`
	// System counts holders left out because their binding belongs to Kubernetes itself, or because they are the group system:masters: its
	// members may do everything without a binding, and so never use one.
	System int `json:"system"`
}

// Danger is a kind of danger.
type Danger struct {
	ID      string   `json:"id"`      // the same every time
	Text    string   `json:"text"`    // what it lets somebody do
	Edges   []string `json:"edges"`   // ways to more rights that take it, as in docs/escalations.md
	Holders int      `json:"holders"` // how many hold it, those beyond the answer included
	Unused  int      `json:"unused"`  // holders of those that never used it
}

// DangerHolder is a subject of a binding that holds a danger. What is held by being in a group stands under the group.
type DangerHolder struct {
	Kind      string        `json:"kind"`      // User, Group, ServiceAccount
	Name      string        `json:"name"`      // of the subject
	Namespace string        `json:"namespace"` // of a service account
	Danger    string        `json:"danger"`    // id of the danger
	Scope     string        `json:"scope"`     // namespace it holds in; "" is the whole cluster
	Grants    []DangerGrant `json:"grants"`    // all that give it there
	// Requests counts those that were made by these grants and are what the danger is about, and checks behind requests, in the days of
	// the range. A request that several grants allow counts for each.
	Requests int64 `json:"requests"`
	Ever     int64 `json:"ever"` // the same of all that are stored
	// Last is when it was last used, by what was known when the request was stored; null: never.
	Last *time.Time `json:"last"`
	// Users are some of those who used it, by themselves or as members of the group.
	Users  []string `json:"users"`
	System bool     `json:"system"` // every binding that gives it is Kubernetes' own, or it is the group system:masters
}

// DangerGrant is a grant that gives a danger.
type DangerGrant struct {
	verdict.GrantNames
	Names []string `json:"names,omitempty"` // of the objects it is restricted to; none: all
}

// DangersRequest asks who holds what is dangerous, by which bindings, and whether it is used: rights that lead to more rights, and those to
// read secrets. A subject stands in it for each danger and scope; whoever holds cluster-admin holds the others as well, and is listed
// under that alone.
type DangersRequest struct {
	Asks[DangersAnswer] `question:"dangers"`
	Cluster             string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"cluster the question is about (default: the only one there is)"`
	At                  time.Time `json:"at" help:"by the policy of this time, such as 2026-11-20T11:36:00Z (default: the newest that is known)"`
	From                time.Time `json:"from" help:"count uses at or after this time; widened to whole days"`
	To                  time.Time `json:"to" help:"count uses before this time; widened to whole days"`
	Danger              string    `json:"danger" help:"only this danger, by its id"`
	Unused              bool      `json:"unused" help:"only what was never used"`
	System              bool      `json:"includeSystem" help:"also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-*"`
	Limit               int       `json:"limit" default:"200" min:"1" max:"2000" help:"most holders of an answer"`
}

func (r DangersRequest) check() error {
	if r.Danger != "" {
		var ids []string
		for _, d := range escalation.Dangers() {
			ids = append(ids, d.ID)
		}
		if !slices.Contains(ids, r.Danger) {
			return Bad("danger: there is none called %q%s; dangers are %s", r.Danger, didYouMean(Nearest(r.Danger, ids, mostNear)),
				strings.Join(ids, ", "))
		}
	}
	return before(r.From, r.To)
}

// mostUsers is how many of those who used a danger are named.
const mostUsers = 5

// mostDangerous bounds the holders whose uses are looked for.
const mostDangerous = 5_000

// Dangers answers who holds what is dangerous.
func (a *Service) Dangers(ctx context.Context, tables Tables, q DangersRequest) (out DangersAnswer, err error) {
	view, policy, err := a.policy(ctx, q.Cluster, q.At)
	if err != nil {
		return out, err
	}
	kinds := escalation.Dangers()
	out = DangersAnswer{Cluster: q.Cluster, Policy: policy, Dangers: make([]Danger, len(kinds)), Holders: []DangerHolder{}}
	out.doubt(view.Doubts("", true))
	since, _, err := a.stored(ctx, tables, q.Cluster)
	if err != nil {
		return out, err
	}
	out.Since = momentOf(since)
	held, system := holdersOf(view.RBAC, kinds, &q)
	out.System = system
	if len(held) > mostDangerous {
		out.More = len(held) - mostDangerous
	}
	count := map[string]*Danger{}
	for i := range kinds {
		d := Danger{ID: kinds[i].ID, Text: kinds[i].Text, Edges: []string{}}
		for _, e := range kinds[i].Edges {
			d.Edges = append(d.Edges, string(e))
		}
		out.Dangers[i], count[d.ID] = d, &out.Dangers[i]
	}
	for i := range held {
		count[held[i].Danger].Holders++
	}
	held = held[:min(len(held), mostDangerous)]
	if err := usesOf(ctx, tables, held, kinds, &q); err != nil {
		return out, err
	}
	for i := range held {
		h := &held[i].DangerHolder
		if h.Last == nil {
			count[h.Danger].Unused++
		} else if q.Unused {
			continue
		}
		if len(out.Holders) == q.Limit {
			out.More++
			continue
		}
		out.Holders = append(out.Holders, *h)
	}
	return out, nil
}

// dangerHeld is a holder with what its uses are found by.
type dangerHeld struct {
	DangerHolder
	kind    int // of danger
	grants  []verdict.Grant
	subject rbacv1.Subject
}

// holdersOf returns who holds dangers by a policy, the worst first.
func holdersOf(policy *rbacindex.Snapshot, kinds []escalation.Danger, q *DangersRequest) (out []dangerHeld, system int) {
	type place struct {
		subject rbacv1.Subject
		scope   string
		kind    int
	}
	at := map[place]int{}
	given := map[rbacindex.Key][2][][]ruleNames{} // by role: everywhere and in a namespace, by danger
	policy.All(func(k rbacindex.Key, o any) bool {
		subjects, ref, ok := rbacindex.BindingOf(o)
		if !ok || len(subjects) == 0 {
			return true
		}
		role := rbacindex.RoleKey(&ref, k.Namespace)
		gives, ok := given[role]
		if !ok {
			gives = givenBy(policy, role, kinds)
			given[role] = gives
		}
		side := gives[0]
		if k.Namespace != "" {
			side = gives[1]
		}
		for kind, rules := range side {
			if len(rules) == 0 || q.Danger != "" && q.Danger != kinds[kind].ID {
				continue
			}
			for i := range subjects {
				s := rbacv1.Subject{Kind: subjects[i].Kind, Name: subjects[i].Name}
				if s.Kind == rbacv1.ServiceAccountKind {
					s.Namespace = cmp.Or(subjects[i].Namespace, k.Namespace)
				}
				masters := s.Kind == rbacv1.GroupKind && s.Name == groupMasters // they pass before any binding is looked at
				own := masters || kubenames.Own(k.Name) || kubenames.OwnNamespace(k.Namespace)
				if !q.System && own {
					system++
					continue
				}
				p := place{s, k.Namespace, kind}
				n, ok := at[p]
				if !ok {
					n = len(out)
					at[p] = n
					out = append(out, dangerHeld{kind: kind, subject: s, DangerHolder: DangerHolder{Kind: s.Kind, Name: s.Name, System: own,
						Namespace: s.Namespace, Danger: kinds[kind].ID, Scope: k.Namespace, Grants: []DangerGrant{}, Users: []string{}}})
				}
				h, object := &out[n], content.ObjectOf(k)
				h.System = h.System && own
				for _, r := range rules {
					g := verdict.Grant{BindingKind: k.Kind.String(), BindingNamespace: k.Namespace, Binding: object.Name,
						RoleKind: ref.Kind, Role: ref.Name, SubjectKind: s.Kind, SubjectNamespace: s.Namespace, Subject: s.Name,
						Rule: r.rule}
					h.grants = append(h.grants, g)
					h.Grants = append(h.Grants, DangerGrant{g.Names(), r.names})
				}
			}
		}
		return true
	})
	slices.SortFunc(out, func(x, y dangerHeld) int {
		wide := func(h *dangerHeld) int { return min(len(h.Scope), 1) }
		return cmp.Or(cmp.Compare(x.kind, y.kind), wide(&x)-wide(&y), strings.Compare(x.Kind, y.Kind),
			strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name), strings.Compare(x.Scope, y.Scope))
	})
	for i := range out {
		slices.SortFunc(out[i].Grants, func(x, y DangerGrant) int {
			return cmp.Or(strings.Compare(x.Binding, y.Binding), cmp.Compare(x.Rule, y.Rule))
		})
	}
	return out, system
}

// ruleNames is a rule of a role, and the objects it is restricted to.
type ruleNames struct {
	rule  int
	names []string
}

// givenBy returns the rules of a role that give each danger, by a ClusterRoleBinding and by a RoleBinding. What gives everything is not
// listed for the others as well.
func givenBy(policy *rbacindex.Snapshot, role rbacindex.Key, kinds []escalation.Danger) (out [2][][]ruleNames) {
	object, _ := policy.Get(role)
	rules, _ := rbacindex.RulesOf(object)
	for side := range out {
		out[side] = make([][]ruleNames, len(kinds))
		for kind := range kinds {
			for i := range rules {
				if names, ok := kinds[kind].Held(&rules[i], side == 1); ok {
					out[side][kind] = append(out[side][kind], ruleNames{i, names})
				}
			}
			if kind == 0 && len(out[side][0]) > 0 {
				break
			}
		}
	}
	return out
}

// usesOf finds out what the grants were used for.
func usesOf(ctx context.Context, tables Tables, held []dangerHeld, kinds []escalation.Danger, q *DangersRequest) error {
	type binding struct{ kind, namespace, name string }
	type grant struct {
		binding
		subject rbacv1.Subject
	}
	seen := map[binding]bool{}
	var bindings []verdict.Grant
	for i := range held {
		for _, g := range held[i].grants {
			if b := (binding{g.BindingKind, g.BindingNamespace, g.Binding}); !seen[b] {
				seen[b] = true
				bindings = append(bindings, g)
			}
		}
	}
	list, err := tables.GrantedUses(ctx, q.Cluster, bindings, q.From, q.To)
	if err != nil {
		return err
	}
	uses := map[grant][]*queries.GrantedUse{}
	for i := range list {
		g := &list[i].Grant
		k := grant{binding{g.BindingKind, g.BindingNamespace, g.Binding},
			rbacv1.Subject{Kind: g.SubjectKind, Namespace: g.SubjectNamespace, Name: g.Subject}}
		uses[k] = append(uses[k], &list[i])
	}
	for i := range held {
		h := &held[i]
		counted := map[binding]bool{}
		for _, g := range h.grants {
			b := binding{g.BindingKind, g.BindingNamespace, g.Binding}
			if counted[b] {
				continue
			}
			counted[b] = true
			for _, u := range uses[grant{b, h.subject}] {
				if kinds[h.kind].Asked(u.Verb, u.Group, u.Resource, u.Subresource) {
					h.use(u)
				}
			}
		}
		slices.Sort(h.Users)
		h.Users = slices.Compact(h.Users)
		h.Users = h.Users[:min(len(h.Users), mostUsers)]
	}
	return nil
}

// use counts one use.
func (h *DangerHolder) use(u *queries.GrantedUse) {
	h.Requests, h.Ever = h.Requests+u.Requests, h.Ever+u.Ever
	if h.Last == nil || u.Last.After(*h.Last) {
		last := u.Last
		h.Last = &last
	}
	h.Users = append(h.Users, u.Subjects...)
}
