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
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/release"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// DelegationCache is how long a delegating server acts on an answer of its kube-apiserver,
// whatever it was.
const DelegationCache = 10 * time.Second

// maxAuthorizers bounds a chain that is followed one by one, masters and paths not counted.
const maxAuthorizers = 18

type kind uint8

const (
	kindMasters kind = iota
	kindPaths
	kindAlwaysAllow
	kindAlwaysDeny
	kindABAC
	kindNode
	kindRBAC
	kindWebhook
	kindUnknown
)

// Chain is the authorizers of one configuration, compiled. It is immutable but for a memory
// of answers already worded, and safe for concurrent use.
type Chain struct {
	links     []link // masters first
	delegated bool
	assumed   bool   // nothing was said about the configuration
	naming    naming // of reasons, by the kube-apiserver
	outer     naming // and by the aggregated server in front of it
	steps     stepMemory
}

// naming says whether the reasons of a refusal have the names of their authorizers before them.
type naming uint8

const (
	unnamed naming = iota
	named
	eitherNaming // the release is not known
)

// namingOf is the naming of an apiserver.
func namingOf(cfg *config.APIServer) naming {
	switch {
	case cfg.Minor == 0:
		return eitherNaming
	case cfg.Release().Has(release.NamedReasons):
		return named
	}
	return unnamed
}

// link is one authorizer.
type link struct {
	kind  kind
	name  string
	paths *pathList
	abac  *abacIndex
	hook  *webhook
	node  node.Rules // what nodes may do in this version
	super string     // RBAC's super user of earliest versions
	// unknown is why its answers cannot be known, "" when they can or when it is a webhook.
	unknown string
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
	c := &Chain{links: []link{{kind: kindMasters, name: verdict.AuthorizerMasters}}, naming: namingOf(cfg)}
	z := &cfg.Authorization
	if len(z.AlwaysAllowPaths) > 0 {
		c.links = append(c.links, link{kind: kindPaths, name: verdict.AuthorizerPaths, paths: newPathList(z.AlwaysAllowPaths)})
	}
	switch {
	case z.Unknown != "":
		c.links = append(c.links, link{kind: kindUnknown, name: "unknown", unknown: z.Unknown})
	case len(z.Authorizers) > maxAuthorizers:
		c.links = append(c.links, link{kind: kindUnknown, name: "unknown", unknown: "more than " + strconv.Itoa(maxAuthorizers) + " authorizers"})
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
		{kind: kindMasters, name: verdict.AuthorizerMasters},
		{kind: kindNode, name: verdict.AuthorizerNode, node: node.RulesOf(cfg)},
		{kind: kindRBAC, name: verdict.AuthorizerRBAC},
	}}
}

// Delegated compiles the chain of an aggregated API server: it lets masters and some paths
// through itself and asks its kube-apiserver about all else, whose configuration is kube (nil
// when nothing is known of it).
func Delegated(cfg, kube *config.APIServer) *Chain {
	c, behind := New(cfg), New(kube)
	c.delegated, c.outer, c.naming = true, c.naming, behind.naming
	for i := range c.links {
		if c.links[i].kind != kindMasters && c.links[i].kind != kindPaths {
			c.links = c.links[:i]
			break
		}
	}
	c.links = append(c.links, behind.links[1:]...)
	c.assumed = behind.assumed
	return c
}

func newLink(z *config.Authorizer, cfg *config.APIServer) link {
	l := link{name: z.Name, unknown: z.Unknown}
	switch z.Type {
	case config.AlwaysAllow:
		l.kind = kindAlwaysAllow
	case config.AlwaysDeny:
		l.kind = kindAlwaysDeny
	case config.Node:
		l.kind, l.node = kindNode, node.RulesOf(cfg)
	case config.RBAC:
		l.kind, l.super = kindRBAC, z.SuperUser
	case config.ABAC:
		l.kind = kindABAC
		if l.abac = newABAC(z.Policy, cfg.Minor); l.abac == nil && l.unknown == "" {
			l.unknown = "the ABAC policy file"
		}
	case config.Webhook:
		l.kind = kindWebhook
		l.hook, l.unknown = newWebhook(z.Webhook, cfg)
	default:
		l.kind = kindUnknown
		if l.unknown == "" {
			l.unknown = "what an authorizer of type " + strconv.Quote(string(z.Type)) + " does"
		}
	}
	if l.name == "" {
		l.name = strings.ToLower(string(z.Type))
	}
	return l
}

// Assumed reports whether the chain is taken for granted, because nobody has said how the
// apiserver is configured.
func (c *Chain) Assumed() bool { return c.assumed }

