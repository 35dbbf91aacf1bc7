// Package authz answers for the authorizers of a kube-apiserver: the privileged group, then
// those that are configured, in their order. It mirrors the union of k8s.io/apiserver
// (pkg/authorization/union) over the authorizers of k8s.io/kubernetes
// (pkg/kubeapiserver/authorizer).
//
//	user, attributes ─▶ masters ─▶ node ─▶ rbac ─▶ …        the first that allows or refuses ends it
//	                       │         │       │
//	                       └─────────┴───────┴─ no opinion: its reason is kept, the next is asked
//
// Answers are three-valued. What an authorizer decides by may not be known (a node's pods, a
// role nobody has seen, a policy file that was not given): such an authorizer is open. RBAC,
// Node and ABAC only add, so that an open one of them leaves an allow of another alone. A
// webhook, or an authorizer nobody knows, can answer anything: it is free, and the decision is
// then that of all others. Answer tells the two apart.
//
// The package is pure. It sees who asks and for what, the configuration and the state, never
// what was recorded.
package authz

import (
	"slices"
	"strconv"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/release"
	"github.com/retrial-io/retrial/verdict"
)

// DelegationCache is how long a delegating server acts on an answer of its kube-apiserver,
// whatever it was.
const DelegationCache = 10 * time.Second

// maxAuthorizers bounds a chain that is followed one by one, masters and paths not counted.
const maxAuthorizers = 18

// namingOf returns the naming of an apiserver.
func namingOf(cfg *config.APIServer) naming {
	switch {
	case cfg.Minor == 0:
		return eitherNaming
	case cfg.Release().Has(release.NamedReasons):
		return named
	}
	return unnamed
}

// New compiles the chain of a configuration. nil is an apiserver about which nobody has said
// anything: it is taken to ask Node and then RBAC, as nearly all do.
//
// A delegating server's chain is New's of its own configuration only as far as it decides
// itself, see Delegated.
func New(cfg *config.APIServer) *Chain {
	if cfg == nil {
		return Assume(0)
	}
	c := &Chain{links: []link{{verdict.AuthorizerMasters, newMasters()}}, naming: namingOf(cfg)}
	z := &cfg.Authorization
	if len(z.AlwaysAllowPaths) > 0 {
		c.links = append(c.links, link{verdict.AuthorizerPaths, newPaths(z.AlwaysAllowPaths)})
	}
	switch {
	case z.Unknown != "":
		c.links = append(c.links, link{"unknown", newUnmodelled(z.Unknown)})
	case len(z.Authorizers) > maxAuthorizers:
		c.links = append(c.links, link{"unknown", newUnmodelled("more than " + strconv.Itoa(maxAuthorizers) + " authorizers")})
	default:
		for i := range z.Authorizers {
			c.links = append(c.links, newLink(&z.Authorizers[i], cfg))
		}
	}
	return c
}

// Assume is New of an apiserver of which nothing is known but its Kubernetes minor version, 0
// for a current one.
func Assume(minor int) *Chain {
	cfg := &config.APIServer{Minor: minor}
	return &Chain{assumed: true, naming: namingOf(cfg), links: []link{
		{verdict.AuthorizerMasters, newMasters()},
		{verdict.AuthorizerNode, newNodes(nil, cfg)},
		{verdict.AuthorizerRBAC, newRBAC(&config.Authorizer{}, cfg)},
	}}
}

// Delegated compiles the chain of an aggregated API server: it lets masters and some paths
// through itself and asks its kube-apiserver about all else, whose configuration is kube (nil
// when nothing is known of it).
func Delegated(cfg, kube *config.APIServer) *Chain {
	c, behind := New(cfg), New(kube)
	c.delegated, c.outer, c.naming = true, c.naming, behind.naming
	for i := range c.links {
		if !c.links[i].local {
			c.links = c.links[:i]
			break
		}
	}
	c.links = append(c.links, behind.links[1:]...)
	c.assumed = behind.assumed
	return c
}

// Assumed reports whether the chain is taken for granted, because nobody has said how the
// apiserver is configured.
func (c *Chain) Assumed() bool { return c.assumed }

// Worded reports whether it has a webhook, whose reasons are in words of its own.
func (c *Chain) Worded() bool {
	return slices.ContainsFunc(c.links, func(l link) bool { return l.free })
}

// Delegated reports whether the server asks its kube-apiserver.
func (c *Chain) Delegated() bool { return c.delegated }

// Names returns the authorizers in the order in which they are asked.
func (c *Chain) Names() []string {
	out := make([]string, len(c.links))
	for i := range c.links {
		out[i] = c.links[i].name
	}
	return out
}

// Authorize asks the chain at a moment. The grants of the answer use buf. Neither u nor a is
// kept.
func (c *Chain) Authorize(u *event.User, a *verdict.Attributes, m *Moment, buf []rbacindex.Grant) Answer {
	m.answer, m.grants = Answer{chain: c, by: -1, free: -1}, buf
	ans := &m.answer
	ans.run(u, a, m)
	m.grants = nil
	return *ans
}

// run asks one authorizer after the other until one decides.
func (ans *Answer) run(u *event.User, a *verdict.Attributes, m *Moment) {
	defer ans.settle()
	links := ans.chain.links
	for i := range links {
		l := &links[i]
		st := l.ask(ans, u, a, m)
		ans.code |= uint64(st) << (3 * i)
		switch st {
		case allowed:
			ans.by, ans.Decision = i, verdict.DecisionAllow
			ans.Authorizer = l.name
			return
		case denied:
			ans.by, ans.Decision = i, verdict.DecisionError // only an authorizer that failed denies by itself
			return
		case broken:
			ans.failed = true
		case unknown:
			if l.screens {
				return
			}
			if l.free && ans.free < 0 {
				ans.free = i
			}
		}
	}
	ans.Decision = verdict.DecisionForbid
	if ans.failed {
		ans.Decision = verdict.DecisionError
	}
}
