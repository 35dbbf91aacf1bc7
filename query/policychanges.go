package query

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// What a write changed. The set is closed.
const (
	EffectYes     = "yes"     // some user or group can do something that it could not do before, or the reverse
	EffectNo      = "no"      // everybody can do what they could
	EffectUnknown = "unknown" // what the object was before or after is not known
)

// PolicyChangesAnswer lists what was written to the policy.
type PolicyChangesAnswer struct {
	Cluster string `json:"cluster"`
	// Known is false when no policy of the cluster is known: then no effect is.
	Known   bool           `json:"known"`
	Changes []PolicyChange `json:"changes"` // newest first
	More    bool           `json:"more"`    // there are older ones in the range
	// Detail is of the write that was asked for alone.
	Detail *PolicyChangeDetail `json:"detail,omitempty"`
}

// PolicyChange is one write to a role or binding.
type PolicyChange struct {
	// AuditID is of the request that did it, User who made it and ActingAs whom they acted as; all empty when no stored request did.
	AuditID  string    `json:"auditID,omitempty"`
	User     string    `json:"user"`
	ActingAs string    `json:"actingAs,omitempty"` // the user it impersonated
	Time     time.Time `json:"time"`               // of the request, or when it was in force at the latest
	Verb     string    `json:"verb"`               // of the request; without one: written, deleted, unknown
	Object   string    `json:"object"`             // Kind/name or Kind/namespace/name; of a collection Kind/* or Kind/namespace/*
	Code     int32     `json:"code"`               // of the response, 0 without a request; of 500 and above it may not have been done
	// Effect says whether it changed what anybody can do: yes, no, unknown.
	Effect string `json:"effect"`
	// Objects are those that a request for a collection deleted.
	Objects []string `json:"objects,omitempty"`
	done    []change
}

// PolicyChangeDetail says what a write changed, and what came of it.
type PolicyChangeDetail struct {
	// Access is what was gained and lost; null when no object is known to have changed.
	Access *AccessChange `json:"access"`
	// Until is the end of the hour in which what came of it is looked for.
	Until time.Time `json:"until"`
	// Refusals are requests of the subjects it concerns, and of members of the groups, that were refused in that hour and that RBAC allowed
	// until this write. OtherRefusals counts their other refused requests.
	Refusals      []Refusal `json:"refusals"`
	OtherRefusals int64     `json:"otherRefusals"` // requests
	// FirstUses are what those subjects and members asked for the first time in that hour, the earliest first.
	FirstUses []FirstUse `json:"firstUses"`
	// More: there are more of either.
	More bool `json:"more"`
	// Revert is how to take the write back.
	Revert *PolicyRevert `json:"revert"`
}

// AccessChange is which accesses a write made possible and impossible, as of changes between the moments around it.
type AccessChange struct {
	Known         bool             `json:"known"` // false: any number of unknown bindings may have existed at either moment
	MissingBefore []string         `json:"missingBefore"`
	MissingAfter  []string         `json:"missingAfter"`
	Subjects      []ChangedSubject `json:"subjects"` // 500 at most
	More          int              `json:"more"`     // subjects beyond those
}

