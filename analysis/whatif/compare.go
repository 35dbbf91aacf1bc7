package whatif

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/implied"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/verdict"
)

// Options of a comparison.
type Options struct {
	// Chain are the authorizers that decide; nil: Node and RBAC, as nearly all apiservers have them.
	Chain *authz.Chain
	// Graph is what is known of nodes' pods; nil: nothing.
	Graph node.Graph
	// Recorded compares with what was decided when a request came, and not with what the policy before the draft decides.
	Recorded bool
	// Subjects limits the comparison to requests of these users; none: of all.
	Subjects []string
}

// Comparison takes in verdicts and keeps the distinct accesses of those whom a draft concerns. Its memory grows with those, not with
// events. It is not safe for concurrent use.
type Comparison struct {
	o        Options
	sim      *Simulation
	concerns holders
	roles    map[rbacindex.Key]bool // that change
	who      map[string]*identity
	accesses map[accessKey]*use
	strings  content.Interner

	unjudged   map[string]int64
	unreadable int64
	first      time.Time
	last       time.Time
}

// Count says how many requests were alike, when the first and the last of them were received, and has audit IDs of some.
type Count struct {
	Requests    int64
	First, Last time.Time
	AuditIDs    []string
}

// identity is a user with a set of groups.
type identity struct {
	user      event.User
	concerned bool
}

// accessKey is one distinct question to the authorizers.
type accessKey struct {
	who                                                  *identity
	check                                                string
	resource                                             bool
	verb, namespace, group, res, subresource, name, path string
	or                                                   string           // the name that is as good
	wanted                                               string           // rules that are as good to hold, as JSON
	perhaps                                              bool             // it is not certain that it was asked
	other                                                bool             // another authorizer than RBAC allowed it when it was asked
	decided                                              verdict.Decision // where the record is what is compared with; else none
}

// use is how often a question was asked, and what was decided.
type use struct {
	count, allowed, refused int64
	first, last             time.Time
	sample                  []string
	wanted                  []rbacv1.PolicyRule
}

// mostSample bounds the audit IDs of an access.
const mostSample = 3

// New returns a comparison of the policies before and after a draft.
func New(sim *Simulation, o Options) *Comparison {
	if o.Chain == nil {
		o.Chain = authz.Assume(0)
	}
	c := &Comparison{o: o, sim: sim, concerns: holdersOf(sim), roles: map[rbacindex.Key]bool{}, who: map[string]*identity{},
		accesses: map[accessKey]*use{}, unjudged: map[string]int64{}}
	for _, k := range sim.Changed {
		if k.Kind == rbacindex.KindRole || k.Kind == rbacindex.KindClusterRole {
			c.roles[k] = true
		}
	}
	return c
}

// Reads returns whose requests are to be observed, as Store.History takes them; empty: everybody's.
func (c *Comparison) Reads() []string {
	switch {
	case len(c.o.Subjects) > 0:
		return c.o.Subjects
	case len(c.concerns.groups) > 0 || len(c.roles) > 0: // whoever binds a changed role is concerned, too
		return nil
	}
	return slices.Sorted(maps.Keys(c.concerns.users))
}

// Observe takes in one request and its verdict, or one of many that are alike. Nothing of them is kept.
func (c *Comparison) Observe(e *event.Event, v *verdict.Verdict, n Count) {
	if n.Requests <= 0 {
		return
	}
	if c.first.IsZero() || n.First.Before(c.first) {
		c.first = n.First
	}
	if n.Last.After(c.last) {
		c.last = n.Last
	}
	u := e.EffectiveUser()
	if u.Username == "" {
		return
	}
	who := c.identify(u)
	if v.Outcome != verdict.OutcomeMatch && v.Outcome != verdict.OutcomeAmbiguous {
		if who.concerned && v.Outcome != verdict.OutcomeNotJudged {
			c.unjudged[strings.TrimSpace(v.Outcome.String()+" "+v.Class)] += n.Requests
		}
		return
	}
	if who.concerned && c.asks(u) {
		k := c.keyOf(who, &v.Attributes)
		k.other = v.Replayed == verdict.DecisionAllow && v.Authorizer != verdict.AuthorizerRBAC
		c.add(k, n, v.Recorded, nil)
	}
	c.implied(who, e, v, n)
}

// asks reports whether a user is one of those who are asked about.
func (c *Comparison) asks(u *event.User) bool {
	return len(c.o.Subjects) == 0 || slices.Contains(c.o.Subjects, u.Username)
}

// implied takes in the checks behind a request that was let through.
func (c *Comparison) implied(who *identity, e *event.Event, v *verdict.Verdict, n Count) {
	requestor := who
	if e.ImpersonatedUser != nil {
		requestor = c.identify(&e.User)
	}
	done := e.Code() == 0 || e.Code() < 300
	for i := range v.Implied {
		check := &v.Implied[i]
		by, user := who, e.EffectiveUser()
		if check.ByRequestor() {
			by, user = requestor, &e.User
		}
		decided := check.Recorded
		if decided == verdict.DecisionNone {
			decided = check.Replayed
		}
		role := c.boundRole(check)
		switch {
		case !c.asks(user) || !by.concerned && !c.roles[role]:
			continue
		case check.Attributes.Verb == "" || check.Replayed == verdict.DecisionNone && check.Recorded == verdict.DecisionNone:
			if done {
				c.unreadable += n.Requests
			}
			continue
		case !check.ByRequestor() && !done && check.Recorded != verdict.DecisionForbid && check.Check != verdict.CheckWebsocket:
			continue // it failed otherwise, and nobody knows whether the check was made
		}
		k := c.keyOf(by, &check.Attributes)
		k.check, k.perhaps = check.Check, check.Perhaps != ""
		switch check.Check {
		case verdict.CheckSignerApprove, verdict.CheckSignerSign, verdict.CheckSignerAttest:
			k.name = implied.SignerOf(check, e, &v.Attributes)
			if domain, _, ok := strings.Cut(k.name, "/"); ok {
				k.or = c.strings.Str(domain + "/*")
			}
			k.perhaps = k.perhaps || k.name == k.or // which signer it was is not known
		case verdict.CheckOwnerFinalizers, verdict.CheckClaimBinding, verdict.CheckClaimDriver:
			k.perhaps = true // it may pass by another right, too
		case verdict.CheckRoleEscalate:
			rules, err := json.Marshal(check.Wanted)
			if err != nil { // strings alone: it cannot fail
				c.unreadable += n.Requests
				continue
			}
			k.wanted = c.strings.Str(string(rules))
		}
		c.add(k, n, decided, check.Wanted)
	}
}

