// Package node is the node authorizer of a kube-apiserver: what kubelets may do, decided by
// compiled-in rules and by which pods run on the node.
//
// It mirrors plugin/pkg/auth/authorizer/node of Kubernetes 1.26 to 1.37: [RulesOf] takes a
// configuration's version and feature gates, and package release knows what differs. It never
// denies: what it
// does not allow is left to the next authorizer, with a reason that becomes part of the
// recorded one.
//
// The package is pure; nothing in it is mutable.
package node

import (
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/release"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// Known is a three-valued answer.
type Known = graph.Known

// Graph answers the relation questions of the node authorizer: does a path lead from an
// object to a node, through the pods bound to it (pod → node, secret → pod, claim → pod,
// volume → claim …). resource is the plural, lower-case resource name; namespace is empty
// for cluster-scoped ones. Implementations answer graph.Unknown rather than guess and must be
// safe for concurrent use.
type Graph interface {
	Related(at time.Time, node, group, resource, namespace, name string) Known
}

// Answer is the node authorizer's answer.
type Answer struct {
	// Allowed is graph.Present for an allow and graph.Absent for no opinion; graph.Unknown
	// when what is missing could decide.
	Allowed Known
	Reason  string // what no opinion contributes to the recorded reason; may be empty
	Missing string // what graph.Unknown would need
}

// Is reports whether the node authorizer feels addressed: the name and the group.
func Is(username string, groups []string) bool {
	return strings.HasPrefix(username, authn.PrefixNode) && slices.Contains(groups, authn.GroupNodes)
}

// Rules are what differs between versions and configurations. They are immutable.
type Rules struct {
	selectors    bool // nodes and pods are limited to the node's own (AuthorizeNodeWithSelectors)
	accounts     bool // service accounts may be read
	oldAccounts  bool // service accounts could not be read in this version, whatever the gates
	certificates bool // pod certificate requests may be made and read
	bundles      bool // cluster trust bundles may be read
	claims       bool // resource claims are looked up in the graph
	slices       bool // resource slices are the node's own
	collections  bool // collections of them may be deleted
	doubleQuotes bool // the node's name is quoted otherwise in the relation text
	events       bool // events of events.k8s.io may be written
	ephemeral    bool // what an ephemeral container names counts at once
	csiStatus    bool // the status of a CSINode has rules of its own
	csiHealth    bool // it may be written (CSIVolumeHealth)
	unselected   bool // field selectors are not looked at (AuthorizeWithSelectors)
}

// RulesOf returns the rules of a configuration; nil is a current version with default gates.
func RulesOf(cfg *config.APIServer) Rules {
	minor := 0
	if cfg != nil {
		minor = cfg.Minor
	}
	rel := cfg.Release()
	since := func(first int) bool { return minor == 0 || minor >= first } // before there were tables
	r := Rules{
		selectors:    cfg.Enabled("AuthorizeNodeWithSelectors"),
		certificates: cfg.Enabled("PodCertificateRequest"),
		bundles:      cfg.Enabled("ClusterTrustBundle") && since(27),
		oldAccounts:  !rel.Has(release.NodeAccounts),
		claims:       since(26),
		slices:       rel.Has(release.NodeSlices),
		collections:  rel.Has(release.NodeSliceCollections),
		doubleQuotes: !since(20),
		events:       rel.Has(release.NodeEvents),
		ephemeral:    rel.Has(release.NodeEphemeral),
		csiStatus:    rel.Has(release.NodeVolumeHealth),
		csiHealth:    cfg.Enabled("CSIVolumeHealth"),
		unselected:   !cfg.Enabled("AuthorizeWithSelectors"),
	}
	r.accounts = r.certificates || cfg.Enabled("KubeletServiceAccountTokenForCredentialProviders")
	r.certificates = r.certificates && r.selectors
	return r
}

// Authorize returns the answer for a user for which Is holds. g may be nil: then the answers
// to relation questions are not known.
func (r Rules) Authorize(user string, a *verdict.Attributes, g Graph, at time.Time) Answer {
	name := user[len(authn.PrefixNode):]
	if name == "" {
		return silent(`unknown node for user "system:node:"`)
	}
	q := asked{Rules: r, node: name, a: a, graph: g, at: at}
	if a.ResourceRequest {
		if ans, divided := q.divided(); divided {
			return ans
		}
	}
	if r.static(a) {
		return allow()
	}
	return silent("")
}

func allow() Answer            { return Answer{Allowed: graph.Present} }
func silent(why string) Answer { return Answer{Allowed: graph.Absent, Reason: why} }
