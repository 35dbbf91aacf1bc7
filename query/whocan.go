package query

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/state"
)

// accessQueries is what the questions about access ask the store.
type accessQueries interface {
	// LastGroups returns the groups a subject's requests carried the last time up to a moment
	// (zero: now), and when that was; zero when there is no request.
	LastGroups(ctx context.Context, cluster, subject string, until time.Time) ([]string, time.Time, error)
}

// accessRoutes are the questions about who can do what, and could at a time.
func (a *Service) accessRoutes() []Question {
	return []Question{
		{"who-can", []string{"cluster", "verb", "resource", "namespace", "allNamespaces", "name", "path", "at"}, CostQuery, a.whoCan},
		{"can", []string{"cluster", "subject", "group", "verb", "resource", "namespace", "name", "path", "at"}, CostQuery, a.Can},
	}
}

// Policy is which policy an answer is about, and what is not known of it.
type Policy struct {
	// At is the moment asked about, or when the newest known change was done; null when no
	// change is known.
	At *time.Time `json:"at"`
	// Known is false when there may be any number of bindings nobody told of.
	Known bool `json:"known"`
	// Missing names what is not known and could add to the answer.
	Missing []string `json:"missing"`
}

// Grant is a grant. Objects are written Kind/name or Kind/namespace/name.
type Grant struct {
	Binding string `json:"binding"`
	Role    string `json:"role"`
	Subject string `json:"subject"` // as the binding names it
	Rule    int    `json:"rule"`    // index in the role's rules
	// Kind is "superuser" for what needs no grant: membership of system:masters. The rest of
	// it is empty then.
	Kind string `json:"kind,omitempty"`
	// Verbs of a merged rule that this grant gives; left out when it gives them all.
	Verbs []string `json:"verbs,omitempty"`
}

const (
	groupMasters = "system:masters"
	// KindSuperuser is the kind of a grant that no binding gives.
	KindSuperuser = "superuser"
)

func sourceOf(g rbacindex.Grant) Grant {
	subject := g.SubjectKind() + "/" + g.Subject()
	if ns := g.SubjectNamespace(); ns != "" {
		subject = g.SubjectKind() + "/" + ns + "/" + g.Subject()
	}
	return Grant{Binding: state.ObjectOf(g.BindingKey()).String(), Role: state.ObjectOf(g.RoleKey()).String(), Subject: subject, Rule: g.Rule()}
}

// policy returns a cluster's RBAC at a moment, the newest that is known when it is zero.
func (a *Service) policy(cluster string, at time.Time) (state.View, Policy, error) {
	st, ok := a.Replay.State(cluster)
	if !ok || noPolicy(st) {
		if a.Offline {
			return state.View{}, Policy{}, none("the log alone does not tell the policy: name the state it began with by --state, or say --from-empty when it begins with the cluster's first start")
		}
		return state.View{}, Policy{}, none("no role or binding of cluster %q is known; supply its state with: retrial import --cluster %s --state FILE, or follow it with: retrial serve --watch-clusters", cluster, phrase.ShellWord(cluster))
	}
	if at.IsZero() {
		view := st.RBAC(Latest)
		p := Policy{}
		if !view.At.IsZero() {
			p.At = &view.At
		}
		return view, p, nil
	}
	return st.RBAC(at), Policy{At: &at}, nil
}

// doubt enters what is not known.
func (p *Policy) doubt(keys []rbacindex.Key) {
	p.Known, p.Missing = true, []string{}
	for _, k := range keys {
		switch {
		case k.Name != "":
			p.Missing = append(p.Missing, k.String())
		case k.Namespace != "":
			p.Missing = append(p.Missing, k.Kind.String()+"s in "+k.Namespace)
		default:
			p.Missing = append(p.Missing, "all "+k.Kind.String()+"s")
			p.Known = false
		}
	}
}

// AccessRequest is the request a question is about, as it was understood.
type AccessRequest struct {
	Verb          string `json:"verb"`
	Resource      string `json:"resource"`
	Group         string `json:"group"`
	Subresource   string `json:"subresource"`
	Namespace     string `json:"namespace"`
	AllNamespaces bool   `json:"allNamespaces"`
	Name          string `json:"name"`
	Path          string `json:"path"`
}

