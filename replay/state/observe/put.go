package observe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/patchops"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// put translates create, update and patch.
func (w *write) put() ([]Observation, error) {
	e := w.event
	a, err := w.answer(e.ResponseObject)
	switch {
	case err != nil:
		err = fmt.Errorf("read %s response of audit event %s: %w", e.Verb, e.AuditID, err)
		return w.unknown(), err
	case a.raw != nil:
		return w.version(&a)
	case a.partial:
		return w.partial(&a)
	}
	o, err := w.requested()
	if err != nil {
		err = fmt.Errorf("read %s request of audit event %s: %w", e.Verb, e.AuditID, err)
	}
	o.Created = w.makes() && !o.AllOf
	o.Update = !w.makes() && !o.Unknown && !o.Patch && !o.Deleted && !held(&o)
	return []Observation{o}, err
}

// makes reports whether the write made its object.
func (w *write) makes() bool { return w.event.Verb == "create" || w.event.Code() == 201 }

// held reports whether a write left finalizers that hold its object back.
func held(o *Observation) bool {
	if len(o.Object) == 0 {
		return false
	}
	h, err := kept.ReadHead(o.Object)
	return err == nil && len(h.Metadata.Finalizers) > 0
}

// version translates a write that was answered with its object.
func (w *write) version(a *answer) ([]Observation, error) {
	o := w.observe(a)
	m := &a.head.Metadata
	var err error
	if o.Deleted = a.head.Gone(w.target.res); o.Deleted {
		return w.ended(o, a), nil
	}
	o.ResourceVersion, o.Object, o.Created = m.ResourceVersion, a.raw, w.makes()
	if w.target.res.Reduces() {
		if o.Object, err = kept.ReduceHead(w.target.res, &a.head, a.read, false); err != nil {
			return w.unknown(), err
		}
	}
	return []Observation{o}, nil
}

// partial translates a write that was answered with its object's metadata: the rest is what was requested.
func (w *write) partial(a *answer) ([]Observation, error) {
	m := &a.head.Metadata
	if w.target.res == kept.ResNamespace && a.head.Gone(kept.ResRole) {
		o := w.observe(a) // unless its spec has finalizers, which metadata does not tell
		o.Unknown = true
		return []Observation{o}, nil
	}
	o := w.observe(a)
	if o.Deleted = a.head.Gone(w.target.res); o.Deleted {
		return w.ended(o, a), nil
	}
	o.ResourceVersion, o.Created = m.ResourceVersion, w.makes()
	var err error
	switch asked, bad := w.requested(); {
	case asked.Unchanged, w.target.res == kept.ResPod && !w.makes():
		o.Unchanged = true
		if o.Object, err = w.metadata(m); err == nil && !asked.Unchanged {
			return []Observation{o, asked}, nil // its references were changed, too
		}
	case bad == nil && !asked.Patch && len(asked.Object) > 0 && m.DeletionTimestamp == "":
		o.Object, err = w.completed(asked.Object, m)
	case w.target.res.Reduces():
		o.Object, err = w.metadata(m)
	default:
		o.Unknown = true
	}
	if err != nil {
		o.Object, o.Unchanged, o.Unknown = nil, false, true
	}
	return []Observation{o}, err
}

// completed returns the stored form of what was requested, with the metadata of the answer.
func (w *write) completed(object []byte, m *kept.Meta) ([]byte, error) {
	if !w.target.res.Reduces() {
		return object, nil
	}
	var o kept.Object
	if err := json.Unmarshal(object, &o); err != nil {
		return nil, err
	}
	return kept.Encode(&kept.Head{APIVersion: o.APIVersion, Kind: o.Kind, Metadata: *m}, o.Reduced)
}

// requested returns what a write without a telling answer asked for. It is valid, with unknown content, even if a body cannot be read.
func (w *write) requested() (Observation, error) {
	e, res := w.event, w.target.res
	o := w.base
	body := e.RequestObject
	if !w.makes() && (w.target.fixed() || e.Verb == "delete" || e.Verb == "patch" && metadataPatch(res, body) ||
		res == kept.ResPod && w.target.sub == subStatus && !event.WritesClaims(body)) {
		o.Unchanged = true
		if e.Verb == "update" && len(body) > 0 && (res != kept.ResPod || w.target.sub == "") {
			return w.updated(o)
		}
		return o, nil
	}
	applied := w.makes() && res.RBACKind() != 0 // no other patch brings an object into being
	if e.Verb == "patch" && !applied || len(body) == 0 || w.target.sub == subStatus || res == kept.ResPod && !w.makes() {
		return w.there(), nil // not the object, or more than is written of it
	}
	read := w.read(body)
	h, err := kept.ReadHead(read)
	if err != nil {
		return w.unknown()[0], err
	}
	if o.Name == "" {
		o.Name = h.Metadata.Name
	}
	if kept.ResourceOfKind(h.Group(), h.Kind) != res {
		return w.unknown()[0], nil
	}
	if o.Name == "" {
		return w.unnamed(&h, read)
	}
	o.Object = body // its resourceVersion is the one before
	if res.Reduces() {
		if o.Object, err = kept.ReduceHead(res, &h, read, true); err != nil {
			return w.unknown()[0], err
		}
	}
	return o, nil
}

