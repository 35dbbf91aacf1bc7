package observe

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// FromEvent returns what a policy write of the audit stream says about the objects the replica keeps; and and and and and and and and and
// nothing for any other event. A policy write is a create, update, patch, delete or deletecollection that succeeded (2xx), was not a dry
// run, and is complete; or one that found its object missing ([event.Missing]). For kinds with many writes only those count that change
// what is kept ([event.KeepsWrite]).
//
// How an object ends is read as Kubernetes' generic registry ends it (Store.Update, Store.Delete, rest.BeforeDelete): at once, after a
// grace period, or when the last finalizer is removed. An update or patch without a recorded answer may have done the latter.
//
// A request of the apiserver itself shows its version ([event.Sighting]).
//
// The creation of the namespace kube-system says in addition that nothing was there before:
// every resource is known completely, as far as the log goes on recording it.
//
// What the event did not record, because of its level or because its bodies were cut, becomes unknown content, or an AllOf observation if
// not even the names are known. The resource and names are taken from the request URI, which is what the apiserver acted on.
//
// An event without a responseStatus (a copy whose answers were removed) counts as a success if its response body says so.
//
// Observations are valid, with unknown content, even if the error is not nil: it says that a recorded body could not be read. They may
// alias the event's buffers.
func FromEvent(e *event.Event) ([]Observation, error) {
	obs, err := fromWrite(e)
	if o, ok := sighting(e); ok {
		obs = append(obs, o)
	}
	return obs, err
}

// fromWrite is FromEvent of a write.
func fromWrite(e *event.Event) ([]Observation, error) {
	if !event.Ends(e) {
		return nil, nil
	}
	if event.Shows(e) {
		return shown(e)
	}
	missing := event.Missing(e)
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		if !missing {
			return nil, nil
		}
	}
	t, ok := parseTarget(e.RequestURI)
	if !ok || !missing && t.res.Reduces() && !event.KeepsWrite(e) {
		return nil, nil
	}
	w := write{event: e, target: t, base: Observation{
		Source: SourceAudit, Resource: t.res.String(), Namespace: t.namespace, Name: t.name,
		NotBefore: e.RequestReceivedTimestamp, NotAfter: e.StageTimestamp,
	}}
	if missing {
		w.base.Deleted, w.base.Complete = true, true
		return []Observation{w.base}, nil
	}
	dryRun := event.DryRunOf(e)
	outcome := outcomeOf(e)
	if dryRun == event.DryRun || outcome == event.NotDone {
		return nil, nil
	}
	if outcome == event.PerhapsDone {
		return w.perhaps(), nil
	}
	switch t.sub {
	case subBinding, subEviction, subToken:
		return w.subresource(dryRun)
	}
	maybe := dryRun == event.MaybeDryRun
	switch {
	case e.Verb == "delete" && maybe:
		return w.asked(), nil
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
	res             kept.Resource
	namespace, name string
	sub             string
	query           string // the query, raw
}

// parseTarget reads the path and query of a request to a kept resource. Subresources are not kept, except those through which a namespace
// changes phase and ends, a pod is bound, evicted and given containers and claims, a token is issued, or a certificate is signed.
func parseTarget(uri string) (target, bool) {
	var t target
	path, query, _ := strings.Cut(uri, "?")
	t.query = query
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
			t.res = kept.ResNamespace
			return t, core
		}
		sub, more := next()
		if !more || sub == subStatus || sub == subFinalize {
			t.res, t.name, t.sub = kept.ResNamespace, name, sub
			return t, core && path == ""
		}
		t.namespace, plural = name, sub
	}
	if core && plural == "bindings" { // the old way to bind a pod, which the body names
		t.res, t.sub = kept.ResPod, subBinding
		return t, path == "" && t.namespace != ""
	}
	t.res = kept.ResourceOfPath(group, plural)
	if t.res == kept.ResNone || t.res == kept.ResNamespace {
		return t, false
	}
	t.name, _ = next()
	t.sub, _ = next()
	switch {
	case t.sub == "":
	case t.res == kept.ResPod && (t.sub == subBinding || t.sub == subEviction || t.sub == subEphemeral || t.sub == subStatus):
	case t.res == kept.ResServiceAccount && t.sub == subToken:
	case t.res == kept.ResSigning && (t.sub == subApproval || t.sub == subStatus):
	case (t.res == kept.ResVolume || t.res == kept.ResAttachment) && t.sub == subStatus:
	default:
		return t, false
	}
	if path != "" || t.res.Namespaced() == (t.namespace == "") && t.name != "" {
		return t, false // a subresource, or a name outside its scope
	}
	return t, true
}