// readQuestion reads a question; word is the resource as it was written.
func readQuestion(q url.Values) (out AccessRequest, word string, err error) {
	all, err := oneOf(q, "allNamespaces", "true", "false")
	if err != nil {
		return out, "", err
	}
	out = AccessRequest{Verb: q.Get("verb"), Namespace: q.Get("namespace"), AllNamespaces: all == "true", Name: q.Get("name"), Path: q.Get("path")}
	word = q.Get("resource")
	switch {
	case out.Verb == "":
		return out, "", Bad("verb is missing")
	case (word == "") == (out.Path == ""):
		return out, "", Bad("name a resource or a path, and not both")
	case out.Path != "" && out.Path[0] != '/':
		return out, "", Bad("path: %q does not begin with a slash", out.Path)
	case out.Path != "" && (out.Namespace != "" || out.Name != "" || out.AllNamespaces):
		return out, "", Bad("a path is in no namespace and has no name")
	case out.Namespace != "" && out.AllNamespaces:
		return out, "", Bad("name a namespace or ask for all of them, and not both")
	}
	return out, word, nil
}

// request completes a question by the words of a policy's rules.
func (out *AccessRequest) request(word string, policy *rbacindex.Snapshot) (r rbacindex.Attributes, hints []string, err error) {
	named := namedIn(policy)
	say := func(hint string) {
		if hint != "" {
			hints = append(hints, hint)
		}
	}
	hint, err := named.verb(out.Verb, word == "")
	if err != nil {
		return r, nil, Bad("verb: %w", err)
	}
	say(hint)
	if word == "" {
		return rbacindex.Attributes{Verb: out.Verb, Path: out.Path}, hints, nil
	}
	res, err := parseResource(word)
	if err != nil {
		return r, nil, Bad("resource: %w", err)
	}
	read, err := res.understand(named)
	if err != nil {
		return r, nil, Bad("resource: %w", err)
	}
	say(read)
	say(named.hint(&res))
	out.Resource, out.Group, out.Subresource = res.Name, res.Group, res.Sub
	if res.Group == "" && res.Name == "namespaces" && out.Namespace == "" && !out.AllNamespaces {
		out.Namespace = out.Name // as the apiserver reads requests for one namespace
	}
	r = rbacindex.Attributes{ResourceRequest: true, Verb: out.Verb, APIGroup: res.Group, Resource: res.Name, Subresource: res.Sub, Namespace: out.Namespace, Name: out.Name}
	return r, hints, nil
}

// WhoCanAnswer is who a request is granted to.
type WhoCanAnswer struct {
	Cluster string `json:"cluster"`
	Policy
	AccessRequest

	Subjects []Holder `json:"subjects"`
	// InNamespaces counts what was not asked about: subjects that RoleBindings allow it, in
	// each namespace, when no namespace was named.
	InNamespaces int `json:"inNamespaces"`
	// Hints say what may be wrong with the question.
	Hints []string `json:"hints,omitempty"`
}

// Holder is a subject the request is granted to in one scope, with all that grants it.
type Holder struct {
	Kind      string  `json:"kind"` // User, Group, ServiceAccount
	Name      string  `json:"name"`
	Namespace string  `json:"namespace"`
	Scope     string  `json:"scope"` // "cluster", or "namespace:" and its name
	Grants    []Grant `json:"grants"`
}

func (a *Service) whoCan(_ context.Context, q url.Values) (any, error) {
	cluster, at, err := moment(q)
	if err != nil {
		return nil, err
	}
	question, word, err := readQuestion(q)
	if err != nil {
		return nil, err
	}
	view, policy, err := a.policy(cluster, at)
	if err != nil {
		return nil, err
	}
	out := WhoCanAnswer{Cluster: cluster, Policy: policy, AccessRequest: question, Subjects: []Holder{}}
	r, hints, err := out.request(word, view.RBAC)
	if err != nil {
		return nil, err
	}
	out.Hints = hints
	out.doubt(view.Doubts(out.Namespace, out.AllNamespaces))
	// Without a namespace those of all are only counted.
	for _, acc := range view.RBAC.WhoCan(&r, out.Namespace == "") {
		if acc.Namespace != "" && out.Namespace == "" && !out.AllNamespaces {
			out.InNamespaces++
			continue
		}
		s := acc.Subject()
		h := Holder{Kind: s.Kind, Name: s.Name, Namespace: s.Namespace, Scope: "cluster", Grants: make([]Grant, 0, len(acc.Grants)+1)}
		if acc.Namespace != "" {
			h.Scope = "namespace:" + acc.Namespace
		}
		if acc.Superuser {
			h.Grants = append(h.Grants, Grant{Subject: "Group/" + acc.Name, Kind: KindSuperuser})
		}
		for _, g := range acc.Grants {
			h.Grants = append(h.Grants, sourceOf(g))
		}
		out.Subjects = append(out.Subjects, h)
	}
	return out, nil
}

