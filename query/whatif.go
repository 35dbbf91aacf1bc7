package query

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/retrial-io/retrial/analysis/escalation"
	"github.com/retrial-io/retrial/analysis/whatif"
	"github.com/retrial-io/retrial/query/known"
	"github.com/retrial-io/retrial/query/past"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// Bounds of an answer.
const (
	mostDrafted = 2000 // accesses
	mostOpened  = 100  // paths, names that are looked up, and subjects of what becomes possible
	mostSampled = 200  // accesses, in a store
	mostSamples = 3    // audit IDs of each
	sampledText = 64 << 10
)

// What commands print of an answer.
type (
	DraftedAccess = whatif.Access
	DraftClass    = whatif.Class
	GrantNames    = verdict.GrantNames
)

// WhatIfAnswer says what a draft of roles and bindings would refuse and allow of what was recorded.
type WhatIfAnswer struct {
	Cluster string `json:"cluster"`
	// Report has the accesses that change, 2000 at most.
	whatif.Report
	// More is how many accesses change beyond those listed.
	More       int              `json:"more"`
	Escalation EscalationChange `json:"escalation"`
	// Possible is what becomes possible and impossible, whether or not anybody asked for it: what the name of a subject alone gives or, of
	// a group, what being in it gives; 100 subjects at most, without users that are not asked about.
	Possible []ChangedSubject `json:"possible"`
	// MorePossible is how many subjects there are beyond those.
	MorePossible int `json:"morePossible"`
	// Changes are what the draft does to objects.
	Changes []whatif.Change `json:"changes"`
	// Notes say what would not go as the draft has it, and what may be wrong with it.
	Notes []string `json:"notes"`
}

// EscalationChange says for whom a draft opens and closes a way to become cluster administrator.
type EscalationChange struct {
	// Opened are the shortest paths, with the draft, of those who have none now: 100 at most.
	Opened []Path `json:"opened"`
	// Closed are those there are now, of those who then have none: 100 at most.
	Closed      []Path `json:"closed"`
	OpenedCount int    `json:"openedCount"` // how many there are in all
	ClosedCount int    `json:"closedCount"` // how many there are in all
}

// WhatIfRequest asks what a draft of roles and bindings would refuse and allow of what was recorded, before anybody applies it:
// docs/whatif.md. It is asked by POST, with a JSON object of at most 4 MiB, and changes nothing. One answer is made at a time, in ten
// minutes at most (503, 504). 400 for a draft that cannot be read (the text has file and line) and an object to delete that does not exist;
// 404 for an unknown subject (the text names the nearest), a cluster whose policy was never listed, and a range without requests.
type WhatIfRequest struct {
	Asks[WhatIfAnswer] `question:"whatif"`
	Posted
	Cluster  string            `json:"cluster" required:"true" help:"cluster the question is about" flag:"name of the cluster; needed when there are several"`
	Draft    map[string]string `json:"draft" most:"4194304" help:"Roles, ClusterRoles, RoleBindings and ClusterRoleBindings as YAML or JSON, by the names of their files"`
	Delete   []string          `json:"delete" list:"lines" most:"4194304" help:"objects that the draft deletes: KIND/NAME, or KIND/NAMESPACE/NAME" flag:"delete this object: KIND/NAME, or KIND/NAMESPACE/NAME; may be repeated"`
	Subjects []string          `json:"subject" list:"lines" help:"only requests of these users, named as audit events have them" flag:"only requests of sa/NAMESPACE:NAME, or a user name as audit events have it; may be repeated"`
	From     time.Time         `json:"from,omitzero" help:"only requests from this time on (RFC 3339), in whole minutes" flag:"only requests from this time on, in whole minutes"`
	To       time.Time         `json:"to,omitzero" help:"only requests before this time (RFC 3339), in whole minutes" flag:"only requests before this time, in whole minutes"`
}

func (r WhatIfRequest) check() error {
	if len(r.Draft)+len(r.Delete) == 0 {
		return Bad("nothing is drafted: give objects in draft, or the names of objects in delete")
	}
	return before(r.From, r.To)
}

