package escalation

import (
	"slices"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
)

// path builds the steps of a walk through the graph, as far as the budget of steps allows.
func (g *graph) path(e *effort, w who, links []*link) Path {
	p := Path{From: w.node}
	t := teller{g: g, e: e, who: w, at: vertex{at: atHeld, a: -1}, settled: true}
	var before []teller // each step's
	var of []*link
	for i := 0; i < len(links); i++ {
		l := links[i]
		if l.way == g.book.member {
			t.pass(l.to)
			continue
		}
		if !e.take(stepSteps) {
			for _, l := range links[i:] {
				if l.way == g.book.member {
					t.pass(l.to)
				} else {
					t.arrive(l.to)
				}
			}
			break
		}
		s := Step{Edge: g.book.ways[l.way].edge, From: t.node(), Impersonated: t.assumed, Namespace: l.ns}
		if x := g.book.ways[l.way].presumes; x != "" {
			s.Presumes = append(s.Presumes, x)
		}
		before, of = append(before, t), append(of, l)
		t.arrive(l.to)
		absent := g.absent(l)
		// Nodes that stand for many are passed through: the step ends at the one that is needed.
		for !t.settled && i+1 < len(links) {
			i++
			absent = absent || g.absent(links[i])
			t.pass(links[i].to)
		}
		if absent {
			s.Presumes = append(s.Presumes, presumesAccount)
		}
		s.To = t.end()
		if l.ns == everySpace {
			here := *l
			here.ns = s.To.Name
			l, of[len(of)-1], s.Namespace = &here, &here, here.ns
		}
		if l.way == g.book.bind || l.way == g.book.escalate {
			t.given = nil
			if l.role >= 0 {
				t.given = &g.roles[l.role].key
			} else if l.by == byFresh {
				t.given = &rbacindex.Key{Kind: rbacindex.KindClusterRole}
				if l.ns != "" {
					t.given = &rbacindex.Key{Kind: rbacindex.KindRole, Namespace: l.ns}
				}
			}
		}
		p.Steps = append(p.Steps, s)
	}
	p.To = t.end()
	if t.at == (vertex{at: atGoal, a: goalAdmin}) && (len(links) == 0 || links[len(links)-1].way == g.book.member) {
		p.Holds = []Request{t.ask(g.book.list[g.book.admin].attributes("", ""))}
	}
	// The rest of the path determines which of the roles it may bind are needed.
	var needs []needed
	note := func(requests []Request) {
		for i := range requests {
			if n := requests[i].needs; n.stack != nil {
				needs = append(needs, n)
			}
		}
	}
	note(p.Holds)
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s, l := &p.Steps[i], of[i]
		switch {
		case l.way == g.book.bind && l.role < 0:
			before[i].binds(s, g.stack(g.vertex(l.to).a), needs)
		case l.way == g.book.bind:
			before[i].bind(s, boundRole{holding{l.ns, l.role}, l.by, l.name})
		case l.way == g.book.escalate:
			if n := before[i].rewrites(s, l); n.stack != nil {
				needs = append(needs, n)
			}
		case l.way == g.book.assumeGroup:
			before[i].assumesGroup(s, l)
		case l.way == g.book.adminToken:
			s.Requests = []Request{before[i].ask(pattern{"create", "", "serviceaccounts", "token"}.attributes(l.ns, s.To.Name))}
		case l.way == g.book.adminAssume:
			s.Requests = []Request{before[i].ask(pattern{"impersonate", "", "serviceaccounts", ""}.attributes(l.ns, s.To.Name))}
		default:
			before[i].goes(s, l)
		}
		note(s.Requests)
	}
	p.TooLarge = e.spent()
	return p
}

// needed is a needed role of a stack.
type needed struct {
	stack *stack
	holding
}

// teller follows a path as the identity that makes its requests.
type teller struct {
	g       *graph
	e       *effort
	who     who
	assumed bool   // it is impersonated
	space   string // all rights in this namespace are held
	given   *rbacindex.Key
	stacks  []*stack // roles bound before
	at      vertex
	settled bool // at is an identity, or an end
}

// node returns who makes the next step's requests.
func (t *teller) node() Node {
	if t.space != "" {
		return Node{Kind: Namespace, Name: t.space}
	}
	return t.who.node
}

// become makes another identity the one that makes requests.
func (t *teller) become(w who, assumed bool) {
	t.who, t.assumed, t.settled = w, assumed, true
	t.space, t.given, t.stacks = "", nil, nil
}

