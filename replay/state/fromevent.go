package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
)

// FromEvent returns what a policy write of the audit stream says about the objects the
// replica keeps; nothing for any other event. A policy write is a create, update, patch,
// delete or deletecollection that succeeded (2xx), was no dry run, and is complete. Of kinds
// with many writes only those count that change what is kept ([event.KeepsWrite]).
//
// The creation of the namespace kube-system says in addition that nothing was there before:
// every resource is known completely, as far as the log goes on recording it.
//
// What the event did not record, because of its level or because its bodies were cut,
// becomes unknown content, or an AllOf observation when not even the names are known. The
// resource and names are taken from the request URI, which is what the apiserver acted on.
//
// An event without a responseStatus (a copy whose answers were removed) counts as a
// success when its response body says so.
//
// Observations are valid, with unknown content, also when the error is not nil: it says
// that a recorded body could not be read. They may alias the event's buffers.
func FromEvent(e *event.Event) ([]Observation, error) {
	if e.Stage != event.StageResponseComplete {
		return nil, nil
	}
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return nil, nil
	}
	t, ok := parseTarget(e.RequestURI)
	if !ok || t.res.reduces() && !event.KeepsWrite(e) || !succeeded(e) {
		return nil, nil
	}
	dryRun := event.DryRunOf(e)
	if dryRun == event.DryRun {
		return nil, nil
	}
	w := write{event: e, target: t, base: Observation{
		Source: SourceAudit, Resource: t.res.String(), Namespace: t.namespace, Name: t.name,
		NotBefore: e.RequestReceivedTimestamp, NotAfter: e.StageTimestamp,
	}}
	if t.sub != "" {
		return w.subresource(dryRun)
	}
	maybe := dryRun == event.MaybeDryRun
	switch {
	case e.Verb == "delete" && maybe:
		return w.unknown(), nil
	case e.Verb == "delete":
		return w.delete()
	case e.Verb == "deletecollection" && maybe:
		return w.someDeleted(), nil
	case e.Verb == "deletecollection":
		return w.deleteCollection()
	}
	obs, err := w.put()
	if w.bears(obs) {
		obs = append(obs, Born()...)
	}
	return obs, err
}

// target is what a request URI names.
type target struct {
	res             resource
	namespace, name string
	sub             string // a subresource that says something of its own
	propagation     string // propagationPolicy of the query
}

// parseTarget reads the path and query of a request to a kept resource. Subresources are
// not kept, save those through which a namespace changes phase and ends, a pod is bound,
// evicted and given containers and claims, a token is issued, a certificate is signed.
func parseTarget(uri string) (target, bool) {
	var t target
	path, query, _ := strings.Cut(uri, "?")
	// The common refusals first: this runs for every write of the audit stream.
	if !strings.HasPrefix(path, "/api/v1/") && !strings.HasPrefix(path, "/apis/") {
		return t, false
	}
	if strings.IndexByte(path, '%') >= 0 {
		p, err := url.PathUnescape(path)
		if err != nil {
			return t, false
		}
		path = p
	}
	path = strings.Trim(path, "/")
	next := func() (string, bool) {
		if path == "" {
			return "", false
		}
		var s string
		s, path, _ = strings.Cut(path, "/")
		return s, true
	}
	core := strings.HasPrefix(path, "api/")
	next()
	group := ""
	if !core {
		group, _ = next()
	}
	next() // version
	plural, ok := next()
	if !ok {
		return t, false
	}
	if plural == "namespaces" {
		name, named := next()
		if !named {
			t.res = resNamespace
			t.parseQuery(query)
			return t, core
		}
		sub, more := next()
		if !more || sub == "status" || sub == "finalize" {
			t.res, t.name = resNamespace, name
			t.parseQuery(query)
			return t, core && path == ""
		}
		t.namespace, plural = name, sub
	}
	if core && plural == "bindings" { // the old way to bind a pod, which the body names
		t.res, t.sub = resPod, subBinding
		return t, path == "" && t.namespace != ""
	}
	t.res = resourceOfPath(group, plural)
	if t.res == resNone || t.res == resNamespace {
		return t, false
	}
	t.name, _ = next()
	sub, _ := next()
	switch {
	case sub == "":
	case t.res == resPod && (sub == subBinding || sub == subEviction), t.res == resServiceAccount && sub == subToken:
		t.sub = sub
	case t.res == resPod && (sub == "ephemeralcontainers" || sub == "status"), t.res == resSigning && (sub == "approval" || sub == "status"):
		// Answered with the object.
	default:
		return t, false
	}
	if path != "" || t.res.namespaced() == (t.namespace == "") && t.name != "" {
		return t, false // a subresource, or a name outside its scope
	}
	t.parseQuery(query)
	return t, true
}

