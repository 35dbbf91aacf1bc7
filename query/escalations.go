package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/escalation"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query/known"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
)

// EscalationsAnswer says who can become what.
type EscalationsAnswer struct {
	Cluster string `json:"cluster"`
	Policy
	// Subject is the user or group asked about, "" for all.
	Subject    string     `json:"subject"`
	Groups     []string   `json:"groups,omitempty"` // of the subject, as in CanAnswer
	GroupsFrom string     `json:"groupsFrom,omitempty"`
	GroupsSeen *time.Time `json:"groupsSeen,omitempty"`
	// Paths are the shortest to a goal: of the subject to each goal, or of everybody to the nearest. Count is how many of the latter exist.
	Paths []Path `json:"paths"`
	Count int    `json:"count"`
	// Reaches are the shortest paths of the subject to whom else it can become; ReachCount is how many there are.
	Reaches    []Path `json:"reaches,omitempty"`
	ReachCount int    `json:"reachCount,omitempty"`
	// TooLarge are the subjects, including Kubernetes' own, of which it is not known whether they reach a goal, because it takes too much
	// work to follow what they, or those they can become, may do; it is the subject asked about if that may reach more. TooLargeCount is
	// how many there are.
	TooLarge      []Node `json:"tooLarge,omitempty"`
	TooLargeCount int    `json:"tooLargeCount,omitempty"`
	// System counts the subjects of Kubernetes itself that were left out.
	System int `json:"system"`
	// AccountsKnown is false when unknown service accounts may exist.
	AccountsKnown bool     `json:"accountsKnown"`
	Hints         []string `json:"hints,omitempty"`
}

// Path is one way from a subject to another or to a goal.
type Path struct {
	From         Node       `json:"from"`
	To           Node       `json:"to"`
	Text         string     `json:"text"`         // the path in one line
	Presumptions int        `json:"presumptions"` // how many, over all steps
	Steps        []PathStep `json:"steps"`        // none: it is there
	// Holds is what makes the last one a cluster administrator, when no step gave it that.
	Holds []Needed `json:"holds,omitempty"`
	// Doubted are objects it rests on that may not grant what it takes: the answer to a write of theirs was lost.
	Doubted []string `json:"doubted,omitempty"`
	// TooLarge says that the path is not complete, because listing it takes too much work.
	TooLarge bool `json:"tooLarge,omitempty"`
}

// Node is a User, Group, ServiceAccount, Namespace (everything in it), Bound (the one before it with roles it bound to itself) or Goal.
type Node struct {
	Kind      string `json:"kind"`                // User, Group, ServiceAccount, Namespace, Bound, Goal
	Namespace string `json:"namespace,omitempty"` // of a ServiceAccount
	Name      string `json:"name"`
}

// PathStep is one step of a path: what it takes and whom it leads to.
type PathStep struct {
	Edge         string      `json:"edge"` // the way the step takes, as in docs/escalations.md
	From         Node        `json:"from"`
	To           Node        `json:"to"`
	Impersonated bool        `json:"impersonated"`       // From is; its requests are made with its name in headers
	Namespace    string      `json:"namespace"`          // where it is taken; "" is the whole cluster
	Roles        []BoundRole `json:"roles,omitempty"`    // that it binds or rewrites
	Presumes     []string    `json:"presumes,omitempty"` // beside the rights
	Requests     []Needed    `json:"requests"`           // all of them are needed
}

// BoundRole is a role that a step binds or rewrites, and where it is held.
type BoundRole struct {
	Role      string `json:"role"`
	Namespace string `json:"namespace"` // where it is held; "" is the whole cluster
}

// Needed is a request a step takes, and what grants it.
type Needed struct {
	Verb        string  `json:"verb"`
	Group       string  `json:"group"`
	Resource    string  `json:"resource"`
	Subresource string  `json:"subresource"`
	Namespace   string  `json:"namespace"`
	Name        string  `json:"name"`   // empty on create, or when any does
	Grants      []Grant `json:"grants"` // those that allow it
	// Role grants it when Grants is empty: one that an earlier step bound or rewrote.
	Role string `json:"role,omitempty"`
}