// moment reads cluster and at.
func moment(q url.Values) (cluster string, at time.Time, err error) {
	if cluster = q.Get("cluster"); cluster == "" {
		return "", at, Bad("cluster is missing")
	}
	at, err = Instant(q, "at")
	return cluster, at, err
}

// CanAnswer is everything a subject may do.
type CanAnswer struct {
	Cluster string `json:"cluster"`
	Policy
	// Subject is a user name, "" when only groups are asked about.
	Subject string   `json:"subject"`
	Groups  []string `json:"groups"`
	// GroupsFrom is "requests": those its requests carried the last time, at GroupsSeen;
	// "asked": the question's; "name": what its name alone gives it. What the name gives is
	// always among them.
	GroupsFrom string     `json:"groupsFrom"`
	GroupsSeen *time.Time `json:"groupsSeen,omitempty"`
	// Stranger says that no request of the subject is stored and no binding names it: what it may is
	// what everybody of such a name may.
	Stranger  bool    `json:"stranger,omitempty"`
	Scopes    []Scope `json:"scopes"`
	Superuser bool    `json:"superuser"` // in system:masters: may do everything, whatever the rules
	// Request is what was asked about, null when that is everything; Scopes are empty then.
	Request *Decision `json:"request,omitempty"`
	Hints   []string  `json:"hints,omitempty"`
}

// Scope is what holds in one scope.
type Scope struct {
	Namespace string     `json:"namespace"` // "" is the whole cluster
	Rules     []HeldRule `json:"rules"`
	// MissingRoles are named by the subject's bindings and do not exist.
	MissingRoles []string `json:"missingRoles,omitempty"`
}

// HeldRule is a rule a subject holds, and by which grants.
type HeldRule struct {
	Rule
	By []Grant `json:"by"`
}

// Can says what a subject may do, or whether it may make one request.
func (a *Service) Can(ctx context.Context, q url.Values) (any, error) {
	cluster, at, err := moment(q)
	if err != nil {
		return nil, err
	}
	out := CanAnswer{Cluster: cluster, Subject: q.Get("subject"), Groups: []string{}, GroupsFrom: "asked", Scopes: []Scope{}}
	asked, err := GroupList(q.Get("group"))
	if err != nil {
		return nil, err
	}
	if name, ok := strings.CutPrefix(out.Subject, "group:"); ok {
		if name == "" {
			return nil, Bad("subject: group: is followed by no name")
		}
		out.Subject, asked = "", append(asked, name)
	}
	out.Subject = strings.TrimPrefix(out.Subject, "user:")
	if out.Subject == "" && len(asked) == 0 {
		return nil, Bad("subject is missing: a user name, system:serviceaccount:NAMESPACE:NAME, or group:NAME")
	}
	one, word := AccessRequest{}, ""
	if q.Get("verb")+q.Get("resource")+q.Get("path")+q.Get("name") != "" {
		if one, word, err = readQuestion(q); err != nil {
			return nil, err
		}
	}
	view, policy, err := a.policy(cluster, at)
	if err != nil {
		return nil, err
	}
	out.Policy = policy
	if out.Groups = asked; len(asked) == 0 {
		var seen time.Time
		if out.Groups, seen, err = a.Store.LastGroups(ctx, cluster, out.Subject, at); err != nil {
			return nil, err
		}
		if out.GroupsFrom = "requests"; seen.IsZero() {
			out.GroupsFrom = "name"
		} else {
			out.GroupsSeen = &seen
		}
	}
	if out.Subject != "" {
		out.Groups = append(out.Groups, leastpriv.GroupsOf(out.Subject)...)
	}
	slices.Sort(out.Groups)
	out.Groups = slices.Compact(out.Groups)
	out.Superuser = slices.Contains(out.Groups, groupMasters)
	if one.Verb == "" {
		a.fillCan(&out, &view, q.Get("namespace"))
	} else if err := out.decide(&view, one, word); err != nil {
		return nil, err
	}
	if out.Subject != "" && out.GroupsFrom == "name" && !view.RBAC.Names(out.Subject, false) {
		if err := a.stranger(ctx, &out, &view, at); err != nil {
			return nil, err
		}
	}
	for _, g := range asked {
		if g != groupMasters && !view.RBAC.Names(g, true) {
			out.Hints = append(out.Hints, fmt.Sprintf("no binding names the group %q", g))
		}
	}
	return out, nil
}

