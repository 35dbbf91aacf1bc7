package event

import (
	"bytes"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// KeepsPolicy reports whether the event is about something the replica keeps: a write of it that
// succeeded and was not a dry run, see [KeepsWrite], or a request that found it missing or present,
// see [Missing] and [Shows]. It depends on verb, stage, response status, request URI, what
// [DryRunOf] depends on, and for a few kinds on the bodies. A possible write counts as one.
func KeepsPolicy(e *Event) bool {
	if !Ends(e) {
		return false
	}
	if e.Code() == 404 && Missing(e) || Shows(e) {
		return true
	}
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return OutcomeOf(e) != NotDone && KeepsWrite(e) && DryRunOf(e) != DryRun
	}
	return false
}

// Ends reports whether the event is the last of its request: when it was answered, or when the
// apiserver failed on it.
func Ends(e *Event) bool { return e.Stage == StageResponseComplete || e.Stage == StagePanic }

// Outcome reports whether a write was done.
type Outcome uint8

// Outcomes. PerhapsDone: the answer does not show it.
const (
	NotDone Outcome = iota
	PerhapsDone
	Done
)

// OutcomeOf returns, judged by the answer, whether a write was done. A success means that it was,
// except for an eviction that a second disruption budget forbids, which is answered with 201 and a
// failure. Some failures do not mean that nothing was done: 406 occurs when the answer to a
// completed write is to be encoded in a format it does not have; after 504, other failures of the
// apiserver, or without an answer, the request may go on; and a collection is deleted one object
// after the other, until one cannot be.
func OutcomeOf(e *Event) Outcome {
	s := e.ResponseStatus
	switch {
	case s == nil || s.Code == 0 || e.Stage == StagePanic:
		return PerhapsDone
	case s.Code >= 200 && s.Code <= 299:
		if s.Status == "Failure" {
			return NotDone
		}
		return Done
	case s.Code == 406, s.Code == 504, s.Code >= 500 && !beforehand(s.Message):
		return PerhapsDone
	case e.Verb != "deletecollection":
		return NotDone
	}
	switch s.Code {
	case 401, 405, 415, 429:
		return NotDone
	case 400, 404, 422: // of the options, unless an admission plugin has it of an object
		if !strings.Contains(s.Message, "denied") {
			return NotDone
		}
	case 403:
		if strings.Contains(s.Message, " cannot deletecollection resource ") {
			return NotDone // by the authorizers
		}
	}
	return PerhapsDone
}

// beforehand reports whether a failure of the apiserver occurred before it wrote anything: in
// reading the body, in decoding the object, or in admission. After its beginning a message may hold
// what clients chose.
func beforehand(message string) bool {
	for _, text := range [...]string{
		"body closed by handler", "Internal error occurred: failed calling webhook ", "Internal error occurred: resource quota " +
			"evaluation timed out",
		"failed to create typed patch object ", "conversion webhook for ",
	} {
		if strings.HasPrefix(message, text) {
			return true
		}
	}
	return false
}

// KeepsWrite reports whether a write concerns something the replica keeps:
//
//	roles, cluster roles, bindings, namespaces (with finalize and status), service accounts,
//	secrets, nodes, resource slices, persistent volumes and volume attachments (with status),
//	certificate signing requests (with approval and status),
//	pod certificate requests                                     every write
//	serviceaccounts/token                                        the issue of a token
//	pods                                                         create, delete, deletecollection
//	pods/binding, bindings, pods/eviction                        create
//	pods/ephemeralcontainers                                     update, patch
//	pods, pods/status                                            update, patch that may end the pod,
//	                                                             change its finalizers or its
//	                                                             resource claims
//
// Whether it succeeded does not matter. The most frequent writes, of the status of pods and nodes, of leases and events, are not kept.
func KeepsWrite(e *Event) bool {
	t, ok := writeTargetOf(e.RequestURI)
	return ok && t.keeps(e)
}

