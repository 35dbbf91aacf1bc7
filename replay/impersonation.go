package replay

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/verdict"
)

const (
	groupAuthentication = "authentication.k8s.io"
	modeLegacy          = "legacy"
	verbImpersonate     = "impersonate"

	// manyChecks is the number of groups, or of extra values, from which constrained
	// impersonation tries one check on "*" before the single ones.
	manyChecks = 4
)

// impersonationPlan is what a requestor had to be allowed to do for the recorded
// impersonation to happen. A request passes when every step passes; a step passes when one
// of its alternatives does.
type impersonationPlan struct {
	mode   string // "legacy", or the recorded constraint
	steps  []impersonationStep
	refuse string // why no policy can allow it, "" if one can
	shape  bool   // the recorded mode cannot have produced this user
	root   bool   // system:masters under a constrained mode
}

type impersonationStep struct {
	name string // the wanted piece, for people
	all  []verdict.Attributes
	// any, when set, is enough in place of all.
	any *verdict.Attributes
}

// planImpersonation derives the checks from the recorded result: the impersonated user,
// the constraint and the request's attributes. Headers are not recorded. Groups that the
// apiserver adds by itself cannot be told from requested ones and need no check.
func planImpersonation(e *event.Event, request *verdict.Attributes) impersonationPlan {
	u := e.ImpersonatedUser
	constraint := ""
	if e.AuthenticationMetadata != nil {
		constraint = e.AuthenticationMetadata.ImpersonationConstraint
	}
	if constraint == "" {
		return legacyPlan(u)
	}
	mode, ok := strings.CutPrefix(constraint, verbImpersonate+":")
	p := impersonationPlan{mode: constraint}
	if !ok {
		p.refuse = "unknown impersonation constraint " + verdict.Clip(constraint)
		return p
	}

	on := *request
	on.Verb = "impersonate-on:" + mode + ":" + request.Verb
	p.steps = append(p.steps, impersonationStep{name: on.Verb, all: []verdict.Attributes{on}})
	piece := func(resource, sub, namespace, name string) verdict.Attributes {
		return verdict.Attributes{Verb: constraint, ResourceRequest: true, APIGroup: groupAuthentication, APIVersion: "v1",
			Resource: resource, Subresource: sub, Namespace: namespace, Name: name}
	}
	add := func(name string, a verdict.Attributes) {
		p.steps = append(p.steps, impersonationStep{name: constraint + " " + name, all: []verdict.Attributes{a}})
	}

	node, isNode := authn.NodeUsername(u.Username)
	saNamespace, saName, isSA := authn.ServiceAccountUsername(u.Username)
	// The modes for nodes and service accounts take a name and nothing else; the groups are
	// the apiserver's.
	bare := u.UID == "" && len(u.Extra) == 0
	switch mode {
	case "associated-node":
		// The check is good for every node, and no extra of the requestor counts in it.
		own := e.User.Extra.Get(event.ExtraNodeName)
		_, _, fromSA := authn.ServiceAccountUsername(e.User.Username)
		p.shape = !isNode || !fromSA || len(own) != 1 || own[0] != node || !bare || !nodeGroups(u.Groups)
		add("nodes *", piece("nodes", "", "", "*"))
	case "arbitrary-node":
		p.shape = !isNode || !bare || !nodeGroups(u.Groups)
		add("nodes "+node, piece("nodes", "", "", node))
	case "serviceaccount":
		p.shape = !isSA || !bare || !filledGroups(u.Groups, saNamespace)
		add("serviceaccounts "+saNamespace+"/"+saName, piece("serviceaccounts", "", saNamespace, saName))
	case "user-info":
		p.shape = isNode || isSA
		add("users "+u.Username, piece("users", "", "", u.Username))
		p.userInfo(u, piece)
	default:
		p.refuse = "unknown impersonation mode " + verdict.Clip(mode)
	}
	if p.shape && p.refuse == "" {
		p.refuse = "mode " + mode + " cannot produce user " + verdict.Clip(u.Username)
		if !bare {
			p.refuse += " with a uid or extra"
		}
	}
	return p
}