// outcomeOf reports whether the write was done: without a status, as its response body says.
func outcomeOf(e *event.Event) event.Outcome {
	if _, issued := e.Annotations.Get(annotationIssued); issued {
		return event.Done
	}
	if e.ResponseStatus != nil && e.ResponseStatus.Code != 0 || len(e.ResponseObject) == 0 {
		return event.OutcomeOf(e)
	}
	var s statusObject
	if json.Unmarshal(e.ResponseObject, &s) != nil || s.Kind == kindStatus && s.Status != "Success" {
		return event.NotDone
	}
	return event.Done
}

// perhaps translates a write that may have been done: it leaves its object in doubt.
func (w *write) perhaps() []Observation {
	switch {
	case w.target.sub == subToken:
		return nil
	case w.event.Verb == "deletecollection":
		return w.someDeleted()
	case w.event.Verb == "delete", w.target.sub == subEviction:
		out := w.asked()
		out[0].Unchanged = w.target.res.RBACKind() != 0
		return out
	}
	out := w.unknown()
	if name := w.standIn(); out[0].AllOf && name != "" {
		out[0].AllOf, out[0].Name = false, name
	}
	makes := w.makes() || w.target.res == kept.ResPod && w.event.Verb == "patch" // which may be an apply
	out[0].Created = w.target.sub == "" && makes && !out[0].AllOf
	if w.target.res.RBACKind() != 0 && !out[0].AllOf {
		out[0].Object = w.event.RequestObject // it is that now, or as it was
		out[0].Patch = w.event.Verb == "patch" || len(w.event.RequestObject) == 0
	}
	if w.target.res == kept.ResPod && (w.target.sub == subEphemeral || w.target.sub == subStatus) {
		out = append(out, w.there()) // what it refers to may have been changed, too
	}
	return out
}

// maxGenerated is how much of a requested prefix the apiserver puts into a name that it generates (names.SimpleNameGenerator).
const maxGenerated = 58

// standIn returns a name for a role or binding whose name the apiserver was to generate, and which is unknown: one that no object can have,
// so that only the stand-in is in doubt. It is empty for other writes. See standsFor.
func (w *write) standIn() string {
	if w.target.res.RBACKind() == 0 || w.event.Verb != "create" {
		return ""
	}
	h, err := kept.ReadHead(w.event.RequestObject)
	if err != nil || h.Metadata.GenerateName == "" {
		return ""
	}
	base := h.Metadata.GenerateName
	return base[:min(len(base), maxGenerated)] + "/" + strconv.FormatUint(xxhash.Sum64String(w.event.AuditID), 36)
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

// write is one successful request being translated.
type write struct {
	event  *event.Event
	target target
	base   Observation
	pruned struct{ of, to []byte } // the body read last
}

// read returns the part of a body that is read: most of an object is not, above all its managed fields, and encoding/json would look at
// each byte of it, at some of them four times.
func (w *write) read(body []byte) []byte {
	if n := len(w.pruned.of); n > 0 && n == len(body) && &w.pruned.of[0] == &body[0] {
		return w.pruned.to
	}
	shape := event.ShapeKept
	if w.target.res == kept.ResVolume {
		shape = event.ShapeKeptVolume
	}
	w.pruned.of, w.pruned.to = body, jsontext.Prune(make([]byte, 0, min(len(body), 1<<10)), body, shape)
	return w.pruned.to
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
