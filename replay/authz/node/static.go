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
	if !a.ResourceRequest {
		return false
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	return verbOf(a.Verb)&r.staticVerbs(a.APIGroup, resource) != 0
}

func (r Rules) staticVerbs(group, resource string) verbs {
	switch group {
	case "":
		switch resource {
		case "services":
			return read
		case "endpoints":
			return get
		case "events":
			return create | write
		}
		if r.selectors {
			return 0
		}
		switch resource {
		case "nodes":
			return create | read | write
		case "pods":
			return read | create | remove
		case "nodes/status", "pods/status":
			return write
		case "pods/eviction":
			return create
		}
	case "events.k8s.io":
		if resource == "events" && r.events {
			return create | write
		}
	case "authentication.k8s.io":
		if resource == "tokenreviews" {
			return create
		}
	case "authorization.k8s.io":
		switch resource {
		case "subjectaccessreviews", "localsubjectaccessreviews":
			return create
		}
	case "certificates.k8s.io":
		switch {
		case resource == "certificatesigningrequests":
			return read | create
		case resource == "clustertrustbundles" && r.bundles:
			return read
		}
	case "storage.k8s.io":
		if resource == "csidrivers" {
			return read
		}
	case "node.k8s.io":
		if resource == "runtimeclasses" {
			return read
		}
	}
	return 0
}