// resourceOfPath returns the number for a plural of an API group.
func resourceOfPath(group, plural string) resource {
	for res := resNone + 1; res < resCredential; res++ {
		r := &resources[res]
		if r.group == group && len(r.name) >= len(plural) && r.name[:len(plural)] == plural &&
			(len(r.name) == len(plural) || r.name[len(plural)] == '.') {
			return res
		}
	}
	return resNone
}

// parseQuery reads what matters of a raw query.
func (t *target) parseQuery(query string) {
	if strings.Contains(query, "propagationPolicy") || strings.Contains(query, "%") {
		values, _ := url.ParseQuery(query) // what does parse is what the apiserver used
		t.propagation = values.Get("propagationPolicy")
	}
}

// succeeded tells whether the request was answered with success.
func succeeded(e *event.Event) bool {
	if _, issued := e.Annotations.Get(annotationIssued); issued {
		return true
	}
	if e.ResponseStatus != nil && e.ResponseStatus.Code != 0 {
		return e.ResponseStatus.Code >= 200 && e.ResponseStatus.Code < 300
	}
	if len(e.ResponseObject) == 0 {
		return false
	}
	var s statusObject
	if err := json.Unmarshal(e.ResponseObject, &s); err != nil {
		return false
	}
	return s.Kind != "Status" || s.Status == "Success"
}

// statusObject is the part of a metav1.Status that tells what a delete did.
type statusObject struct {
	Kind    string `json:"kind"`
	Details struct {
		UID string `json:"uid"`
	} `json:"details"`
	// Status is a string in a metav1.Status and an object in most others.
	Status statusText `json:"status"`
}

// statusText reads a string and skips anything else.
type statusText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *statusText) UnmarshalJSON(b []byte) error {
	var s string
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	}
	*t = statusText(s)
	return nil
}

// deleteOptions is the part of a metav1.DeleteOptions that changes what a delete means.
type deleteOptions struct {
	PropagationPolicy string `json:"propagationPolicy"`
	OrphanDependents  *bool  `json:"orphanDependents"`
}

// write is one successful request under translation.
type write struct {
	event  *event.Event
	target target
	base   Observation
	pruned struct{ of, to []byte } // the body read last
}

// read returns what is read of a body: most of an object, its managed fields above all, is not,
// and encoding/json would look at each byte of it, and at some of them four times.
func (w *write) read(body []byte) []byte {
	if n := len(w.pruned.of); n > 0 && n == len(body) && &w.pruned.of[0] == &body[0] {
		return w.pruned.to
	}
	shape := shapeRead
	if w.target.res == resVolume {
		shape = shapeVolume
	}
	w.pruned.of, w.pruned.to = body, event.Prune(make([]byte, 0, min(len(body), 1<<10)), body, shape)
	return w.pruned.to
}

// lingers tells whether the DeleteOptions have finalizers put on what is deleted. Those of
// the body count, or those of the query when there is no body; a body that cannot be read
// is treated as absent: the deletion itself succeeded.
func (w *write) lingers() bool {
	o := deleteOptions{PropagationPolicy: w.target.propagation}
	if len(w.event.RequestObject) > 0 {
		o = deleteOptions{}
		if err := json.Unmarshal(w.event.RequestObject, &o); err != nil {
			o = deleteOptions{PropagationPolicy: w.target.propagation}
		}
	}
	return o.PropagationPolicy == "Foreground" || o.PropagationPolicy == "Orphan" || o.OrphanDependents != nil && *o.OrphanDependents
}

// unknown returns the observation that the named object was written, content unknown.
func (w *write) unknown() []Observation {
	o := w.base
	o.Unknown = true
	if o.Name == "" {
		if ref := w.event.ObjectRef; ref != nil {
			o.Name = ref.Name // completed from the body of a create
		}
	}
	if o.Name == "" {
		o.AllOf = true
	}
	return []Observation{o}
}

// put translates create, update and patch.
func (w *write) put() ([]Observation, error) {
	e := w.event
	if len(e.ResponseObject) > 0 {
		obs, err := w.version(e.ResponseObject)
		if err != nil {
			return w.unknown(), fmt.Errorf("read %s response of audit event %s: %w", e.Verb, e.AuditID, err)
		}
		if obs != nil {
			return obs, nil
		}
	}
	if w.target.res == resPod && e.Verb != "create" && e.Code() != 201 {
		return w.changed(), nil
	}
	// A patch does not carry the object, and a body stripped of its object nothing at all.
	if e.Verb == "patch" || len(e.RequestObject) == 0 {
		return w.there(), nil
	}
	read := w.read(e.RequestObject)
	h, err := readHead(read)
	if err != nil {
		return w.unknown(), fmt.Errorf("read %s request of audit event %s: %w", e.Verb, e.AuditID, err)
	}
	o := w.base
	if o.Name == "" {
		o.Name = h.Metadata.Name
	}
	if o.Name == "" || strings.HasSuffix(e.RequestURI, "/status") || resourceOfKind(h.group(), h.Kind) != w.target.res {
		return w.unknown(), nil
	}
	if e.Verb == "update" && h.Metadata.UID != "" && h.gone(w.target.res) {
		o.UID, o.Deleted = h.Metadata.UID, true
		return []Observation{o}, nil
	}
	o.Object = e.RequestObject // its resourceVersion is the one before
	if w.target.res.reduces() {
		if o.Object, err = reduceHead(w.target.res, &h, read, true); err != nil {
			return w.unknown(), fmt.Errorf("read %s request of audit event %s: %w", e.Verb, e.AuditID, err)
		}
	}
	return []Observation{o}, nil
}