// PolicyChangesRequest asks what was written to roles and bindings: when, by whom, and whether it changed what anybody can do. With the
// audit ID of a write it says of that what was gained and lost, which requests were refused for it, what was asked for the first time in
// the hour after, and how to take it back. Refused and dry-run writes change nothing; refused ones are not listed.
type PolicyChangesRequest struct {
	Asks[PolicyChangesAnswer] `question:"policy-changes"`
	Cluster                   string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"cluster the question is about (default: the only one there is)"`
	From                      time.Time `json:"from" help:"writes at or after this time, such as 2026-11-20T11:36:00Z"`
	To                        time.Time `json:"to" help:"writes before this time"`
	ID                        string    `json:"id" help:"audit ID of one write: say what it changed, what came of it, and how to take it back"`
	Limit                     int       `json:"limit" default:"100" min:"1" max:"500" help:"most writes of an answer"`
}

func (r PolicyChangesRequest) check() error { return before(r.From, r.To) }

// PolicyChanges answers what was written to the policy.
func (a *Service) PolicyChanges(ctx context.Context, tables Tables, q PolicyChangesRequest) (out PolicyChangesAnswer, err error) {
	out = PolicyChangesAnswer{Cluster: q.Cluster, Changes: []PolicyChange{}}
	rows, err := a.policyWrites(ctx, tables, &q)
	if err != nil {
		return out, err
	}
	if out.More = len(rows) > q.Limit; out.More {
		rows = rows[:q.Limit]
	}
	from, to := q.From, q.To
	if n := len(rows); n > 0 && (out.More || q.ID != "" || from.IsZero()) {
		from = rows[n-1].Event.RequestReceivedTimestamp
	}
	if q.ID != "" && len(rows) > 0 {
		to = rows[0].Event.StageTimestamp.Add(time.Nanosecond)
	}
	st, err := a.stateOf(ctx, q.Cluster, from)
	if err != nil {
		return out, err
	}
	out.Known = !noPolicy(st)
	e := effects{st: st, known: out.Known}
	if out.Known {
		e.changes = st.Changes(from.Add(-time.Nanosecond), orLatest(to))
		e.touched = e.changes.Touched()
	}
	taken := map[change]bool{}
	out.Changes = make([]PolicyChange, len(rows))
	for i := range slices.Backward(rows) { // oldest first: each view of the policy then follows from the one before
		if err := ctx.Err(); err != nil {
			return out, err
		}
		out.Changes[i] = e.of(rows[i].Event, taken)
	}
	if q.ID == "" {
		out.Changes = append(out.Changes, e.others(from, taken, q.Limit+1)...)
	}
	slices.SortStableFunc(out.Changes, func(x, y PolicyChange) int {
		return cmp.Or(y.Time.Compare(x.Time), cmp.Compare(x.Object, y.Object))
	})
	if len(out.Changes) > q.Limit {
		out.Changes, out.More = out.Changes[:q.Limit], true
	}
	if q.ID != "" {
		if out.Detail, err = a.cameOf(ctx, tables, q.Cluster, out.Changes); err == nil {
			out.Detail.Revert, err = a.revertOf(ctx, q.Cluster, st, out.Changes)
		}
	}
	return out, err
}

// policyWrites reads the requests that wrote to the policy, newest first: one more than the limit, or those of one audit ID.
func (a *Service) policyWrites(ctx context.Context, tables Tables, q *PolicyChangesRequest) (rows []verdict.Row, err error) {
	if q.ID == "" {
		return tables.PolicyWrites(ctx, q.Cluster, q.From, q.To, q.Limit+1)
	}
	err = a.Store.VisitWhy(ctx, q.Cluster, q.ID, func(r verdict.Row) error {
		if r.Event.Stage == event.StageResponseComplete && policyKind(r.Event) != 0 && queries.IsWrite(r.Event.Verb) &&
			(r.Event.Code() < 300 || r.Event.Code() >= 500) {
			rows = append(rows, r)
		}
		return nil
	})
	if err == nil && len(rows) == 0 {
		err = none("no stored request with the audit ID %q wrote a role or binding", q.ID)
	}
	slices.Reverse(rows)
	return rows, err
}

// policyKind returns the kind of the role or binding that an event names, 0 for none.
func policyKind(e *event.Event) rbacindex.Kind {
	if e.ObjectRef == nil || e.ObjectRef.APIGroup != "rbac.authorization.k8s.io" || e.ObjectRef.Subresource != "" {
		return 0
	}
	return map[string]rbacindex.Kind{"roles": rbacindex.KindRole, "clusterroles": rbacindex.KindClusterRole,
		"rolebindings": rbacindex.KindRoleBinding, "clusterrolebindings": rbacindex.KindClusterRoleBinding}[e.ObjectRef.Resource]
}

// effects says what writes changed.
type effects struct {
	st      *state.State
	known   bool
	changes state.Changes
	touched []rbacindex.Key
}

// of says what the request of an event changed, and takes the changes it did.
func (x *effects) of(e *event.Event, taken map[change]bool) PolicyChange {
	ref := e.ObjectRef
	key := rbacindex.Key{Kind: policyKind(e), Namespace: ref.Namespace, Name: ref.Name}
	out := PolicyChange{AuditID: e.AuditID, User: e.User.Username, Time: e.RequestReceivedTimestamp, Verb: e.Verb, Object: key.String(),
		Code: e.Code(), Effect: EffectUnknown}
	if e.ImpersonatedUser != nil {
		out.ActingAs = e.ImpersonatedUser.Username
	}
	if ref.Name == "" {
		out.Object += "*"
	}
	if !x.known {
		return out
	}
	keys := []rbacindex.Key{key}
	if ref.Name == "" {
		keys = slices.DeleteFunc(slices.Clone(x.touched), func(k rbacindex.Key) bool {
			return k.Kind != key.Kind || k.Name == "" || key.Namespace != "" && k.Namespace != key.Namespace
		})
	}
	effect := EffectNo
	for _, k := range keys {
		for _, v := range x.changes.Versions(k) {
			if of, ok := writtenOf(&v); !ok || !of.By(e) {
				continue
			}
			taken[change{k, v}] = true
			out.done = append(out.done, change{k, v})
			if ref.Name == "" {
				out.Objects = append(out.Objects, k.String())
			}
			effect = x.more(effect, k, v.NotAfter)
		}
	}
	if len(out.done) == 0 && ref.Name != "" {
		if view := x.st.RBAC(e.StageTimestamp); view.IsUnknown(key) {
			effect = EffectUnknown
		}
	}
	out.Effect = effect
	return out
}

// more returns an effect, and with it that of what came into force at a moment.
func (x *effects) more(effect string, k rbacindex.Key, at time.Time) string {
	if effect == EffectYes {
		return effect
	}
	before, after := x.st.RBAC(at.Add(-time.Nanosecond)), x.st.RBAC(at)
	after.RBAC.Differences(before.RBAC, []rbacindex.Key{k}, func([]rbacindex.Difference) bool {
		effect = EffectYes
		return false
	})
	if effect == EffectNo && (before.IsUnknown(k) || after.IsUnknown(k)) {
		effect = EffectUnknown
	}
	return effect
}

// others returns the newest changes since a moment that no request was taken for.
func (x *effects) others(since time.Time, taken map[change]bool, most int) (out []PolicyChange) {
	var list []change
	for _, k := range x.touched {
		for _, v := range x.changes.Versions(k) {
			if c := (change{k, v}); k.Name != "" && !v.Assumed && !v.NotAfter.Before(since) && !taken[c] {
				list = append(list, c)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b change) int { return b.v.NotAfter.Compare(a.v.NotAfter) })
	out = make([]PolicyChange, min(len(list), most))
	for i := range slices.Backward(out) {
		c := &list[i]
		w := writeOf(c.key, &c.v)
		out[i] = PolicyChange{Time: c.v.NotAfter, Verb: w.What, Object: w.Object, Effect: x.more(EffectNo, c.key, c.v.NotAfter)}
	}
	return out
}

// afterChange is how long after a write it is looked what came of it.
const afterChange = time.Hour

// mostCame bounds the lists of what came of a write.
const mostCame = 100

// cameOf says what the requests of one audit ID changed, and what came of it.
func (a *Service) cameOf(ctx context.Context, tables Tables, cluster string, list []PolicyChange) (*PolicyChangeDetail, error) {
	out := &PolicyChangeDetail{Refusals: []Refusal{}, FirstUses: []FirstUse{}}
	var all []time.Time
	for i := range list {
		for _, c := range list[i].done {
			all = append(all, c.v.NotAfter)
		}
		if end := list[i].Time.Add(afterChange); end.After(out.Until) {
			out.Until = end
		}
	}
	if len(all) == 0 {
		return out, nil
	}
	slices.SortFunc(all, time.Time.Compare)
	from, to := all[0], all[len(all)-1]
	out.Until = to.Add(afterChange)
	changes, err := a.Changes(ctx, ChangesRequest{Cluster: cluster, From: from.Add(-time.Nanosecond), To: to})
	if err != nil {
		return nil, err
	}
	out.Access = &AccessChange{changes.Known, changes.MissingBefore, changes.MissingAfter, changes.Subjects, changes.More}
	subjects, groups := namesOf(changes.Subjects)
	if len(subjects)+len(groups) == 0 {
		return out, nil
	}
	refused, err := a.refused(ctx, tables, queries.RefusalFilter{Cluster: cluster, From: from, To: out.Until, Subjects: subjects,
		Groups: groups, Own: true, Limit: mostRefused}, mostRefused)
	if err != nil {
		return nil, err
	}
	out.OtherRefusals, out.More = refused.Requests, refused.More
	for _, r := range refused.Refusals {
		if slices.ContainsFunc(r.Writes, func(w PolicyWrite) bool { return !w.NotAfter.Before(from) && !w.NotAfter.After(to) }) {
			out.Refusals, out.OtherRefusals = append(out.Refusals, r), out.OtherRefusals-r.Requests
		}
	}
	uses, err := tables.FirstUses(ctx, queries.FirstFilter{Cluster: cluster, From: from, To: out.Until, Subjects: subjects, Groups: groups,
		Own: true, Limit: mostCame + 1})
	if err != nil {
		return nil, err
	}
	for _, u := range uses[:min(len(uses), mostCame)] {
		out.FirstUses = append(out.FirstUses, FirstUse(u))
	}
	if len(out.Refusals) > mostCame {
		out.Refusals = out.Refusals[:mostCame]
		out.More = true
	}
	out.More = out.More || len(uses) > mostCame
	return out, nil
}

// namesOf returns subjects as requests carry them: user names and groups.
func namesOf(list []ChangedSubject) (users, groups []string) {
	for _, s := range list {
		switch s.Kind {
		case "Group":
			groups = append(groups, s.Name)
		case "ServiceAccount":
			users = append(users, kubenames.ServiceAccount(s.Namespace, s.Name))
		default:
			users = append(users, s.Name)
		}
	}
	return users, groups
}