// Worded reports whether it has a webhook, whose reasons are in words of its own.
func (c *Chain) Worded() bool {
	return slices.ContainsFunc(c.links, func(l link) bool { return l.kind == kindWebhook })
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

// Moment is what authorizers decide by besides their configuration: the policy as of one
// time. It is used by one goroutine at a time.
type Moment struct {
	At    time.Time
	View  *state.View // nil: no state at all
	Graph node.Graph  // nil: nothing is known of pods

	// Steps bounds the work of all that is asked of RBAC; nil: unbounded.
	Steps *rbacindex.Steps

	query rbacindex.Attributes // what RBAC is asked; here, so that asking allocates nothing
}

// Authorize asks the chain at a moment. The grants of the answer use buf. Neither u nor a is
// kept.
func (c *Chain) Authorize(u *event.User, a *verdict.Attributes, m *Moment, buf []rbacindex.Grant) Answer {
	ans := Answer{chain: c, by: -1, free: -1}
	for i := range c.links {
		l := &c.links[i]
		st := noOpinion
		switch l.kind {
		case kindMasters:
			for _, g := range u.Groups {
				if g == authn.GroupMasters {
					st = allowed
					break
				}
			}
		case kindPaths:
			if !a.ResourceRequest && l.paths.contains(a.Path) {
				st = allowed
			}
		case kindAlwaysAllow:
			st = allowed
		case kindAlwaysDeny:
		case kindABAC:
			st = l.askABAC(&ans, u, a)
		case kindNode:
			st = l.askNode(&ans, u, a, m)
		case kindRBAC:
			st = l.askRBAC(&ans, u, a, m, buf)
		case kindWebhook:
			st = l.askWebhook(&ans, i, u, a)
		case kindUnknown: // whether anybody behind it is asked is not known either
			ans.lack(LackConfig)
			ans.code |= uint64(unknown) << (3 * i)
			ans.settle()
			return ans
		}
		ans.code |= uint64(st) << (3 * i)
		switch st {
		case allowed:
			ans.by, ans.Decision = i, verdict.DecisionAllow
			ans.Authorizer = l.name
			ans.settle()
			return ans
		case denied:
			ans.by, ans.Decision = i, verdict.DecisionError // only an authorizer that failed denies by itself
			ans.settle()
			return ans
		}
	}
	ans.Decision = verdict.DecisionForbid
	if ans.failed {
		ans.Decision = verdict.DecisionError
	}
	ans.settle()
	return ans
}

func (l *link) askNode(ans *Answer, u *event.User, a *verdict.Attributes, m *Moment) stepState {
	if !node.Is(u.Username, u.Groups) {
		return noOpinion
	}
	ans.node = l.node.Authorize(u.Username, a, m.Graph, m.At)
	switch ans.node.Allowed {
	case graph.Present:
		return allowed
	case graph.Unknown:
		ans.lack(LackNodeGraph)
		return unknown
	}
	return noOpinion
}

func (l *link) askRBAC(ans *Answer, u *event.User, a *verdict.Attributes, m *Moment, buf []rbacindex.Grant) stepState {
	if l.super != "" && u.Username == l.super {
		return allowed
	}
	if m.View == nil {
		ans.lack(LackState)
		return unknown
	}
	m.query = rbacindex.Attributes{
		User: u.Username, Groups: u.Groups, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup, Resource: a.Resource,
		Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path,
		Steps: m.Steps,
	}
	ans.RBAC = m.View.RBAC.Authorize(&m.query, buf)
	if ans.RBAC.Allowed {
		return allowed
	}
	if ans.RBAC.TooCostly {
		ans.lack(LackTime)
		return unknown
	}
	// RBAC only adds: what is known does not allow it, but something unknown could.
	if ans.unseen = couldAllow(m.View, &m.query, &ans.RBAC); len(ans.unseen) == 0 {
		return noOpinion
	}
	if len(m.View.UnknownKinds) > 0 {
		ans.lack(LackState)
	} else {
		ans.lack(LackObject)
	}
	return unknown
}

func (l *link) askABAC(ans *Answer, u *event.User, a *verdict.Attributes) stepState {
	if l.abac == nil {
		ans.lack(LackConfig)
		return unknown
	}
	if ans.Line = l.abac.allows(u, a); ans.Line > 0 {
		return allowed
	}
	return noOpinion
}

func (l *link) askWebhook(ans *Answer, i int, u *event.User, a *verdict.Attributes) stepState {
	switch l.hook.asked(u, a) {
	case hookSkipped:
		return skipped
	case hookFailed:
		if l.hook.deny {
			return denied
		}
		ans.failed = true
		return broken
	}
	if ans.free < 0 {
		ans.free = i
	}
	return unknown
}

// pathList is the paths a delegating server lets through: exact ones, and prefixes written
// with a trailing star.
type pathList struct {
	exact    map[string]struct{}
	prefixes []string
}

func newPathList(paths []string) *pathList {
	p := &pathList{exact: map[string]struct{}{}}
	for _, path := range paths {
		path = strings.TrimPrefix(path, "/")
		if prefix, ok := strings.CutSuffix(path, "*"); ok {
			p.prefixes = append(p.prefixes, prefix)
		} else {
			p.exact[path] = struct{}{}
		}
	}
	return p
}

func (p *pathList) contains(path string) bool {
	path = strings.TrimPrefix(path, "/")
	if _, ok := p.exact[path]; ok {
		return true
	}
	for _, prefix := range p.prefixes {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