// stranger answers about a subject that no request and no binding names: a service account or a
// node may be there all the same. What everybody may must not pass for its rights: a name like that
// Of somebody who is known is taken for misspelt, and any other is marked.
func (a *Service) stranger(ctx context.Context, out *CanAnswer, view *state.View, at time.Time) error {
	if !at.IsZero() { // it may have been seen later
		if _, seen, err := a.Store.LastGroups(ctx, out.Cluster, out.Subject, time.Time{}); err != nil || !seen.IsZero() {
			return err
		}
	}
	there := state.Absent
	if st, ok := a.Replay.State(out.Cluster); ok {
		if at.IsZero() {
			at = Latest
		}
		if namespace, name, ok := authn.ServiceAccountUsername(out.Subject); ok {
			_, there = st.Version(state.ServiceAccounts, namespace, name, at)
		} else if node, ok := strings.CutPrefix(out.Subject, authn.PrefixNode); ok {
			_, there = st.Version(state.Nodes, "", node, at)
		}
	}
	if there == state.Present {
		return nil
	}
	text := fmt.Sprintf("no request of %q is stored and no binding names it", out.Subject)
	near, err := a.Store.NearSubjects(ctx, out.Cluster, out.Subject, 3)
	if err != nil {
		return err
	}
	for _, name := range Nearest(out.Subject, boundUsers(view.RBAC), 3) {
		if !slices.Contains(near, name) {
			near = append(near, name)
		}
	}
	if len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
		if there == state.Absent && len(out.Missing) == 0 {
			return none("%s To ask what somebody of that name would have, name the groups.", text)
		}
	}
	out.Stranger, out.Hints = true, append(out.Hints, text)
	return nil
}

// boundUsers returns the users and service accounts that bindings name.
func boundUsers(policy *rbacindex.Snapshot) (users []string) {
	policy.All(func(_ rbacindex.Key, object any) bool {
		var subjects []rbacv1.Subject
		namespace := ""
		switch o := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			subjects = o.Subjects
		case *rbacv1.RoleBinding:
			subjects, namespace = o.Subjects, o.Namespace
		}
		for _, s := range subjects {
			switch s.Kind {
			case rbacv1.UserKind:
				users = append(users, s.Name)
			case rbacv1.ServiceAccountKind:
				users = append(users, authn.PrefixServiceAccount+cmp.Or(s.Namespace, namespace)+":"+s.Name)
			}
		}
		return true
	})
	return users
}

// fillCan enters the rules of the whole cluster and of one namespace, or of all of them.
func (a *Service) fillCan(out *CanAnswer, view *state.View, namespace string) {
	doubted := map[rbacindex.Key]bool{}
	doubts := view.Doubts(namespace, namespace == "")
	for _, held := range view.RBAC.Can(out.Subject, out.Groups) {
		if namespace != "" && held.Namespace != "" && held.Namespace != namespace {
			continue
		}
		scope := Scope{Namespace: held.Namespace, Rules: make([]HeldRule, 0, len(held.Rules))}
		for _, r := range held.Rules {
			rule := HeldRule{Rule: ruleOf(&r.PolicyRule)}
			for _, by := range r.By {
				source := sourceOf(by.Grant)
				source.Verbs = by.Verbs
				rule.By = append(rule.By, source)
			}
			scope.Rules = append(scope.Rules, rule)
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

// doubtOwn enters what is not known; of roles only those matter that the subject's own
// bindings name.
func (out *CanAnswer) doubtOwn(doubts []rbacindex.Key, named map[rbacindex.Key]bool) {
	out.doubt(slices.DeleteFunc(doubts, func(k rbacindex.Key) bool {
		role := k.Kind == rbacindex.KindRole || k.Kind == rbacindex.KindClusterRole
		return role && !named[k]
	}))
}

// GroupList reads groups separated by commas; one with a comma in it is quoted, as in CSV.
func GroupList(text string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.TrimLeadingSpace, r.LazyQuotes = true, true
	list, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, Bad("group: %w", err)
	}
	if _, err := r.Read(); !errors.Is(err, io.EOF) {
		return nil, Bad("group: there is more than one line")
	}
	for i, g := range list {
		if list[i] = strings.TrimSpace(g); list[i] == "" {
			return nil, Bad("group: there is an empty name")
		}
	}
	return list, nil
}