// arrive moves to what a vertex stands for.
func (t *teller) arrive(v int32) {
	t.at, t.settled = t.g.vertex(v), false
	switch t.at.at {
	case atHeld, atAssumed:
		t.become(t.g.who(t.at.a), t.at.at == atAssumed)
	case atAlone:
		id := &t.g.ids[t.at.a]
		t.become(who{node: id.node, groups: []string{id.name, kubenames.Authenticated}}, true)
	case atBound, atBoundAssumed:
		t.stacks, t.settled = append(slices.Clone(t.stacks), t.g.stack(t.at.a)), true
	case atSpace:
		t.space, t.settled = t.g.spaces[t.at.a], true
	case atGoal:
		t.settled = true
	}
}

// pass moves on at no cost. An identity stays who it is, whatever it is a member of.
func (t *teller) pass(v int32) {
	to := t.g.vertex(v)
	if t.settled {
		switch to.at {
		case atHeld, atAssumed, atBoundAssumed, atSpace:
			t.at = to
			return
		}
	}
	t.arrive(v)
}

// end returns the node that has been reached.
func (t *teller) end() Node {
	switch t.at.at {
	case atGoal:
		if t.at.a == goalMasters {
			return Node{Kind: Goal, Name: Masters}
		}
		return Node{Kind: Goal, Name: ClusterAdmin}
	case atSpace:
		return Node{Kind: Namespace, Name: t.g.spaces[t.at.a]}
	case atBound, atBoundAssumed:
		return Node{Kind: Bound, Namespace: t.who.node.Namespace, Name: t.who.node.Name}
	}
	return t.node()
}

// ask adds a request and everything that grants it.
func (t *teller) ask(a rbacindex.Attributes) Request {
	a.User, a.Groups = t.who.user, t.who.groups
	r := Request{Attributes: a}
	if r.Grants = t.e.authorize(t.g.rbac, &a); len(r.Grants) > 0 {
		return r
	}
	for _, s := range t.stacks {
		for _, b := range s.roles {
			if k := t.g.roles[b.role].key; (b.namespace == "" || b.namespace == a.Namespace) && t.g.allows(t.e, k, &a) {
				r.Role, r.needs = &k, needed{s, b.holding}
				return r
			}
		}
	}
	if t.space != "" {
		r.Role = t.given
	}
	return r
}

// allowed reports whether anything grants a request.
func (r *Request) allowed() bool { return len(r.Grants) > 0 || r.Role != nil }

// askAny adds the first of several requests that is allowed.
func (t *teller) askAny(any []ability, namespace string, names ...string) Request {
	var first Request
	for i, what := range any {
		for j, name := range names {
			r := t.ask(t.g.book.list[what].attributes(namespace, name))
			if r.allowed() {
				return r
			}
			if i+j == 0 {
				first = r
			}
		}
	}
	return first
}

// allows reports whether a role's rules allow a request.
func (h *holdings) allows(e *effort, k rbacindex.Key, a *rbacindex.Attributes) bool {
	o, ok := h.rbac.Get(k)
	if !ok || !e.take(1) {
		return false
	}
	rules, _ := rbacindex.RulesOf(o)
	for i := range rules {
		if r := &rules[i]; !e.take(len(r.Verbs) + len(r.APIGroups) + len(r.Resources) + len(r.ResourceNames)) {
			return false
		}
		if rbacindex.RuleAllows(a, &rules[i]) {
			return true
		}
	}
	return false
}

// goes adds the requests of a way of the rulebook.
func (t *teller) goes(s *Step, l *link) {
	w := &t.g.book.ways[l.way]
	ns := l.ns
	if ns == "" && !w.wide && s.To.Kind == ServiceAccount {
		ns = s.To.Namespace
	}
	for _, x := range w.wants {
		switch x.name {
		case free:
			s.Requests = append(s.Requests, t.askAny(x.any, ns, ""))
		case chosen:
			s.Requests = append(s.Requests, t.askAny(x.any, ns, l.name))
		case target:
			s.Requests = append(s.Requests, t.askAny(x.any, ns, s.To.Name))
		case signer:
			s.Requests = append(s.Requests, t.askAny(x.any, ns, signerClient, signerDomain))
		}
	}
}

// assumesGroup adds what impersonating a group takes.
func (t *teller) assumesGroup(s *Step, l *link) {
	b := t.g.book
	s.Requests = append(s.Requests, t.askAny([]ability{b.impGroups}, "", s.To.Name))
	r := t.askAny([]ability{b.impUsers}, "", l.name)
	if !r.allowed() {
		r = t.askAny([]ability{b.impAccounts}, l.ns, l.name)
	}
	s.Namespace = ""
	s.Requests = append(s.Requests, r)
}