// unnamed returns the observation of an object whose generated name was not recorded. A pod requested without a node is told apart: nothing
// leads to a node through it before it is bound.
func (w *write) unnamed(h *kept.Head, read []byte) (Observation, error) {
	o := w.unknown()[0]
	if w.target.res != kept.ResPod || !o.AllOf {
		return o, nil
	}
	object, err := kept.ReduceHead(kept.ResPod, h, read, true)
	if err != nil {
		return o, err
	}
	var in kept.Object
	if err := json.Unmarshal(object, &in); err != nil || in.Reduced.Node != "" || in.Reduced.AnyNode {
		return o, err
	}
	o.Object = object
	return o, nil
}

// updated completes an update that changes nothing of what is kept with what its body says of its metadata.
func (w *write) updated(o Observation) (Observation, error) {
	h, err := kept.ReadHead(w.read(w.event.RequestObject))
	if err != nil || kept.ResourceOfKind(h.Group(), h.Kind) != w.target.res {
		return o, err
	}
	finalizes := w.target.sub == subFinalize // no other update changes a spec's finalizers
	if h.Metadata.UID != "" && h.Gone(w.target.res) && (finalizes || w.target.res != kept.ResNamespace) {
		o.UID, o.Deleted, o.Unchanged = h.Metadata.UID, true, false
		return o, nil
	}
	if finalizes {
		h.Metadata.Finalizers = append(h.Metadata.Finalizers, h.Spec.Finalizers...)
	}
	o.Object, err = w.metadata(&h.Metadata)
	return o, err
}

// fixed reports whether no update changes what is kept of the target, except its end: the apiserver forbids changing it, or only the
// object's life is kept.
func (t *target) fixed() bool {
	switch t.res {
	case kept.ResNamespace, kept.ResServiceAccount, kept.ResNode, kept.ResAttachment, kept.ResSlice, kept.ResPodCertificate:
		return true
	case kept.ResSigning, kept.ResPod:
		return t.sub == ""
	case kept.ResVolume:
		return t.sub == subStatus
	}
	return false
}

// metadataPatch reports whether a patch changes only metadata of an object that is not kept. It returns false for what may be an apply
// patch, which removes what it does not name.
func metadataPatch(res kept.Resource, body []byte) bool {
	if len(body) == 0 {
		return false
	}
	if body[0] == '[' {
		ops, ok := patchops.Read(body)
		for i := range ops {
			op := &ops[i]
			if op.Op != "test" && !metadataPath(res, op.Path) || op.Op == "move" && !metadataPath(res, op.From) {
				return false
			}
		}
		return ok
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(body, &in) != nil {
		return false
	}
	for name := range in {
		if name != "metadata" {
			return false
		}
	}
	if res != kept.ResSecret || len(in) == 0 {
		return true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(in["metadata"], &members) != nil {
		return false
	}
	_, labels := members["labels"]
	_, annotations := members["annotations"]
	return !labels && !annotations && members != nil
}

// metadataPath reports whether a pointer of a JSON patch points to metadata that is not kept.
func metadataPath(res kept.Resource, path string) bool {
	member, ok := strings.CutPrefix(path, "/metadata/")
	if !ok {
		return false
	}
	member, _, _ = strings.Cut(member, "/")
	return res != kept.ResSecret || member != "labels" && member != "annotations"
}

// there returns the observation that the named object was written with unknown content; for a reduced kind, that it exists.
func (w *write) there() Observation {
	o := w.unknown()[0]
	switch {
	case o.AllOf:
	case w.target.res.RBACKind() != 0 && w.event.Verb == "patch" && !w.makes():
		o.Unknown, o.Patch, o.Object = false, true, w.event.RequestObject
	case w.target.res == kept.ResPod && !w.makes(): // what it refers to was changed, how was not recorded
		if b, err := json.Marshal(kept.Object{Kind: kept.ResPod.ObjectKind(), Reduced: &kept.Facts{Bare: true,
			AnyRefs: true}}); err == nil {
			o.Unknown, o.Object = false, b
		}
	case w.target.res.Reduces():
		o.Unknown, o.Object = false, kept.Bare(w.target.res)
	}
	return o
}

// ended completes the observation of an end with what the pod was: tokens outlive their pods.
func (w *write) ended(o Observation, a *answer) []Observation {
	if w.target.res != kept.ResPod {
		return []Observation{o}
	}
	var object []byte
	var err error
	if a.partial {
		object, err = w.metadata(&a.head.Metadata)
	} else {
		object, err = kept.ReduceHead(kept.ResPod, &a.head, a.read, false)
	}
	if err == nil {
		o.Object = object
	}
	return []Observation{o}
}

// bears reports whether the write made the cluster: it created the namespace that apiservers make first and never delete.
func (w *write) bears(obs []Observation) bool {
	if w.target.res != kept.ResNamespace || len(obs) != 1 || obs[0].Name != "kube-system" || obs[0].AllOf {
		return false
	}
	return w.event.Code() == 201 || w.event.Code() == 0 && w.event.Verb == "create"
}

// Born returns what the making of a cluster says: that there was nothing before, so every resource is known completely from the beginning.
func Born() []Observation {
	out := make([]Observation, 0, kept.ResCount-1)
	for _, res := range kept.Resources() {
		out = append(out, Observation{Source: SourceAudit, Resource: res, AllOf: true, Complete: true})
	}
	return out
}

// Bears reports whether observations contain what Born returns: the cluster was made in them.
func Bears(observations []Observation) bool {
	return slices.ContainsFunc(observations, func(o Observation) bool {
		return o.Source == SourceAudit && o.AllOf && o.Complete
	})
}