// userInfo adds the checks for uid, groups and extra of the mode user-info.
func (p *impersonationPlan) userInfo(u *event.User, piece func(resource, sub, namespace, name string) verdict.Attributes) {
	if u.UID != "" {
		p.steps = append(p.steps, impersonationStep{name: p.mode + " uids " + u.UID, all: []verdict.Attributes{piece("uids", "", "",
			u.UID)}})
	}
	groups := requestedGroups(u)
	switch {
	case slices.Contains(groups, authn.GroupMasters):
		p.root, p.refuse = true, "constrained impersonation never permits the group "+authn.GroupMasters
	case slices.Contains(groups, ""):
		p.refuse = "constrained impersonation never permits a group without a name"
	}
	if len(groups) > 0 {
		step := impersonationStep{name: p.mode + " groups " + strings.Join(groups, ", ")}
		for _, g := range groups {
			step.all = append(step.all, piece("groups", "", "", g))
		}
		// The group the apiserver adds may have been asked for, and count.
		if len(u.Groups) >= manyChecks {
			every := piece("groups", "", "", "*")
			step.any = &every
		}
		p.steps = append(p.steps, step)
	}
	step := impersonationStep{name: p.mode + " userextras"}
	for _, entry := range u.Extra {
		if why := extraRefused(entry.Key, entry.Values); why != "" && p.refuse == "" {
			p.refuse = why
		}
		for _, v := range entry.Values {
			step.all = append(step.all, piece("userextras", entry.Key, "", v))
		}
	}
	if len(step.all) == 0 {
		return
	}
	if len(step.all) >= manyChecks || len(u.Extra) >= manyChecks {
		every := piece("userextras", "*", "", "*")
		step.any = &every
	}
	p.steps = append(p.steps, step)
}

// extraRefused says why constrained impersonation never permits an extra, "" if it may.
func extraRefused(key string, values []string) string {
	switch {
	case key != strings.ToLower(key) || len(validation.IsDomainPrefixedPath(field.NewPath("key"), key)) > 0:
		return "constrained impersonation never permits the extra key " + verdict.Clip(key)
	case len(values) == 0 || slices.Contains(values, ""):
		return "constrained impersonation never permits an empty value of extra " + verdict.Clip(key)
	}
	return ""
}

// legacyPlan returns the impersonation of Kubernetes 1.3 and later: the verb impersonate on each
// piece. A node name is a plain user name to it.
func legacyPlan(u *event.User) impersonationPlan {
	p := impersonationPlan{mode: modeLegacy}
	add := func(group, resource, sub, namespace, name string) {
		where := resource
		if sub != "" {
			where += "/" + sub
		}
		if namespace != "" {
			where += " " + namespace + "/" + name
		} else {
			where += " " + name
		}
		p.steps = append(p.steps, impersonationStep{name: verbImpersonate + " " + where, all: []verdict.Attributes{{
			Verb: verbImpersonate, ResourceRequest: true, APIGroup: group, APIVersion: "v1",
			Resource: resource, Subresource: sub, Namespace: namespace, Name: name,
		}}})
	}
	if namespace, name, ok := authn.ServiceAccountUsername(u.Username); ok {
		add("", "serviceaccounts", "", namespace, name)
	} else {
		add("", "users", "", "", u.Username)
	}
	if u.UID != "" {
		add(groupAuthentication, "uids", "", "", u.UID)
	}
	for _, g := range requestedGroups(u) {
		add("", "groups", "", "", g)
	}
	for _, entry := range u.Extra {
		for _, v := range entry.Values {
			add(groupAuthentication, "userextras", entry.Key, "", v)
		}
	}
	return p
}

// requestedGroups returns the groups that must have been asked for: all but those the
// apiserver may have added when it completed the impersonated user. It adds at the end.
func requestedGroups(u *event.User) []string {
	groups := u.Groups
	added := authn.GroupAuthenticated
	if u.Username == authn.UserAnonymous {
		added = authn.GroupUnauthenticated
	}
	if n := len(groups); n > 0 && groups[n-1] == added && !slices.Contains(groups[:n-1], added) {
		groups = groups[:n-1]
	}
	if namespace, _, ok := authn.ServiceAccountUsername(u.Username); ok && filled(groups, namespace) {
		return nil // of a service account for which no groups were asked
	}
	return groups
}

// filledGroups reports whether these are the groups of a service account for which none were
// asked.
func filledGroups(groups []string, namespace string) bool {
	n := len(groups)
	return n == 3 && groups[2] == authn.GroupAuthenticated && filled(groups[:2], namespace)
}

func filled(groups []string, namespace string) bool {
	return len(groups) == 2 && groups[0] == authn.GroupServiceAccounts && groups[1] == authn.GroupServiceAccounts+":"+namespace
}

// nodeGroups reports whether these are the groups constrained impersonation gives a node.
func nodeGroups(groups []string) bool {
	return slices.Equal(groups, []string{authn.GroupNodes, authn.GroupAuthenticated})
}