// boundRole returns the role that a check to bind is about, the zero key for other checks.
func (c *Comparison) boundRole(check *verdict.Implied) rbacindex.Key {
	if check.Check != verdict.CheckRoleBind {
		return rbacindex.Key{}
	}
	return roleOf(&check.Attributes)
}

// roleOf returns the role that a right to bind is about.
func roleOf(a *verdict.Attributes) rbacindex.Key {
	ref := rbacv1.RoleRef{APIGroup: a.APIGroup, Kind: "ClusterRole", Name: a.Name}
	if a.Resource == "roles" {
		ref.Kind = "Role"
	}
	return rbacindex.RoleKey(&ref, a.Namespace)
}

// identify returns a user with its groups, whatever their order.
func (c *Comparison) identify(u *event.User) *identity {
	groups := slices.Clone(u.Groups)
	slices.Sort(groups)
	groups = slices.Compact(groups)
	key := u.Username + "\x00" + strings.Join(groups, "\x00")
	if who, ok := c.who[key]; ok {
		return who
	}
	for i := range groups {
		groups[i] = c.strings.Str(groups[i])
	}
	who := &identity{user: event.User{Username: c.strings.Str(u.Username), Groups: groups}}
	who.concerned = c.concerns.has(who.user.Username, groups)
	c.who[strings.Clone(key)] = who
	return who
}

func (c *Comparison) keyOf(who *identity, a *verdict.Attributes) accessKey {
	if !a.ResourceRequest {
		return accessKey{who: who, verb: a.Verb, path: a.Path}
	}
	return accessKey{who: who, resource: true, verb: a.Verb, namespace: a.Namespace, group: a.APIGroup, res: a.Resource,
		subresource: a.Subresource, name: a.Name}
}

// add counts a question. The strings of its key alias an event's buffer and are copied once.
func (c *Comparison) add(k accessKey, n Count, decided verdict.Decision, wanted []rbacv1.PolicyRule) {
	if c.o.Recorded || c.o.Chain.Worded() { // a webhook may answer the same question otherwise each time
		k.decided = decided
	}
	u, ok := c.accesses[k]
	if !ok {
		for _, s := range []*string{&k.verb, &k.namespace, &k.group, &k.res, &k.subresource, &k.name, &k.path, &k.check} {
			*s = c.strings.Str(*s)
		}
		u = &use{first: n.First, last: n.Last}
		if k.wanted != "" {
			for i := range wanted {
				u.wanted = append(u.wanted, *wanted[i].DeepCopy())
			}
		}
		c.accesses[k] = u
	}
	u.count += n.Requests
	switch decided {
	case verdict.DecisionAllow:
		u.allowed += n.Requests
	case verdict.DecisionForbid:
		u.refused += n.Requests
	}
	if n.First.Before(u.first) {
		u.first = n.First
	}
	if n.Last.After(u.last) {
		u.last = n.Last
	}
	for _, id := range n.AuditIDs {
		if len(u.sample) < mostSample && id != "" && !slices.Contains(u.sample, id) {
			u.sample = append(u.sample, strings.Clone(id))
		}
	}
}

// attributes returns the question as authorizers are asked it.
func (k *accessKey) attributes() verdict.Attributes {
	return verdict.Attributes{Verb: k.verb, ResourceRequest: k.resource, APIGroup: k.group, Resource: k.res, Subresource: k.subresource,
		Namespace: k.namespace, Name: k.name, Path: k.path}
}

// holders are the users and groups that changed objects name.
type holders struct{ users, groups map[string]bool }

// holdersOf returns whom the changed objects of a simulation concern: those that a changed binding names or named, and those of bindings
// that name a changed role.
func holdersOf(s *Simulation) holders {
	h := holders{users: map[string]bool{}, groups: map[string]bool{}}
	for _, view := range [...]*rbacindex.Snapshot{s.Before.RBAC, s.Before.Most, s.After.RBAC, s.After.Most} {
		if view == nil {
			continue
		}
		for _, k := range s.Changed {
			h.add(k, view)
			view.ReferencingRole(k, func(binding rbacindex.Key) bool {
				h.add(binding, view)
				return true
			})
		}
	}
	return h
}

// add adds the subjects of a binding.
func (h *holders) add(k rbacindex.Key, view *rbacindex.Snapshot) {
	object, _ := view.Get(k)
	subjects, _, _ := rbacindex.BindingOf(object)
	for i := range subjects {
		if s := &subjects[i]; s.Kind == rbacv1.GroupKind {
			h.groups[s.Name] = true
		} else {
			h.users[rbacindex.UserOf(s, k.Namespace)] = true
		}
	}
	delete(h.users, "") // subjects that never match
}

// has reports whether a user in some groups is one of them.
func (h *holders) has(user string, groups []string) bool {
	return h.users[user] || slices.ContainsFunc(groups, func(g string) bool { return h.groups[g] })
}