// version reads an object the apiserver answered with; nil when the body is something else.
func (w *write) version(body []byte) ([]Observation, error) {
	read := w.read(body)
	h, err := readHead(read)
	if err != nil {
		return nil, err
	}
	if resourceOfKind(h.group(), h.Kind) != w.target.res || h.Metadata.Name == "" || h.Metadata.UID == "" {
		return nil, nil
	}
	o := w.base
	o.Name, o.UID = h.Metadata.Name, h.Metadata.UID
	if w.target.res.namespaced() {
		o.Namespace = h.Metadata.Namespace
	}
	if h.gone(w.target.res) {
		o.Deleted = true
		return w.ended(o, &h, read), nil
	}
	object := body
	if w.target.res.reduces() {
		if object, err = reduceHead(w.target.res, &h, read, false); err != nil {
			return nil, err
		}
	}
	o.ResourceVersion, o.Object = h.Metadata.ResourceVersion, object
	return []Observation{o}, nil
}

// delete translates the deletion of one object. It ends the object when the answer is a
// Status or the object as it last stood; when the answer shows a deletion still held back,
// that is a version like any other: RBAC objects being deleted still grant.
func (w *write) delete() ([]Observation, error) {
	e := w.event
	o := w.base
	o.Deleted = true
	body := e.ResponseObject
	if len(body) == 0 && e.ResponseStatus != nil {
		body = e.ResponseStatus.Raw // a Status answer is recorded at every level
	}
	if len(body) == 0 {
		return w.unknown(), nil
	}
	var s statusObject
	if err := json.Unmarshal(w.read(body), &s); err != nil {
		return w.unknown(), fmt.Errorf("read delete response of audit event %s: %w", e.AuditID, err)
	}
	if s.Details.UID != "" && s.Status == "Success" {
		o.UID = s.Details.UID
		return []Observation{o}, nil
	}
	if len(e.ResponseObject) == 0 || s.Kind == "Status" {
		return w.unknown(), nil
	}
	obs, err := w.version(e.ResponseObject)
	if err != nil || obs == nil {
		return w.unknown(), err
	}
	if v := &obs[0]; !v.Deleted {
		if h, err := readHead(w.read(e.ResponseObject)); err == nil && h.Metadata.DeletionTimestamp == "" {
			v.Deleted, v.ResourceVersion = true, ""
			if w.target.res != resPod {
				v.Object = nil
			}
		}
	}
	return obs, nil
}

// someDeleted returns the observation that any of the objects may have been deleted.
func (w *write) someDeleted() []Observation {
	o := w.base
	o.AllOf, o.Deleted = true, true
	return []Observation{o}
}

// deleteCollection translates the deletion of a collection. The answer lists the objects
// as they stood; those that finalizers hold back linger, in a form that is not shown.
func (w *write) deleteCollection() ([]Observation, error) {
	lingers := w.lingers()
	body := bytes.TrimSpace(w.event.ResponseObject)
	if len(body) == 0 {
		return w.someDeleted(), nil
	}
	body = w.read(body)
	var list struct {
		Kind  string           `json:"kind"`
		Items *json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return w.someDeleted(), fmt.Errorf("read deletecollection response of audit event %s: %w", w.event.AuditID, err)
	}
	if !strings.HasSuffix(list.Kind, "List") {
		return w.someDeleted(), nil
	}
	if w.target.res == resPod {
		return w.deletePods(list.Items)
	}
	var items []head
	if list.Items != nil {
		if err := json.Unmarshal(*list.Items, &items); err != nil {
			return w.someDeleted(), fmt.Errorf("read deletecollection items of audit event %s: %w", w.event.AuditID, err)
		}
	}
	out := make([]Observation, 0, len(items))
	for i := range items {
		m := &items[i].Metadata
		o := w.base
		o.Name, o.UID = m.Name, m.UID
		if m.Namespace != "" {
			o.Namespace = m.Namespace
		}
		if lingers || len(m.Finalizers) > 0 {
			o.Unknown, o.UID = true, ""
		} else {
			o.Deleted = true
		}
		out = append(out, o)
	}
	return out, nil
}