// EscalationsRequest asks who can make itself cluster administrator or a member of system:masters, at a moment. Without a subject and a
// group, it lists everybody who can, each by the shortest path; with them, that subject's shortest paths to both goals and to everybody
// else.
type EscalationsRequest struct {
	Asks[EscalationsAnswer] `question:"escalations"`
	Cluster                 string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"cluster the question is about (default: the only one there is)"`
	Subject                 string    `json:"subject" help:"subject to ask about alone, written as of can"`
	Groups                  []string  `json:"group" list:"csv" help:"groups the subject is in, as of can (default: those its requests carried)" flag:"group the subject is in, may be repeated (default: those its requests carried)"`
	System                  bool      `json:"includeSystem" help:"also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-*"`
	At                      time.Time `json:"at" help:"moment the question is about, such as 2026-11-20T11:36:00Z (default: the newest that is known)"`
	Limit                   int       `json:"limit" default:"100" min:"1" max:"10000" help:"list at most so many paths"`
}

// Escalations answers who can make itself cluster administrator, and how.
func (a *Service) Escalations(ctx context.Context, q EscalationsRequest) (out EscalationsAnswer, err error) {
	user, asked, err := readAsked(q.Subject, q.Groups)
	if err != nil {
		return out, err
	}
	out = EscalationsAnswer{Cluster: q.Cluster, Subject: user, Paths: []Path{}}
	view, policy, err := a.policy(ctx, q.Cluster, q.At)
	if err != nil {
		return out, err
	}
	out.Policy = policy
	out.doubt(view.Doubts("", true))
	accounts, err := a.accounts(ctx, q.Cluster, q.At)
	if err != nil {
		return out, err
	}
	out.AccountsKnown = accounts.Complete
	closure := escalation.NewBounds(view, accounts)
	pathsOf := func(list []escalation.Path) (out []Path) {
		for i := range list {
			out = append(out, pathOf(&list[i]))
		}
		return out
	}
	if out.Subject == "" && len(asked) == 0 {
		paths, count := closure.Reaching(func(n escalation.Node) bool { return q.System || !n.System() }, q.Limit)
		out.Paths, out.Count = append(out.Paths, pathsOf(paths)...), count
		if !q.System {
			_, out.System = closure.Reaching(escalation.Node.System, 1)
		}
		large, count := closure.TooLarge(nil, q.Limit)
		for _, n := range large {
			out.TooLarge = append(out.TooLarge, nodeOf(n))
		}
		out.TooLargeCount = count
		out.untold(len(out.Paths), out.Count, q.Limit)
		return out, nil
	}
	if user == "" && len(asked) == 1 && view.Certain() {
		if text, mistaken := known.Unbound(asked[0], true, view.RBAC); mistaken {
			return out, none("%s", text)
		}
	}
	var missing []string
	if out.Groups, out.GroupsFrom, out.GroupsSeen, missing, err = a.groupsOf(ctx, q.Cluster, user, asked, q.At); err != nil {
		return out, err
	}
	out.Missing = append(out.Missing, missing...)
	reached := closure.Reach(user, out.Groups, q.Limit)
	out.Groups = reached.Groups
	out.Paths, out.Reaches = append(out.Paths, pathsOf(reached.Goals)...), pathsOf(reached.Others)
	out.Count, out.ReachCount = len(out.Paths), reached.Count
	if reached.TooLarge {
		out.TooLarge, out.TooLargeCount = []Node{nodeOf(reached.Subject)}, 1
	}
	out.untold(len(out.Reaches), out.ReachCount, q.Limit)
	if user != "" && out.GroupsFrom == "name" && !view.RBAC.Names(user, false) {
		text, _, err := a.stranger(ctx, q.Cluster, user, &view, q.At, len(out.Missing) == 0)
		if err != nil {
			return out, err
		}
		if text != "" {
			out.Hints = append(out.Hints, text, "this is what everybody of such a name can reach")
		}
	}
	return out, nil
}

// untold hints at paths that were asked for and are not listed.
func (out *EscalationsAnswer) untold(told, count, limit int) {
	if told < min(count, limit) {
		out.Hints = append(out.Hints, fmt.Sprintf("%s of %d listed: listing more takes too much work", phrase.Number(told, "path"), count))
	}
}

func (a *Service) accounts(ctx context.Context, cluster string, at time.Time) (out escalation.Accounts, err error) {
	st, err := a.Replay.State(ctx, cluster, orLatest(at))
	if err != nil || st == nil {
		return out, err
	}
	var there []state.Account
	there, out.Complete = st.ServiceAccounts(orLatest(at))
	out.There = make([]escalation.Account, len(there))
	for i, x := range there {
		out.There[i] = escalation.Account(x)
	}
	return out, nil
}

func nodeOf(n escalation.Node) Node { return Node{string(n.Kind), n.Namespace, n.Name} }

func pathOf(p *escalation.Path) Path {
	out := Path{From: nodeOf(p.From), To: nodeOf(p.To), Presumptions: p.Presumptions(), Steps: []PathStep{}, Holds: neededOf(p.Holds),
		TooLarge: p.TooLarge}
	for i := range p.Steps {
		s := &p.Steps[i]
		step := PathStep{Edge: string(s.Edge), From: nodeOf(s.From), To: nodeOf(s.To), Impersonated: s.Impersonated, Namespace: s.Namespace,
			Presumes: s.Presumes, Requests: neededOf(s.Requests)}
		for _, r := range s.Roles {
			step.Roles = append(step.Roles, BoundRole{r.Role.String(), r.Namespace})
		}
		out.Steps = append(out.Steps, step)
	}
	for _, k := range p.Doubted {
		out.Doubted = append(out.Doubted, k.String())
	}
	out.Text = pathText(p) + PerhapsText(out.Doubted)
	if p.TooLarge {
		out.Text += "; too large to list in full"
	}
	return out
}

func neededOf(requests []escalation.Request) []Needed {
	var out []Needed
	for _, r := range requests {
		x := Needed{Verb: r.Attributes.Verb, Group: r.Attributes.APIGroup, Resource: r.Attributes.Resource,
			Subresource: r.Attributes.Subresource,
			Namespace:   r.Attributes.Namespace, Name: r.Attributes.Name, Grants: []Grant{}}
		for _, g := range r.Grants {
			x.Grants = append(x.Grants, sourceOf(g))
		}
		if r.Role != nil {
			x.Role = roleText(*r.Role)
		}
		out = append(out, x)
	}
	return out
}

// roleText names a role; one without a name was made on the way.
func roleText(k rbacindex.Key) string {
	if k.Name == "" {
		return "a new " + k.Kind.String()
	}
	return k.String()
}

// pathText returns a path in one line: whom it leads over, by what, and which bindings give it.
func pathText(p *escalation.Path) string {
	text := p.From.String()
	for i := range p.Steps {
		s := &p.Steps[i]
		text += " → (" + stepText(s) + ") → " + s.To.String()
	}
	if by := bindingsOf(p.Holds); len(by) > 0 {
		text += ", which is " + escalation.ClusterAdmin + " by " + strings.Join(by, ", ")
	}
	return text
}

func stepText(s *escalation.Step) string {
	text := string(s.Edge)
	if s.Namespace != "" {
		text += " in " + s.Namespace
	}
	for i, r := range s.Roles {
		if i > 0 {
			text += ","
		}
		text += " of " + roleText(r.Role)
	}
	if by := bindingsOf(s.Requests); len(by) > 0 {
		text += " by " + strings.Join(by, ", ")
	}
	return text
}

// bindingsOf names one grant's binding for each request, each once.
func bindingsOf(requests []escalation.Request) []string {
	var out []string
	for _, r := range requests {
		by := ""
		switch {
		case len(r.Grants) > 0:
			by = content.ObjectOf(r.Grants[0].BindingKey()).String()
		case r.Role != nil:
			by = roleText(*r.Role)
		}
		if by != "" && !slices.Contains(out, by) {
			out = append(out, by)
		}
	}
	return out
}

// Text returns a node as tables show it.
func (n Node) Text() string {
	switch {
	case n.Kind == "Goal":
		return n.Name
	case n.Namespace != "":
		return n.Kind + " " + n.Namespace + "/" + n.Name
	}
	return n.Kind + " " + n.Name
}

// PerhapsText says which objects in doubt a path rests on.
func PerhapsText(doubted []string) string {
	if len(doubted) == 0 {
		return ""
	}
	return "; perhaps: by a write whose answer was lost, of " + strings.Join(doubted, ", ")
}

// LastText returns whom a path has led to before the goal.
func (p *Path) LastText() string {
	if n := len(p.Steps); n > 0 {
		return p.Steps[n-1].To.Text()
	}
	return p.From.Text()
}
