package replay

import (
	"slices"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
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
	refuse string // why no policy can allow it, "" when one can
	shape  bool   // the recorded mode cannot have produced this user
	root   bool   // system:masters under a constrained mode
}

type impersonationStep struct {
	name string // the wanted piece, for people
	all  []Attributes
	// any, when set, is enough in place of all.
	any *Attributes
}

// planImpersonation derives the checks from the recorded result: the impersonated user,
// the constraint and the request's attributes. Headers are not recorded. Groups that the
// apiserver adds by itself cannot be told from requested ones and need no check.
func planImpersonation(e *event.Event, request *Attributes) impersonationPlan {
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
		p.refuse = "unknown impersonation constraint " + clip(constraint)
		return p
	}

	on := *request
	on.Verb = "impersonate-on:" + mode + ":" + request.Verb
	p.steps = append(p.steps, impersonationStep{name: on.Verb, all: []Attributes{on}})
	piece := func(resource, sub, namespace, name string) Attributes {
		return Attributes{Verb: constraint, ResourceRequest: true, APIGroup: groupAuthentication, APIVersion: "v1",
			Resource: resource, Subresource: sub, Namespace: namespace, Name: name}
	}
	add := func(name string, a Attributes) {
		p.steps = append(p.steps, impersonationStep{name: constraint + " " + name, all: []Attributes{a}})
	}

	node, isNode := authn.NodeUsername(u.Username)
	saNamespace, saName, isSA := authn.ServiceAccountUsername(u.Username)
	switch mode {
	case "associated-node":
		own := e.User.Extra.Get(authn.ExtraNodeName)
		p.shape = !isNode || len(own) != 1 || own[0] != node
		add("nodes *", piece("nodes", "", "", "*"))
	case "arbitrary-node":
		p.shape = !isNode
		add("nodes "+node, piece("nodes", "", "", node))
	case "serviceaccount":
		p.shape = !isSA
		add("serviceaccounts "+saNamespace+"/"+saName, piece("serviceaccounts", "", saNamespace, saName))
	case "user-info":
		p.shape = isNode || isSA
		add("users "+u.Username, piece("users", "", "", u.Username))
		p.userInfo(u, piece)
	default:
		p.refuse = "unknown impersonation mode " + clip(mode)
	}
	if p.shape && p.refuse == "" {
		p.refuse = "mode " + mode + " cannot produce user " + clip(u.Username)
	}
	return p
}

// userInfo adds the checks for groups, uid and extra of the mode user-info.
func (p *impersonationPlan) userInfo(u *event.User, piece func(resource, sub, namespace, name string) Attributes) {
	groups := requestedGroups(u)
	if slices.Contains(groups, authn.GroupMasters) {
		p.root, p.refuse = true, "constrained impersonation never permits the group "+authn.GroupMasters
	}
	if len(groups) > 0 {
		step := impersonationStep{name: p.mode + " groups " + strings.Join(groups, ", ")}
		for _, g := range groups {
			step.all = append(step.all, piece("groups", "", "", g))
		}
		if len(groups) >= manyChecks {
			every := piece("groups", "", "", "*")
			step.any = &every
		}
		p.steps = append(p.steps, step)
	}
	if u.UID != "" {
		p.steps = append(p.steps, impersonationStep{name: p.mode + " uids " + u.UID, all: []Attributes{piece("uids", "", "", u.UID)}})
	}
	step := impersonationStep{name: p.mode + " userextras"}
	for _, entry := range u.Extra {
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

// legacyPlan is the impersonation of Kubernetes 1.3 and later: the verb impersonate on each
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
		p.steps = append(p.steps, impersonationStep{name: verbImpersonate + " " + where, all: []Attributes{{
			Verb: verbImpersonate, ResourceRequest: true, APIGroup: group, APIVersion: "v1",
			Resource: resource, Subresource: sub, Namespace: namespace, Name: name,
		}}})
	}
	if namespace, name, ok := authn.ServiceAccountUsername(u.Username); ok {
		add("", "serviceaccounts", "", namespace, name)
	} else {
		add("", "users", "", "", u.Username)
	}
	for _, g := range requestedGroups(u) {
		add("", "groups", "", "", g)
	}
	for _, entry := range u.Extra {
		for _, v := range entry.Values {
			add(groupAuthentication, "userextras", entry.Key, "", v)
		}
	}
	if u.UID != "" {
		add(groupAuthentication, "uids", "", "", u.UID)
	}
	return p
}

// requestedGroups returns the groups that must have been asked for: all but those the
// apiserver adds when it completes the impersonated user.
func requestedGroups(u *event.User) []string {
	namespace, _, isSA := authn.ServiceAccountUsername(u.Username)
	if isSA && authn.ServiceAccountGroups(u.Groups, namespace) {
		return nil // filled in for a service account without groups
	}
	added := authn.GroupAuthenticated
	if u.Username == authn.UserAnonymous {
		added = authn.GroupUnauthenticated
	}
	var out []string
	for _, g := range u.Groups {
		if g != added {
			out = append(out, g)
		}
	}
	return out
}
