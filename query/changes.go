package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/query/known"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/queries"
)

// Bounds of an answer. A role bound to everybody concerns every subject.
const (
	mostChanged = 500 // subjects
	mostWrites  = 500
	mostTraced  = 50 // writes whose request is looked for in the store
	mostReasons = 50 // for what is not known
)

// ChangesAnswer is which accesses became possible and impossible between two moments.
type ChangesAnswer struct {
	Cluster string    `json:"cluster"`
	From    time.Time `json:"from"`
	// To is null when the newest known was meant and no change after From is known.
	To *time.Time `json:"to"`
	// Newest is when the newest known change was, if it is before From and To was not given.
	Newest *time.Time `json:"newest,omitempty"`
	// Known is false when any number of unknown bindings may have existed at one of the two moments. MissingBefore and MissingAfter name
	// what was not known at each.
	Known         bool     `json:"known"`
	MissingBefore []string `json:"missingBefore"`
	MissingAfter  []string `json:"missingAfter"`
	// Reasons say why, by the names in either, of the first of them.
	Reasons map[string]string `json:"reasons,omitempty"`
	// Subject and its groups are those asked about, as in CanAnswer; empty for all.
	Subject    string     `json:"subject"`
	Groups     []string   `json:"groups,omitempty"`
	GroupsFrom string     `json:"groupsFrom,omitempty"`
	GroupsSeen *time.Time `json:"groupsSeen,omitempty"`
	Superuser  bool       `json:"superuser,omitempty"` // in system:masters: nothing changes for it

	Subjects []ChangedSubject `json:"subjects"` // 500 at most
	// More is how many subjects there are beyond those.
	More int `json:"more"`
	// Writes says what happened, between the two moments, to the objects that made the difference, oldest first. MoreWrites counts those
	// left out.
	Writes     []PolicyWrite `json:"writes"`
	MoreWrites int           `json:"moreWrites"`
	// Hints says what may be wrong with the question.
	Hints []string `json:"hints,omitempty"`
}

// ChangedSubject is a subject and what changed for it: what its name alone gives or, of a group,
// what being in it gives; of the subject asked about, what it holds with all its groups.
type ChangedSubject struct {
	Kind      string         `json:"kind"` // User, Group, ServiceAccount
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"` // of a service account
	Scopes    []ChangedScope `json:"scopes"`    // those in which something changed
}

// ChangedScope is what changed in one scope.
type ChangedScope struct {
	// Namespace "" is the whole cluster, all namespaces but those that have a scope of their own: in these it is as they say.
	Namespace string        `json:"namespace"`
	Gained    []ChangedRule `json:"gained"` // rules, with the grants as they are now
	Lost      []ChangedRule `json:"lost"`   // rules, with the grants there were
	// TooLarge: the rules take too much work to compare; there may be more of either.
	TooLarge bool `json:"tooLarge,omitempty"`
}

// ChangedRule is a rule that was gained, by grants as they are now, or lost, by those there were.
type ChangedRule struct {
	Rule
	// Except has rules of the other side: what they allow did not change.
	Except []Rule  `json:"except,omitempty"`
	By     []Grant `json:"by"`
	// Because are the changed objects among the grants' bindings and roles.
	Because []string `json:"because"`
}

// Rule is a rule as RBAC has it.
type Rule rbacv1.PolicyRule

// PolicyWrite is one change of an object.
type PolicyWrite struct {
	Object string `json:"object"` // Kind/name or Kind/namespace/name
	What   string `json:"what"`   // written, deleted, unknown
	// NotBefore and NotAfter bound when it became effective; without NotBefore it has no lower bound.
	NotBefore       *time.Time `json:"notBefore,omitempty"`
	NotAfter        time.Time  `json:"notAfter"`
	UID             string     `json:"uid,omitempty"`
	ResourceVersion string     `json:"resourceVersion,omitempty"`
	// Assumed says that no write was seen, only its effect by then.
	Assumed bool `json:"assumed,omitempty"`
	// AuditID, Verb and User are of the stored request that did it, where there is one.
	AuditID string `json:"auditID,omitempty"`
	Verb    string `json:"verb,omitempty"`
	User    string `json:"user,omitempty"`
}