// WhatIf answers what a draft would refuse and allow.
func (a *Service) WhatIf(ctx context.Context, q WhatIfRequest) (out WhatIfAnswer, err error) {
	objects, err := whatif.Read(q.Draft, q.Delete)
	if err != nil {
		return out, BadRequest{err}
	}
	if _, err := a.stateOf(ctx, q.Cluster, Latest); err != nil { // waits for what was accepted
		return out, err
	}
	policy, _, err := a.policy(ctx, q.Cluster, time.Time{})
	if err != nil {
		return out, err
	}
	recorded, err := a.Store.Recording(ctx, q.Cluster, q.From, q.To)
	if err == nil && recorded.Requests == 0 {
		err = none("no request of cluster %q is recorded in this time: ask about a longer one", q.Cluster)
	}
	if err != nil {
		return out, err
	}
	metas, err := past.ReadMetadata(ctx, a.Store, q.Cluster)
	if err != nil {
		return out, err
	}
	sim, err := whatif.Simulate(policy, objects, func(k rbacindex.Key) (map[string]string, bool) {
		meta, ok := metas[k]
		return meta.Labels, ok
	})
	if err != nil {
		return out, BadRequest{err}
	}
	st, err := a.Replay.State(ctx, q.Cluster, recorded.First) // what nodes had at the time of their requests
	if err != nil {
		return out, err
	}
	options := whatif.Options{Graph: st, Subjects: q.Subjects}
	if a.Apiserver != nil {
		if cfg := a.Apiserver(q.Cluster, "").At(Latest); cfg != nil {
			options.Chain = authz.New(cfg)
		}
	}
	compared, seen := whatif.New(sim, options), map[string]bool{}
	if err = a.Store.History(ctx, q.Cluster, q.From, q.To, compared.Reads(), func(r codec.Alike) error {
		seen[r.Event.EffectiveUser().Username] = true
		n := whatif.Count{Requests: r.Requests, First: r.First, Last: r.Last}
		if r.Event.AuditID != "" {
			n.AuditIDs = []string{r.Event.AuditID}
		}
		compared.Observe(r.Event, r.Verdict, n)
		return ctx.Err()
	}); err != nil {
		return out, err
	}
	for _, name := range q.Subjects {
		if !seen[name] && !sim.Before.RBAC.Names(name, false) && !sim.After.RBAC.Names(name, false) {
			near, err := a.near(ctx, q.Cluster, name, sim.After.RBAC)
			if err != nil {
				return out, err
			}
			return out, none("no request of %q is recorded in this time, and no binding names it%s", name, didYouMean(quoted(near)))
		}
	}
	out = WhatIfAnswer{Cluster: q.Cluster, Report: *compared.Report(), Changes: sim.Changes, Notes: sim.Notes}
	if out.More = max(0, len(out.Accesses)-mostDrafted); out.More > 0 {
		out.Accesses = out.Accesses[:mostDrafted]
	}
	out.possible(ctx, sim, q.Subjects)
	if err = a.sample(ctx, &out); err == nil {
		err = a.doubtDraft(ctx, &out, sim)
	}
	if err == nil {
		out.Escalation, err = a.escalationChange(ctx, q.Cluster, &sim.Before, &sim.After)
	}
	return out, err
}

// possible enters what becomes possible and impossible.
func (out *WhatIfAnswer) possible(ctx context.Context, sim *whatif.Simulation, users []string) {
	out.Possible = []ChangedSubject{}
	causes := map[rbacindex.Key]bool{}
	causesOf := func(r *rbacindex.ChangedRule) (of []rbacindex.Key) {
		for _, by := range r.By {
			for _, k := range [...]rbacindex.Key{by.BindingKey(), by.RoleKey()} {
				if slices.Contains(sim.Changed, k) && !slices.Contains(of, k) {
					of = append(of, k)
				}
			}
		}
		return of
	}
	sim.After.RBAC.Differences(sim.Before.RBAC, sim.Changed, func(list []rbacindex.Difference) bool {
		s := rbacindex.Access{Name: list[0].Name, Group: list[0].Group}
		switch {
		case !s.Group && len(users) > 0 && !slices.Contains(users, s.Name):
		case len(out.Possible) == mostOpened:
			out.MorePossible++
		default:
			of := s.Subject()
			out.Possible = append(out.Possible,
				changedOf(causesOf, ChangedSubject{Kind: of.Kind, Name: of.Name, Namespace: of.Namespace}, list, causes))
		}
		return ctx.Err() == nil
	})
}

