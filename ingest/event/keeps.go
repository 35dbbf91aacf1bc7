package event

import (
	"bytes"
	"net/url"
	"strings"
)

// KeepsPolicy says whether the event is a write that succeeded, and was no dry run, of something
// the replica keeps: see [KeepsWrite]. It looks at verb, stage, response code, request URI,
// what [DryRunOf] looks at, and for few kinds at the bodies. A write that may have been one is
// one.
func KeepsPolicy(e *Event) bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	if e.Stage != StageResponseComplete || e.ResponseStatus == nil {
		return false
	}
	if code := e.ResponseStatus.Code; code < 200 || code > 299 {
		return false
	}
	return KeepsWrite(e) && DryRunOf(e) != DryRun
}

// KeepsWrite says whether a write concerns something the replica keeps:
//
//	roles, cluster roles, bindings, namespaces (with finalize and status), service accounts,
//	secrets, nodes, persistent volumes, volume attachments, resource slices,
//	certificate signing requests (with approval and status)      every write
//	serviceaccounts/token                                        the issue of a token
//	pods                                                         create, delete, deletecollection
//	pods/binding, bindings, pods/eviction                        create
//	pods/ephemeralcontainers                                     update, patch
//	pods, pods/status                                            update, patch that may end the pod
//	                                                             or change its resource claims
//
// Whether the write succeeded is not looked at. The most frequent writes of a cluster, those of
// the states of pods and nodes, of leases and events, are none of these.
func KeepsWrite(e *Event) bool {
	path, _, _ := strings.Cut(e.RequestURI, "?")
	if strings.IndexByte(path, '%') >= 0 {
		// The apiserver routes the decoded path.
		plain, err := url.PathUnescape(path)
		if err != nil {
			return false
		}
		path = plain
	}
	group := ""
	rest, core := strings.CutPrefix(path, "/api/v1/")
	if !core {
		named, ok := strings.CutPrefix(path, "/apis/")
		if !ok {
			return false
		}
		if group, rest, ok = strings.Cut(named, "/"); !ok || !keepsGroup(group) {
			return false
		}
		if _, rest, ok = strings.Cut(rest, "/"); !ok {
			return false
		}
	}
	var room [6]string
	parts := room[:0]
	for part := range strings.SplitSeq(strings.Trim(rest, "/"), "/") {
		if len(parts) == len(room) {
			return false
		}
		parts = append(parts, part)
	}
	if core && parts[0] == "namespaces" && (len(parts) <= 2 || len(parts) == 3 && (parts[2] == "finalize" || parts[2] == "status")) {
		return true
	}
	namespaced := len(parts) >= 3 && parts[0] == "namespaces"
	if namespaced {
		parts = parts[2:]
	}
	sub := ""
	switch len(parts) {
	case 1, 2:
	case 3:
		sub = parts[2]
	default:
		return false
	}
	return keepsResource(e, group, parts[0], sub, namespaced)
}

// keepsGroup tells the API groups with resources that are kept.
func keepsGroup(group string) bool {
	switch group {
	case "rbac.authorization.k8s.io", "storage.k8s.io", "resource.k8s.io", "certificates.k8s.io":
		return true
	}
	return false
}

// keepsResource says whether a write of a resource is kept.
func keepsResource(e *Event, group, resource, sub string, namespaced bool) bool {
	switch group {
	case "":
		switch resource {
		case "serviceaccounts":
			return sub == "" || sub == "token" && e.Verb == "create"
		case "secrets":
			return sub == ""
		case "nodes", "persistentvolumes":
			return sub == "" && !namespaced
		case "bindings":
			return sub == "" && namespaced && e.Verb == "create"
		case "pods":
			return keepsPod(e, sub)
		}
	case "rbac.authorization.k8s.io":
		switch resource {
		case "roles", "rolebindings":
			return sub == ""
		case "clusterroles", "clusterrolebindings":
			return sub == "" && !namespaced
		}
	case "storage.k8s.io":
		return resource == "volumeattachments" && sub == "" && !namespaced
	case "resource.k8s.io":
		return resource == "resourceslices" && sub == "" && !namespaced
	case "certificates.k8s.io":
		return resource == "certificatesigningrequests" && !namespaced && (sub == "" || sub == "approval" || sub == "status")
	}
	return false
}

var (
	memberDeletion = []byte(`"deletionTimestamp"`)
	memberClaims   = []byte(`"resourceClaimStatuses"`)
	memberExtended = []byte(`"extendedResourceClaimStatus"`)
)

// keepsPod says whether a write of a pod changes what is kept of it.
func keepsPod(e *Event, sub string) bool {
	update := e.Verb == "update" || e.Verb == "patch"
	switch sub {
	case "":
		// An update can create a pod, or, by removing the last finalizer, end one whose deletion
		// had been asked for. Without bodies neither shows, and the end is none that was known.
		// With no status recorded it is the answer that tells.
		return !update || e.Code() == 201 || e.Code() == 0 && len(e.ResponseObject) > 0 || bytes.Contains(e.ResponseObject, memberDeletion)
	case "binding", "eviction":
		return e.Verb == "create"
	case "ephemeralcontainers":
		return update
	case "status":
		return update && (bytes.Contains(e.RequestObject, memberClaims) || bytes.Contains(e.RequestObject, memberExtended))
	}
	return false
}
