package node

import (
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// verbs is a set of verbs.
type verbs uint8

const (
	get verbs = 1 << iota
	list
	watch
	create
	update
	patch
	remove

	read  = get | list | watch
	write = update | patch
)

func verbOf(verb string) verbs {
	switch verb {
	case request.VerbGet:
		return get
	case request.VerbList:
		return list
	case request.VerbWatch:
		return watch
	case request.VerbCreate:
		return create
	case request.VerbUpdate:
		return update
	case request.VerbPatch:
		return patch
	case request.VerbDelete:
		return remove
	}
	return 0
}

// static evaluates the rules that are the same for every node: those of the bootstrap role
// system:node for what is not divided. The authorizer has them compiled in; the ClusterRole
// of that name in the cluster does not matter to it.
func (r Rules) static(a *verdict.Attributes) bool {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	of := groupResource{a.APIGroup, resource}
	allowed := everyNodes[of]
	switch {
	case !a.ResourceRequest, of.group == "events.k8s.io" && !r.events, of.resource == "clustertrustbundles" && !r.bundles:
		return false
	case !r.selectors:
		allowed |= undivided[of]
	}
	return verbOf(a.Verb)&allowed != 0
}

type groupResource struct{ group, resource string }

var (
	everyNodes = map[groupResource]verbs{ //nolint:gochecknoglobals // constant table
		{"", "services"}: read, {"", "endpoints"}: get, {"", "events"}: create | write, {"events.k8s.io", "events"}: create | write,
		{"authentication.k8s.io", "tokenreviews"}: create, {"authorization.k8s.io", "subjectaccessreviews"}: create,
		{"authorization.k8s.io", "localsubjectaccessreviews"}: create, {"storage.k8s.io", "csidrivers"}: read,
		{"certificates.k8s.io", "certificatesigningrequests"}: read | create, {"certificates.k8s.io", "clustertrustbundles"}: read,
		{"node.k8s.io", "runtimeclasses"}: read,
	}
	// undivided are those of which nodes saw all before selectors limited them to their own.
	undivided = map[groupResource]verbs{ //nolint:gochecknoglobals // constant table
		{"", "nodes"}: create | read | write, {"", "pods"}: read | create | remove, {"", "nodes/status"}: write,
		{"", "pods/status"}: write, {"", "pods/eviction"}: create,
	}
)