// ChangesRequest asks which accesses became possible and impossible from one moment to another, and by which writes. Without a subject it
// lists everybody whom changed objects concern, each alone: what comes by a group is listed under the group. An unknown subject is refused
// (404) or hinted at as by can.
type ChangesRequest struct {
	Asks[ChangesAnswer] `question:"changes"`
	Cluster             string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"cluster the question is about (default: the only one there is)"`
	From                time.Time `json:"from" required:"true" help:"the moment before, such as 2026-11-20T11:36:00Z"`
	To                  time.Time `json:"to" help:"the moment after (default: the newest that is known)"`
	Subject             string    `json:"subject" help:"only what changed for this subject, with all its groups: written as of can" flag:"only what changed for this subject, with all its groups: sa/NAMESPACE:NAME, group/NAME, or a user name"`
	Groups              []string  `json:"group" list:"csv" help:"groups the subject is in, as of can (default: those its requests carried)" flag:"group the subject is in, may be repeated (default: those its requests carried)"`
}

func (r ChangesRequest) check() error {
	switch {
	case !r.To.IsZero() && r.To.Before(r.From):
		return Bad("to is before from")
	case r.Subject == "" && len(r.Groups) > 0:
		return Bad("group needs a subject; for what a group itself gives, ask for the subject group:NAME")
	case strings.HasPrefix(r.Subject, "group:") && len(r.Groups) > 0:
		return Bad("group needs a user as the subject, not a group")
	}
	return nil
}

// Changes answers which accesses became possible and impossible.
func (a *Service) Changes(ctx context.Context, q ChangesRequest) (out ChangesAnswer, err error) {
	out = ChangesAnswer{Cluster: q.Cluster, Subject: q.Subject, From: q.From, Subjects: []ChangedSubject{}, Writes: []PolicyWrite{}}
	user, group, err := readSubject(q.Subject)
	if err != nil {
		return out, err
	}
	_, p, err := a.policy(ctx, out.Cluster, q.To)
	if err != nil {
		return out, err
	}
	if out.To = p.At; out.To != nil && out.To.Before(out.From) {
		out.To, out.Newest = nil, out.To
	}
	until := orLatest(q.To)
	st, err := a.Replay.State(ctx, out.Cluster, out.From)
	if err != nil {
		return out, err
	}
	changes := st.Changes(out.From, until)
	out.doubt(st, &changes, until)
	causes := map[rbacindex.Key]bool{}
	add := func(of rbacindex.Access, list []rbacindex.Difference) {
		if s := of.Subject(); len(list) > 0 {
			out.Subjects = append(out.Subjects,
				changedOf(changes.Causes, ChangedSubject{Kind: s.Kind, Name: s.Name, Namespace: s.Namespace}, list, causes))
		}
	}
	switch {
	case out.Subject == "":
		changes.To.RBAC.Differences(changes.From.RBAC, changes.Keys, func(list []rbacindex.Difference) bool {
			if len(out.Subjects) == mostChanged {
				out.More++
				return true
			}
			add(rbacindex.Access{Name: list[0].Name, Group: list[0].Group}, list)
			return ctx.Err() == nil
		})
		if err := ctx.Err(); err != nil {
			return out, err
		}
	case group != "":
		text, mistaken := known.Unbound(group, true, changes.From.RBAC, changes.To.RBAC)
		if mistaken && out.certain() {
			return out, none("%s", text)
		}
		if text != "" {
			out.Hints = append(out.Hints, text)
		}
		out.Superuser = group == groupMasters
		add(rbacindex.Access{Name: group, Group: true}, changes.To.RBAC.DifferencesOfGroup(changes.From.RBAC, group))
	default:
		out.Subject = user
		var missing []string
		if out.Groups, out.GroupsFrom, out.GroupsSeen, missing, err = a.groupsOf(ctx, out.Cluster, user, q.Groups, q.To); err != nil {
			return out, err
		}
		out.MissingBefore, out.MissingAfter = append(out.MissingBefore, missing...), append(out.MissingAfter, missing...)
		out.Superuser = slices.Contains(out.Groups, groupMasters)
		if out.GroupsFrom == "name" && !changes.From.RBAC.Names(user, false) && !changes.To.RBAC.Names(user, false) {
			text, _, err := a.stranger(ctx, out.Cluster, user, &changes.To, q.To, out.certain())
			if err != nil {
				return out, err
			}
			if text != "" {
				out.Hints = append(out.Hints, text)
			}
		}
		add(rbacindex.Access{Name: user}, changes.To.RBAC.DifferencesOf(changes.From.RBAC, user, out.Groups))
	}
	return out, a.writes(ctx, &out, &changes, causes)
}

// certain reports whether all was known at both moments.
func (out *ChangesAnswer) certain() bool {
	return out.Known && len(out.MissingBefore)+len(out.MissingAfter) == 0
}

// doubt enters what was not known at either moment.
func (out *ChangesAnswer) doubt(st *state.State, c *state.Changes, until time.Time) {
	var before, after Policy
	for _, side := range []struct {
		view *state.View
		at   time.Time
		into *Policy
	}{{&c.From, out.From, &before}, {&c.To, until, &after}} {
		keys := side.view.Doubts("", true)
		side.into.doubt(keys)
		for i, name := range side.into.Missing {
			if why := st.Reason(keys[i], side.at); why != "" && len(out.Reasons) < mostReasons && out.Reasons[name] == "" {
				if out.Reasons == nil {
					out.Reasons = map[string]string{}
				}
				out.Reasons[name] = why
			}
		}
	}
	out.Known, out.MissingBefore, out.MissingAfter = before.Known && after.Known, before.Missing, after.Missing
}

// changedOf writes a subject's differences down and gathers what caused them.
func changedOf(causesOf func(*rbacindex.ChangedRule) []rbacindex.Key, out ChangedSubject, list []rbacindex.Difference,
	causes map[rbacindex.Key]bool) ChangedSubject {
	rules := func(list []rbacindex.ChangedRule) []ChangedRule {
		to := make([]ChangedRule, 0, len(list))
		for i := range list {
			r := &list[i]
			rule := ChangedRule{Rule: Rule(r.PolicyRule), By: sourcesOf(r.By)}
			for j := range r.Except {
				rule.Except = append(rule.Except, Rule(r.Except[j]))
			}
			for _, k := range causesOf(r) {
				causes[k] = true
				rule.Because = append(rule.Because, k.String())
			}
			to = append(to, rule)
		}
		return to
	}
	for _, d := range list {
		out.Scopes = append(out.Scopes,
			ChangedScope{Namespace: d.Namespace, Gained: rules(d.Gained), Lost: rules(d.Lost), TooLarge: d.TooLarge})
	}
	return out
}

// writes enters the changes of the objects that made the difference.
func (a *Service) writes(ctx context.Context, out *ChangesAnswer, c *state.Changes, causes map[rbacindex.Key]bool) error {
	type versioned struct {
		key rbacindex.Key
		v   state.Version
	}
	var all []versioned
	for k := range causes {
		for _, v := range c.Versions(k) {
			all = append(all, versioned{k, v})
		}
	}
	slices.SortFunc(all, func(x, y versioned) int {
		return cmp.Or(x.v.NotAfter.Compare(y.v.NotAfter), strings.Compare(x.key.String(), y.key.String()))
	})
	if n := len(all) - mostWrites; n > 0 {
		all, out.MoreWrites = all[:mostWrites], n
	}
	traced := map[int]queries.Written{} // by place in the answer
	for i, x := range all {
		out.Writes = append(out.Writes, writeOf(x.key, &x.v))
		if of, ok := writtenOf(&x.v); ok && i < mostTraced {
			traced[i] = of
		}
	}
	return a.trace(ctx, out.Cluster, out.Writes, traced)
}

// writeOf says what a version is of an object.
func writeOf(k rbacindex.Key, v *state.Version) PolicyWrite {
	w := PolicyWrite{Object: k.String(), What: "written", NotAfter: v.NotAfter, UID: v.UID, ResourceVersion: v.ResourceVersion,
		Assumed: v.Assumed}
	switch {
	case v.Unknown:
		w.What = "unknown"
	case v.Deleted:
		w.What = "deleted"
	}
	if !v.NotBefore.IsZero() {
		w.NotBefore = &v.NotBefore
	}
	return w
}

// writtenOf returns when a version was written, for looking for the request; ok is false when no write was seen.
func writtenOf(v *state.Version) (of queries.Written, ok bool) {
	resource, group, _ := strings.Cut(v.Resource, ".")
	return queries.Written{Resource: resource, Group: group, Namespace: v.Namespace, Name: v.Name, From: v.NotBefore, To: v.NotAfter},
		!v.Assumed && !v.NotBefore.IsZero()
}

// trace looks for the requests that did some writes: each is of that object, and began and ended when the write did. All are looked for at
// once.
func (a *Service) trace(ctx context.Context, cluster string, writes []PolicyWrite, traced map[int]queries.Written) error {
	if len(traced) == 0 {
		return nil
	}
	rows, err := a.Store.Writes(ctx, cluster, slices.Collect(maps.Values(traced)))
	if err != nil {
		return err
	}
	for i, of := range traced {
		w := &writes[i]
		for j := range rows {
			e := rows[j].Event
			if !of.By(e) {
				continue
			}
			// A collection has no name; the path tells it as well as the reference does.
			named := e.ObjectRef.Name != ""
			if w.AuditID == "" || named {
				w.AuditID, w.Verb, w.User = e.AuditID, e.Verb, e.User.Username
			}
			if named {
				break
			}
		}
	}
	return nil
}