// binding adds how a binding is written.
func (t *teller) binding(by manner, ns, name string) []Request {
	w := t.g.book.clusterBindings()
	if ns != "" {
		w = t.g.book.roleBindings()
	}
	return t.writes(w, by, ns, name)
}

func (t *teller) writes(w writes, by manner, ns, name string) []Request {
	create := func(name string) Request { return t.askAny([]ability{w.create}, ns, name) }
	change := func() Request { return t.askAny([]ability{w.patch, w.update}, ns, name) }
	switch by {
	case byApply:
		return []Request{create(name), change()}
	case byChange:
		return []Request{change()}
	}
	return []Request{create("")}
}

// bind adds what binding a role takes.
func (t *teller) bind(s *Step, r boundRole) {
	g := t.g
	k := g.roles[r.role].key
	if r.by == byChange && r.name == "" {
		r.name = g.bindingTo(t.e, k, r.namespace)
	}
	verb := g.book.bindCluster
	if k.Kind == rbacindex.KindRole {
		verb = g.book.bindRole
	}
	s.Roles = append(s.Roles, RoleAt{k, r.namespace})
	s.Requests = append(s.Requests, t.binding(r.by, r.namespace, r.name)...)
	s.Requests = append(s.Requests, t.askAny([]ability{verb}, r.namespace, k.Name))
}

// binds does the same for those roles that the rest of the path needs.
func (t *teller) binds(s *Step, of *stack, needs []needed) {
	for _, r := range of.roles {
		if t.e.take(len(needs)) && slices.Contains(needs, needed{of, r.holding}) {
			t.bind(s, r)
			s.Namespace = r.namespace
		}
	}
	if len(s.Roles) != 1 {
		s.Namespace = ""
	}
}

// bindingTo returns the first binding to a role in a scope.
func (h *holdings) bindingTo(e *effort, k rbacindex.Key, ns string) string {
	name := ""
	h.rbac.ReferencingRole(k, func(b rbacindex.Key) bool {
		if b.Namespace == ns && (name == "" || b.Name < name) {
			name = b.Name
		}
		return e.take(1)
	})
	return name
}

// rewrites adds what rewriting a role takes, and finds which of the roles bound before it needs.
func (t *teller) rewrites(s *Step, l *link) needed {
	g, b := t.g, t.g.book
	w, verb := b.clusterRoles(), b.escCluster
	if l.ns != "" {
		w, verb = b.plainRoles(), b.escRole
	}
	if l.by == byFresh {
		t.renews(s, l, w, verb)
		return needed{}
	}
	k := g.roles[l.role].key
	held := RoleAt{Role: k}
	if s.To.Kind == Namespace {
		held.Namespace = s.To.Name
	}
	s.Roles = []RoleAt{held}
	s.Requests = t.writes(w, l.by, l.ns, k.Name)
	name := k.Name
	if l.by == byCreate {
		name = ""
	}
	s.Requests = append(s.Requests, t.askAny([]ability{verb}, l.ns, name))
	for _, of := range t.stacks {
		if !t.e.take(len(of.roles)) {
			break
		}
		for _, r := range of.roles {
			if r.role == l.role && r.namespace == held.Namespace {
				return needed{of, r.holding}
			}
		}
	}
	return needed{}
}

// renews adds what creating a role and binding it takes.
func (t *teller) renews(s *Step, l *link, w writes, escalate ability) {
	b := t.g.book
	bind, name := b.bindCluster, ""
	if l.ns != "" {
		bind = b.bindRole
	}
	if l.role >= 0 {
		k := t.g.roles[l.role].key
		s.Roles, name = []RoleAt{{k, l.ns}}, k.Name
	}
	create, any := t.askAny([]ability{w.create}, l.ns, ""), t.askAny([]ability{escalate}, l.ns, "")
	if create.allowed() && any.allowed() {
		s.Requests = append(s.Requests, create, any)
	} else {
		s.Requests = append(t.writes(w, byApply, l.ns, name), t.askAny([]ability{escalate}, l.ns, name))
	}
	by := byCreate
	if l.name != "" {
		by = byApply
	}
	s.Requests = append(s.Requests, t.binding(by, l.ns, l.name)...)
	s.Requests = append(s.Requests, t.askAny([]ability{bind}, l.ns, name))
}