// Missing reports whether a request found that an object, of something the replica keeps, does not
// exist: a write, for which the apiserver looks the name up where it writes it, or a get of a pod,
// role or binding that asked for the newest state; the answer is then no older than the request. A
// missing namespace, or an admission webhook that says so, does not count.
func Missing(e *Event) bool {
	if e.Code() != 404 || e.ResponseStatus.Reason != "NotFound" {
		return false
	}
	t, ok := writeTargetOf(e.RequestURI)
	if !ok || t.name == "" {
		return false
	}
	switch e.Verb {
	case "update", "patch", "delete":
		ok = t.keeps(e) || t.group == "" && t.resource == "pods" && t.sub == "status"
	case "create":
		ok = t.group == "" && t.resource == "pods" && (t.sub == "binding" || t.sub == "eviction")
	case "get":
		ok = (t.group == "" && t.resource == "pods" && t.sub == "" || t.grants()) && !asksOldState(e.RequestURI)
	default:
		return false
	}
	if !ok {
		return false
	}
	resource := t.resource
	if t.group != "" {
		resource += "." + t.group
	}
	return e.ResponseStatus.Message == resource+" "+strconv.Quote(t.name)+" not found"
}

// Shows reports whether a request that wrote nothing found a role or binding: a get that asked for
// the newest state, or a create of one that already existed. The answer is no older than the request.
func Shows(e *Event) bool {
	switch {
	case !Ends(e):
		return false
	case e.Verb == "get" && e.Code() == 200:
		t, ok := writeTargetOf(e.RequestURI)
		return ok && t.name != "" && t.grants() && !asksOldState(e.RequestURI)
	case e.Verb == "create" && e.Code() == 409 && e.ResponseStatus.Reason == "AlreadyExists" && e.ObjectRef != nil &&
		e.ObjectRef.Name != "":
		t, ok := writeTargetOf(e.RequestURI)
		return ok && t.name == "" && t.grants() &&
			e.ResponseStatus.Message == t.resource+"."+t.group+" "+strconv.Quote(e.ObjectRef.Name)+" already exists"
	}
	return false
}

// grants reports whether the target is a role or binding, or all of a kind.
func (t *writeTarget) grants() bool {
	if t.group != "rbac.authorization.k8s.io" || t.sub != "" {
		return false
	}
	switch t.resource {
	case "roles", "rolebindings":
		return t.namespaced
	case "clusterroles", "clusterrolebindings":
		return !t.namespaced
	}
	return false
}

// asksOldState reports whether a read may be answered from a cache.
func asksOldState(uri string) bool {
	_, query, _ := strings.Cut(uri, "?")
	if !strings.Contains(query, "resourceVersion") && strings.IndexByte(query, '%') < 0 {
		return false
	}
	values, _ := url.ParseQuery(query)
	return values.Get("resourceVersion") != ""
}

// writeTarget is what the URI of a write names: an object or, with an empty name, a collection.
type writeTarget struct {
	group, resource, name, sub string
	namespaced                 bool
}

// writeTargetOf parses a request URI as far as it may name something that is kept.
func writeTargetOf(uri string) (t writeTarget, ok bool) {
	path, _, _ := strings.Cut(uri, "?")
	if strings.IndexByte(path, '%') >= 0 {
		// The apiserver routes the decoded path.
		plain, err := url.PathUnescape(path)
		if err != nil {
			return t, false
		}
		path = plain
	}
	rest, core := strings.CutPrefix(path, "/api/v1/")
	if !core {
		named, ok := strings.CutPrefix(path, "/apis/")
		if !ok {
			return t, false
		}
		if t.group, rest, ok = strings.Cut(named, "/"); !ok || !keepsGroup(t.group) {
			return t, false
		}
		if _, rest, ok = strings.Cut(rest, "/"); !ok {
			return t, false
		}
	}
	var room [6]string
	parts := room[:0]
	for part := range strings.SplitSeq(strings.Trim(rest, "/"), "/") {
		if len(parts) == len(room) {
			return t, false
		}
		parts = append(parts, part)
	}
	if core && parts[0] == "namespaces" {
		if len(parts) > 3 || len(parts) == 3 && parts[2] != "finalize" && parts[2] != "status" {
			t.namespaced, parts = true, parts[2:]
		}
	} else if len(parts) >= 3 && parts[0] == "namespaces" {
		t.namespaced, parts = true, parts[2:]
	}
	switch len(parts) {
	case 3:
		t.sub = parts[2]
		fallthrough
	case 2:
		t.name = parts[1]
		fallthrough
	case 1:
		t.resource = parts[0]
		return t, true
	}
	return t, false
}

