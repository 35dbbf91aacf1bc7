package event

import (
	"net/url"
	"strconv"
	"strings"
)

// Annotations a receiver adds to an event that was too large to keep whole.
const (
	AnnotationStrippedBytes  = "retrial.io/stripped-bytes"  // size of the event as received
	AnnotationStrippedDigest = "retrial.io/stripped-sha256" // digest of the event as received
)

// StripBodies drops request and response object of an event and notes the size and the
// digest of what was received. Everything a verdict needs stays.
func StripBodies(e *Event, size int, digest string) {
	e.RequestObject, e.ResponseObject = nil, nil
	e.Annotations = e.Annotations.
		Set(AnnotationStrippedBytes, strconv.Itoa(size)).
		Set(AnnotationStrippedDigest, digest)
}

// KeepsPolicy says whether the event is a write that succeeded, and was no dry run, to an
// object the replica keeps: roles, cluster roles and their bindings, namespaces (with
// finalize and status), service accounts. It looks at verb, stage, response code and
// request URI only; of the body only at whether DeleteOptions ask for a dry run.
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
	path, query, _ := strings.Cut(e.RequestURI, "?")
	if !policyPath(path) {
		return false
	}
	return !dryRun(query) && !(e.Verb[0] == 'd' && dryRunOptions(e.RequestObject))
}

// policyPath matches the paths of the resources the replica keeps.
func policyPath(path string) bool {
	if strings.IndexByte(path, '%') >= 0 {
		// The apiserver routes the decoded path.
		plain, err := url.PathUnescape(path)
		if err != nil {
			return false
		}
		path = plain
	}
	rest, core := strings.CutPrefix(path, "/api/v1/")
	if !core {
		rbac, ok := strings.CutPrefix(path, "/apis/rbac.authorization.k8s.io/")
		if !ok {
			return false
		}
		if _, rest, ok = strings.Cut(rbac, "/"); !ok {
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
	if len(parts) > 2 {
		return false
	}
	if core {
		return parts[0] == "serviceaccounts"
	}
	switch parts[0] {
	case "roles", "rolebindings":
		return true
	case "clusterroles", "clusterrolebindings":
		return !namespaced
	}
	return false
}

// dryRun says whether a query has the parameter dryRun.
func dryRun(query string) bool {
	if query == "" {
		return false
	}
	for param := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(param, "=")
		if strings.IndexByte(name, '%') >= 0 {
			if plain, err := url.QueryUnescape(name); err == nil {
				name = plain
			}
		}
		if name == "dryRun" {
			return true
		}
	}
	return false
}

// dryRunOptions says whether a body is an object with a non-empty dryRun list, as the
// DeleteOptions of a server-side dry run.
func dryRunOptions(body []byte) bool {
	if len(body) == 0 || body[0] != '{' {
		return false
	}
	d := decoder{scanner: scanner{buf: body, pos: 1}}
	found := false
	for first := true; ; first = false {
		name, more := d.member(first)
		if !more {
			return found && d.err == nil
		}
		if name == "dryRun" {
			found = len(d.list()) > 0
		} else if !d.skip() {
			return false
		}
		if d.err != nil {
			return false
		}
	}
}
