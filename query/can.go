package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/query/known"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// CanAnswer is everything a subject may do.
type CanAnswer struct {
	Cluster string `json:"cluster"`
	Policy
	// Subject is a user name, "" when only groups are asked about.
	Subject string   `json:"subject"`
	Groups  []string `json:"groups"`
	// GroupsFrom is "requests": those its requests carried the last time, at GroupsSeen; "asked": the question's; "name": what its name
	// alone gives it; "unknown": its requests came with more sets of groups than are told apart, and which were the last is not known. What
	// the name gives is always among them.
	GroupsFrom string     `json:"groupsFrom"`
	GroupsSeen *time.Time `json:"groupsSeen,omitempty"`
	// Stranger says that no request of the subject is stored and no binding names it: it may do what anybody of such a name may.
	Stranger bool `json:"stranger,omitempty"`
	// Near are subjects that a stranger's name may have been meant for, three at most.
	Near      []string `json:"near,omitempty"`
	Scopes    []Scope  `json:"scopes"`    // those in which it holds something
	Superuser bool     `json:"superuser"` // in system:masters: may do everything, whatever the rules
	// Request is what was asked about, null when that is everything; Scopes are empty then.
	Request *Decision `json:"request,omitempty"`
	Hints   []string  `json:"hints,omitempty"`
}

// Scope is what a subject holds in the whole cluster or one namespace.
type Scope struct {
	Namespace string     `json:"namespace"` // "" is the whole cluster
	Rules     []HeldRule `json:"rules"`     // merged where that changes nothing
	// MissingRoles are roles that the subject's bindings name and that do not exist.
	MissingRoles []string `json:"missingRoles,omitempty"`
}

// HeldRule is a rule a subject holds, and by which grants.
type HeldRule struct {
	Rule
	By []Grant `json:"by"`
}