// keepsGroup reports whether an API group has resources that are kept.
func keepsGroup(group string) bool {
	switch group {
	case "rbac.authorization.k8s.io", "storage.k8s.io", "resource.k8s.io", "certificates.k8s.io":
		return true
	}
	return false
}

// keeps reports whether a write of the target is kept.
func (t *writeTarget) keeps(e *Event) bool {
	switch t.group {
	case "":
		switch t.resource {
		case "namespaces":
			return !t.namespaced
		case "serviceaccounts":
			return t.sub == "" || t.sub == "token" && e.Verb == "create"
		case "secrets":
			return t.sub == ""
		case "nodes":
			return t.sub == "" && !t.namespaced
		case "persistentvolumes":
			return (t.sub == "" || t.sub == "status") && !t.namespaced
		case "bindings":
			return t.sub == "" && t.namespaced && e.Verb == "create"
		case "pods":
			return keepsPod(e, t.sub)
		}
	case "rbac.authorization.k8s.io":
		switch t.resource {
		case "roles", "rolebindings":
			return t.sub == ""
		case "clusterroles", "clusterrolebindings":
			return t.sub == "" && !t.namespaced
		}
	case "storage.k8s.io":
		return t.resource == "volumeattachments" && (t.sub == "" || t.sub == "status") && !t.namespaced
	case "resource.k8s.io":
		return t.resource == "resourceslices" && t.sub == "" && !t.namespaced
	case "certificates.k8s.io":
		switch t.resource {
		case "certificatesigningrequests":
			return !t.namespaced && (t.sub == "" || t.sub == "approval" || t.sub == "status")
		case "podcertificaterequests":
			return t.sub == ""
		}
	}
	return false
}

var (
	memberDeletion  = []byte(`"deletionTimestamp"`)
	memberClaims    = []byte(`"resourceClaimStatuses"`)
	memberExtended  = []byte(`"extendedResourceClaimStatus"`)
	memberVersion   = []byte(`"apiVersion"`)
	wordsFinalizers = []byte(`finalizers`) // part of a member's name, or of a pointer
)

// keepsPod reports whether a write of a pod changes what is kept of it.
func keepsPod(e *Event, sub string) bool {
	update := e.Verb == "update" || e.Verb == "patch"
	switch sub {
	case "":
		// An update can create a pod, add finalizers or, by removing the last of them, end a pod
		// whose deletion was requested.
		return !update || e.Code() != 200 || bytes.Contains(e.ResponseObject, memberDeletion) || writesFinalizers(e)
	case "binding", "eviction":
		return e.Verb == "create"
	case "ephemeralcontainers":
		return update
	case "status":
		return update && (WritesClaims(e.RequestObject) || bytes.Contains(e.RequestObject, wordsFinalizers) || strangeToStatus(e))
	}
	return false
}

// WritesClaims reports whether the body of a write of a pod's status holds resource claims.
func WritesClaims(body []byte) bool {
	return bytes.Contains(body, memberClaims) || bytes.Contains(body, memberExtended)
}

// writesFinalizers reports whether an update or patch may change finalizers. An apply patch removes what it does not name, as an update.
func writesFinalizers(e *Event) bool {
	body := e.RequestObject
	return e.Verb == "update" || len(body) == 0 || bytes.Contains(body, wordsFinalizers) || bytes.Contains(body, memberVersion)
}

// strangeToStatus reports whether a pod's status is written by a user that may add a finalizer. Nodes and components write it all day.
func strangeToStatus(e *Event) bool {
	name, ok := strings.CutPrefix(e.EffectiveUser().Username, "system:")
	return !ok || !strings.HasPrefix(name, "node:") && !strings.HasPrefix(name, "kube-") &&
		!strings.HasPrefix(name, "serviceaccount:kube-system:")
}