// sample names stored requests of the first accesses: a log has named its own.
func (a *Service) sample(ctx context.Context, out *WhatIfAnswer) error {
	tables, stored := a.Store.(Tables)
	if !stored {
		return nil
	}
	var of []queries.Sampled
	var to []*whatif.Access
	for i, size := 0, 0; i < len(out.Accesses) && len(of) < mostSampled; i++ {
		x := &out.Accesses[i]
		if size += len(x.Subject) + len(x.Path) + len(x.Name) + len(x.Resource) + len(x.Namespace); size > sampledText {
			break
		}
		to, of = append(to, x), append(of, queries.Sampled{Subject: x.Subject, Groups: x.Groups, Check: x.Check, Last: x.Last,
			Attributes: verdict.Attributes{Verb: x.Verb, APIGroup: x.APIGroup, Resource: x.Resource, Subresource: x.Subresource,
				Namespace: x.Namespace, Name: x.Name, Path: x.Path}})
	}
	if len(of) == 0 {
		return nil
	}
	ids, err := tables.Samples(ctx, out.Cluster, of, mostSamples)
	for i, list := range ids {
		to[i].Sample = append(to[i].Sample, list...)
	}
	return err
}

// doubtDraft notes who is named by the draft alone and is called much like somebody known.
func (a *Service) doubtDraft(ctx context.Context, out *WhatIfAnswer, sim *whatif.Simulation) error {
	looked := map[string]bool{}
	for _, k := range sim.Changed {
		object, _ := sim.After.RBAC.Get(k)
		subjects, _, _ := rbacindex.BindingOf(object)
		for i := range subjects {
			s := &subjects[i]
			user := rbacindex.UserOf(s, k.Namespace)
			if looked[s.Kind+user+s.Name] || len(looked) == mostOpened || user != "" && sim.Before.RBAC.Names(user, false) {
				continue
			}
			looked[s.Kind+user+s.Name] = true
			text, doubtful := "", false
			if user == "" {
				text, doubtful = known.Unbound(s.Name, false, sim.Before.RBAC)
			} else if _, last, _, err := a.Store.LastGroups(ctx, out.Cluster, user, time.Time{}); err != nil {
				return err
			} else if last.IsZero() {
				var near []string
				if text, near, err = a.stranger(ctx, out.Cluster, user, &sim.Before, time.Time{}, false); err != nil {
					return err
				}
				doubtful = len(near) > 0
			}
			if doubtful {
				out.Notes = append(out.Notes, fmt.Sprintf("%s: %s", k, text))
			}
		}
	}
	return nil
}

// escalationChange compares who can become cluster administrator.
func (a *Service) escalationChange(ctx context.Context, cluster string, before, after *state.View) (out EscalationChange, err error) {
	accounts, err := a.accounts(ctx, cluster, time.Time{})
	if err != nil {
		return out, err
	}
	was, is := escalation.NewBounds(*before, accounts), escalation.NewBounds(*after, accounts)
	had, has := was.All(), is.All()
	list := func(of *escalation.Bounds, but map[escalation.Node]bool) ([]Path, int) {
		paths, count := of.Reaching(func(n escalation.Node) bool { return !but[n] }, mostOpened)
		out := make([]Path, 0, len(paths))
		for i := range paths {
			out = append(out, pathOf(&paths[i]))
		}
		return out, count
	}
	out.Opened, out.OpenedCount = list(is, had)
	out.Closed, out.ClosedCount = list(was, has)
	return out, nil
}