// CanRequest asks what a subject may do by RBAC, at a moment: everything, or with a verb and a resource or path, as of WhoCanRequest, that
// one request. A subject or a group is named. If the subject or the namespace is unknown but resembles a known one, or no binding names
// the group, the question is refused (404); of a subject unless groups are given.
type CanRequest struct {
	Asks[CanAnswer] `question:"can"`
	Cluster         string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"cluster the question is about (default: the only one there is)"`
	Subject         string    `json:"subject" help:"a user name, system:serviceaccount:NAMESPACE:NAME, group:NAME, or user:NAME"`
	Groups          []string  `json:"group" list:"csv" help:"groups the subject is in, separated by commas, one with a comma in it quoted as in CSV (default: those its requests carried)" flag:"group the subject is in, may be repeated (default: those its requests carried)"`
	Verb            string    `json:"verb" help:"verb of the request, where one is asked about"`
	Resource        string    `json:"resource" help:"resource of the request, as of who-can"`
	Namespace       string    `json:"namespace" short:"n" help:"leave out the other namespaces; that of the request"`
	Name            string    `json:"name" help:"name of the object of the request"`
	Path            string    `json:"path" help:"path of the request, where it is about no resource"`
	At              time.Time `json:"at" help:"moment the question is about, such as 2026-11-20T11:36:00Z (default: the newest that is known)"`
}

func (r CanRequest) check() error {
	if r.Subject == "" && len(r.Groups) == 0 {
		return Bad("subject is missing: a user name, system:serviceaccount:NAMESPACE:NAME, or group:NAME")
	}
	if r.Verb+r.Resource+r.Path+r.Name == "" {
		return nil
	}
	one := r.access()
	return one.check(r.Resource)
}

// access returns the request that is asked about, without a verb if everything is asked for.
func (r *CanRequest) access() AccessRequest {
	return AccessRequest{Verb: r.Verb, Namespace: r.Namespace, Name: r.Name, Path: r.Path}
}

// Can answers what a subject may do, or whether it may make one request.
func (a *Service) Can(ctx context.Context, q CanRequest) (out CanAnswer, err error) {
	user, asked, err := readAsked(q.Subject, q.Groups)
	if err != nil {
		return out, err
	}
	out = CanAnswer{Cluster: q.Cluster, Subject: user, Scopes: []Scope{}}
	view, policy, err := a.policy(ctx, q.Cluster, q.At)
	if err != nil {
		return out, err
	}
	out.Policy = policy
	var missing []string
	if out.Groups, out.GroupsFrom, out.GroupsSeen, missing, err = a.groupsOf(ctx, q.Cluster, user, asked, q.At); err != nil {
		return out, err
	}
	out.Missing = append(out.Missing, missing...)
	out.Superuser = slices.Contains(out.Groups, groupMasters)
	if q.Verb == "" {
		a.fillCan(&out, &view, q.Namespace)
	} else if err := out.decide(&view, q.access(), q.Resource); err != nil {
		return out, err
	}
	if out.Subject != "" && out.GroupsFrom == "name" && !view.RBAC.Names(out.Subject, false) {
		text, near, err := a.stranger(ctx, q.Cluster, out.Subject, &view, q.At, len(out.Missing) == 0)
		if err != nil {
			return out, err
		}
		if text != "" {
			out.Stranger, out.Near, out.Hints = true, near, append(out.Hints, text)
		}
	}
	for _, g := range asked {
		text, mistaken := known.Unbound(g, q.Verb == "", view.RBAC)
		if mistaken && user == "" && len(asked) == 1 && len(out.Missing) == 0 {
			return out, none("%s", text)
		}
		if text != "" {
			out.Hints = append(out.Hints, text)
		}
	}
	absent, err := a.noNamespace(ctx, q.Cluster, q.Namespace, view.RBAC, q.At)
	if absent != "" {
		out.Hints = append(out.Hints, absent)
	}
	return out, err
}

// stranger tells of a subject that no request and no binding names, though a service account or a node may be there all the same: a text,
// and who is called much like it. What everybody may must not pass for its rights: a name like that of somebody who is known is taken for
// misspelt where all is certain, and any other is told of. Without a text it is none.
func (a *Service) stranger(ctx context.Context, cluster, subject string, view *state.View, at time.Time,
	certain bool) (text string, near []string, err error) {
	if !at.IsZero() { // it may have been seen later
		if _, seen, _, err := a.Store.LastGroups(ctx, cluster, subject, time.Time{}); err != nil || !seen.IsZero() {
			return "", nil, err
		}
	}
	there := state.Absent
	st, err := a.Replay.State(ctx, cluster, orLatest(at))
	if err != nil {
		return "", nil, err
	}
	if st != nil {
		if namespace, name, ok := authn.ServiceAccountUsername(subject); ok {
			_, there = st.Version(kept.ServiceAccounts, namespace, name, orLatest(at))
		} else if node, ok := strings.CutPrefix(subject, authn.PrefixNode); ok {
			_, there = st.Version(kept.Nodes, "", node, orLatest(at))
		}
	}
	if there == state.Present {
		return "", nil, nil
	}
	if near, err = a.near(ctx, cluster, subject, view.RBAC); err != nil {
		return "", nil, err
	}
	text = fmt.Sprintf("no request of %q is stored and no binding names it", subject) + didYouMean(quoted(near))
	if len(near) > 0 && there == state.Absent && certain {
		return "", nil, none("%s To ask about somebody of that name, name the groups.", text)
	}
	return text, near, nil
}

// fillCan enters the rules of the whole cluster and of one namespace or all.
func (a *Service) fillCan(out *CanAnswer, view *state.View, namespace string) {
	doubted := map[rbacindex.Key]bool{}
	doubts := view.Doubts(namespace, namespace == "")
	for _, held := range view.RBAC.Can(out.Subject, out.Groups) {
		if namespace != "" && held.Namespace != "" && held.Namespace != namespace {
			continue
		}
		scope := Scope{Namespace: held.Namespace, Rules: make([]HeldRule, 0, len(held.Rules))}
		for _, r := range held.Rules {
			scope.Rules = append(scope.Rules, HeldRule{Rule(r.PolicyRule), sourcesOf(r.By)})
		}
		for _, k := range held.Missing {
			if view.IsUnknown(k) {
				doubted[k] = true
			} else {
				scope.MissingRoles = append(scope.MissingRoles, k.String())
			}
		}
		if len(scope.Rules)+len(scope.MissingRoles) > 0 {
			out.Scopes = append(out.Scopes, scope)
		}
	}
	out.doubtOwn(doubts, doubted)
}

// doubtOwn enters what is not known; only roles that the subject's own bindings name matter.
func (out *CanAnswer) doubtOwn(doubts []rbacindex.Key, named map[rbacindex.Key]bool) {
	out.doubt(slices.DeleteFunc(doubts, func(k rbacindex.Key) bool {
		role := k.Kind == rbacindex.KindRole || k.Kind == rbacindex.KindClusterRole
		return role && !named[k]
	}))
}
