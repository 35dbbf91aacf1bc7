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
// finalize and status), service accounts. It looks at verb, stage, response code, request
// URI and what [DryRunOf] looks at. A write that may have been one is one.
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
	path, _, _ := strings.Cut(e.RequestURI, "?")
	return policyPath(path) && DryRunOf(e) != DryRun
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

// DryRunAnswer says whether a write was a dry run.
type DryRunAnswer uint8

// Answers. MaybeDryRun: the query of a delete asks for one, but the apiserver reads it only
// when the request has no body, and whether it had one is not recorded.
const (
	NoDryRun DryRunAnswer = iota
	MaybeDryRun
	DryRun
)

// annotationTruncated is what the apiserver puts on an event whose bodies it has cut off.
const annotationTruncated = "audit.k8s.io/truncated"

// DryRunOf says whether the apiserver took a write for a dry run. It errs to the side of the
// write: what only looks like a dry run must not hide one. Options of a delete or
// deletecollection come from the body, if there is one, and the query then says nothing;
// those of other writes come from the query. Parameters that do not parse do not exist.
func DryRunOf(e *Event) DryRunAnswer {
	remove := e.Verb == "delete" || e.Verb == "deletecollection"
	if remove && len(e.RequestObject) > 0 {
		if dryRunOptions(e.RequestObject) {
			return DryRun
		}
		return NoDryRun
	}
	_, query, _ := strings.Cut(e.RequestURI, "?")
	if !dryRunQuery(query) {
		return NoDryRun
	}
	if remove && !recordsBodies(e) {
		return MaybeDryRun
	}
	return DryRun
}

// recordsBodies says whether a request body would be in the event if there had been one.
func recordsBodies(e *Event) bool {
	for _, key := range [...]string{annotationTruncated, AnnotationStrippedBytes} {
		if _, cut := e.Annotations.Get(key); cut {
			return false
		}
	}
	return e.Level == LevelRequest || e.Level == LevelRequestResponse
}

// dryRunQuery says whether a query has the parameter dryRun, as the apiserver parses it.
func dryRunQuery(query string) bool {
	if !strings.Contains(query, "dryRun") && strings.IndexByte(query, '%') < 0 {
		return false
	}
	values, _ := url.ParseQuery(query) // the apiserver works with whatever did parse
	return values.Has("dryRun")
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