// The members that are kept of bodies, be they objects, lists of them, statuses or options: those
// that the replica reads. Of a volume all of spec is read, whose source is one of many members; only
// roles and bindings have rules and subjects.
var (
	ShapeKept       = shapeOfBody(shapeOfSpec())
	ShapeKeptVolume = shapeOfBody(nil)
	shapeKeptRBAC   = shapeOfBody(shapeOfSpec(), "rules", "subjects", "roleRef", "aggregationRule", memberCut)
)

// keptShape returns the shape of the bodies of a write.
func (t *writeTarget) keptShape() *jsontext.Shape {
	switch {
	case t.isRBAC():
		return shapeKeptRBAC
	case t.group == "" && t.resource == "persistentvolumes":
		return ShapeKeptVolume
	}
	return ShapeKept
}

// isRBAC reports whether a write is of a role or binding.
func (t *writeTarget) isRBAC() bool {
	return t.group == "rbac.authorization.k8s.io" && t.sub == "" &&
		slices.Contains([]string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"}, t.resource)
}

// shapeOfBody returns the shape of a body with the spec and further members.
func shapeOfBody(spec *jsontext.Shape, more ...string) *jsontext.Shape {
	object := map[string]*jsontext.Shape{
		"kind": nil, "apiVersion": nil, "type": nil, "reduced": nil, "target": nil, "deleteOptions": nil,
		"propagationPolicy": nil, "orphanDependents": nil, "gracePeriodSeconds": nil, "dryRun": nil,
		"metadata": jsontext.ShapeOf(map[string]*jsontext.Shape{
			"name": nil, "generateName": nil, "namespace": nil, "uid": nil, "resourceVersion": nil, "creationTimestamp": nil,
			"deletionTimestamp": nil, "deletionGracePeriodSeconds": nil, "finalizers": nil,
			"annotations": jsontext.ShapeOf(map[string]*jsontext.Shape{
				"kubernetes.io/service-account.name": nil, "kubernetes.io/service-account.uid": nil, "kubernetes.io/config.mirror": nil,
			}),
			"labels": jsontext.ShapeOf(map[string]*jsontext.Shape{"kubernetes.io/legacy-token-last-used": nil,
				"kubernetes.io/legacy-token-invalid-since": nil}),
		}),
		"data": jsontext.ShapeOf(map[string]*jsontext.Shape{
			"token-id": nil, "expiration": nil, "usage-bootstrap-authentication": nil, "auth-extra-groups": nil,
		}),
		"spec": spec,
		"status": jsontext.ShapeOf(map[string]*jsontext.Shape{
			"phase": nil, "certificate": nil, "resourceClaimStatuses": nil, "extendedResourceClaimStatus": nil,
		}),
		"details": jsontext.ShapeOf(map[string]*jsontext.Shape{"uid": nil}),
	}
	for _, name := range more {
		object[name] = nil
	}
	item := jsontext.ShapeOf(object)
	list := map[string]*jsontext.Shape{"items": item}
	maps.Copy(list, object)
	list["rows"] = jsontext.ShapeOf(map[string]*jsontext.Shape{"object": item})
	return jsontext.ShapeOf(list)
}

// shapeOfSpec returns the shape of the specs of all kinds except volumes.
func shapeOfSpec() *jsontext.Shape {
	container := jsontext.ShapeOf(map[string]*jsontext.Shape{
		"envFrom": nil, "env": jsontext.ShapeOf(map[string]*jsontext.Shape{"valueFrom": nil}),
	})
	return jsontext.ShapeOf(map[string]*jsontext.Shape{
		"finalizers": nil, "nodeName": nil, "serviceAccountName": nil, "imagePullSecrets": nil, "volumes": nil, "resourceClaims": nil,
		"terminationGracePeriodSeconds": nil, "signerName": nil, "username": nil,
		"initContainers": container, "containers": container, "ephemeralContainers": container,
	})
}
