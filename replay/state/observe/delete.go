package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state/kept"
)

// Finalizers that the options of a deletion add to an object, and remove.
const (
	finalizerOrphan     = "orphan"
	finalizerForeground = "foregroundDeletion"
)

// deleteOptions are the options of a deletion, as far as they change what it means.
type deleteOptions struct {
	GracePeriod       *int64 `json:"gracePeriodSeconds"`
	PropagationPolicy string `json:"propagationPolicy"`
	OrphanDependents  *bool  `json:"orphanDependents"`
}

// options returns the options of a deletion: those of its body, or without one, those of its query. A body that cannot be read is treated
// as absent: the deletion itself succeeded.
func (w *write) options() deleteOptions {
	var o deleteOptions
	if body := w.event.RequestObject; len(body) > 0 && json.Unmarshal(body, &o) == nil {
		return o
	}
	values, _ := url.ParseQuery(w.target.query) // what does parse is what the apiserver used
	o = deleteOptions{PropagationPolicy: values.Get("propagationPolicy")}
	if n, err := strconv.ParseInt(values.Get("gracePeriodSeconds"), 10, 64); err == nil {
		o.GracePeriod = &n
	}
	if b, err := strconv.ParseBool(values.Get("orphanDependents")); err == nil {
		o.OrphanDependents = &b
	}
	return o
}

// finalizers returns the finalizers an object has after a deletion with these options, as
// Store.deletionFinalizersForGarbageCollection has them.
func (o *deleteOptions) finalizers(had []string) []string {
	orphan, foreground := slices.Contains(had, finalizerOrphan), slices.Contains(had, finalizerForeground)
	foreground = foreground && !orphan
	switch {
	case o.OrphanDependents != nil:
		orphan, foreground = *o.OrphanDependents, false
	case o.PropagationPolicy == "Orphan":
		orphan, foreground = true, false
	case o.PropagationPolicy == "Foreground":
		orphan, foreground = false, true
	case o.PropagationPolicy == "Background":
		orphan, foreground = false, false
	}
	out := slices.DeleteFunc(slices.Clone(had), func(f string) bool { return f == finalizerOrphan || f == finalizerForeground })
	if orphan {
		out = append(out, finalizerOrphan)
	}
	if foreground {
		out = append(out, finalizerForeground)
	}
	return out
}

// frees reports whether the options remove all that held an object back. It has gone then, and the answer shows it as it last was: so for a
// namespace, too, whose first deletion is answered with the finalizers that these options leave.
func (o *deleteOptions) frees(m *kept.Meta) bool {
	return len(m.Finalizers) > 0 && (m.GracePeriod == nil || *m.GracePeriod == 0) && len(o.finalizers(m.Finalizers)) == 0
}

// delete translates the deletion of one object. The answer is the object as it last was, or, with deletionTimestamp and what holds it back,
// as it is: an RBAC object being deleted still grants. For most kinds a Status says that the object has gone.
func (w *write) delete() ([]Observation, error) {
	e := w.event
	body := e.ResponseObject
	if len(body) == 0 && e.ResponseStatus != nil {
		body = e.ResponseStatus.Raw // a Status is recorded at every level
	}
	a, err := w.answer(body)
	if err != nil {
		return w.asked(), fmt.Errorf("read delete response of audit event %s: %w", e.AuditID, err)
	}
	o := w.base
	options := w.options()
	switch m := &a.head.Metadata; {
	case a.ended != "":
		o.UID, o.Deleted = a.ended, true
		return []Observation{o}, nil
	case !a.tells() && endsWithStatus(w.target.res) && len(e.ResponseObject) == 0 && e.ResponseStatus != nil:
		return []Observation{w.lingers(&kept.Meta{})}, nil // or a Status would say so
	case !a.tells():
		return w.asked(), nil
	case w.target.res == kept.ResNamespace && !a.partial && (a.head.Gone(kept.ResNamespace) || options.frees(m) &&
		options.OrphanDependents != nil && len(a.head.Spec.Finalizers) == 0) &&
		!m.Deletion().Before(e.RequestReceivedTimestamp.Truncate(time.Second)):
		// The first deletion marks it, the next one ends it; within one second they look alike. (For the
		// first one, orphanDependents=false is to delete them in the foreground.)
		o := w.observe(&a)
		o.Deleted, o.Unknown, o.UID = true, true, ""
		return []Observation{o}, nil
	case a.partial && w.target.res == kept.ResNamespace && m.DeletionTimestamp != "" && options.frees(m):
		return w.asked(), nil // it has gone, unless its spec has finalizers
	case a.partial && w.target.res == kept.ResNamespace, m.DeletionTimestamp != "" && !a.head.Gone(w.target.res) &&
		(len(a.head.Spec.Finalizers) > 0 || !options.frees(m)):
		answered := w.version
		if a.partial {
			answered = w.partial
		}
		obs, err := answered(&a)
		if w.target.res != kept.ResPod && obs[0].ResourceVersion != "" {
			obs[0].Update = len(options.finalizers(nil)) == 0 // perhaps it was read before, without what holds it back
		}
		return obs, err
	}
	o = w.observe(&a)
	o.Deleted = true
	return w.ended(o, &a), nil
}

// asked returns the observation that the named object's deletion was requested, with an unknown outcome.
func (w *write) asked() []Observation {
	o := w.unknown()[0]
	o.Deleted = true
	return []Observation{o}
}

// endsWithStatus reports whether the deletion of an object that goes at once is answered with a
// Status; other kinds are answered with the object (ReturnDeletedObject of its Store).
func endsWithStatus(res kept.Resource) bool {
	return res.RBACKind() != 0 || res == kept.ResSecret || res == kept.ResNode || res == kept.ResSigning || res == kept.ResPodCertificate
}

// lingers returns the observation that the named object is being deleted and held back.
func (w *write) lingers(m *kept.Meta) Observation {
	o := w.base
	if o.Unchanged = true; m.DeletionTimestamp == "" {
		m.DeletionTimestamp = w.event.StageTimestamp.UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	var err error
	if o.Object, err = w.metadata(m); err != nil {
		o.Unchanged, o.Unknown = false, true
	}
	return o
}

// someDeleted returns the observation that any of the objects may have been deleted.
func (w *write) someDeleted() []Observation {
	o := w.base
	o.AllOf, o.Deleted = true, true
	return []Observation{o}
}

// deleteCollection translates the deletion of a collection. The answer lists the objects as they were before; what happened to each follows
// from that and the options.
func (w *write) deleteCollection() ([]Observation, error) {
	body := bytes.TrimSpace(w.event.ResponseObject)
	if len(body) == 0 {
		return w.someDeleted(), nil
	}
	items, err := w.items(body)
	if err != nil {
		return w.someDeleted(), fmt.Errorf("read deletecollection response of audit event %s: %w", w.event.AuditID, err)
	}
	if items == nil {
		return w.someDeleted(), nil
	}
	options := w.options()
	out := make([]Observation, 0, len(items))
	for _, raw := range items {
		var o Observation
		if w.target.res == kept.ResPod {
			o, err = w.deletedPod(raw, options)
		} else {
			o, err = w.deletedItem(raw, &options)
		}
		if err != nil {
			return w.someDeleted(), fmt.Errorf("read deletecollection items of audit event %s: %w", w.event.AuditID, err)
		}
		out = append(out, o)
	}
	return out, nil
}

// items returns the items of a list, or the objects of a Table's rows, nil for anything else.
func (w *write) items(body []byte) ([]json.RawMessage, error) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
		Rows  []struct {
			Object json.RawMessage `json:"object"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(w.read(body), &list); err != nil {
		return nil, err
	}
	out := make([]json.RawMessage, 0, len(list.Items)+len(list.Rows))
	switch {
	case list.Kind == kindTable || list.Kind == kindPartial+"List":
		if w.target.res == kept.ResPod {
			return nil, nil // what became of each depends on more than metadata
		}
		for _, row := range list.Rows {
			if len(row.Object) == 0 || string(row.Object) == "null" {
				return nil, nil
			}
			out = append(out, row.Object)
		}
		return append(out, list.Items...), nil
	case strings.HasSuffix(list.Kind, "List"):
		return append(out, list.Items...), nil
	}
	return nil, nil
}

// deletedItem returns what happened to an object whose kind has no grace: it goes at once unless a finalizer holds it back.
func (w *write) deletedItem(raw []byte, options *deleteOptions) (Observation, error) {
	h, err := kept.ReadHead(raw)
	if err != nil {
		return Observation{}, err
	}
	o := w.base
	m := &h.Metadata
	o.Name, o.UID = m.Name, m.UID
	if m.Namespace != "" {
		o.Namespace = m.Namespace
	}
	if m.Finalizers = options.finalizers(m.Finalizers); len(m.Finalizers) == 0 {
		o.Deleted, o.Update = true, true
		return o, nil
	}
	of := *w
	of.base = o
	o = of.lingers(m)
	o.UID = ""
	return o, nil
}

// deletedPod returns what happened to a pod, by rest.BeforeDelete and the pods' CheckGracefulDelete. A grace begins at the latest when the
// request was done.
func (w *write) deletedPod(raw []byte, options deleteOptions) (Observation, error) {
	var in struct {
		Spec struct {
			NodeName string `json:"nodeName"`
			Grace    *int64 `json:"terminationGracePeriodSeconds"`
		} `json:"spec"`
	}
	h, err := kept.ReadHead(raw)
	if err != nil {
		return Observation{}, err
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return Observation{}, err
	}
	f, err := kept.FactsOf(kept.ResPod, raw, false)
	if err != nil {
		return Observation{}, err
	}
	m := &h.Metadata
	o := w.base
	o.Name, o.UID = m.Name, m.UID
	if m.Namespace != "" {
		o.Namespace = m.Namespace
	}
	pending := m.DeletionTimestamp != "" && m.GracePeriod != nil && *m.GracePeriod > 0
	if pending && (options.GracePeriod == nil || positive(*options.GracePeriod) >= *m.GracePeriod) {
		o.Object, err = kept.Encode(&h, f) // nothing became of it: its deletion is pending
		return o, err
	}
	now := w.event.StageTimestamp.UTC().Truncate(time.Second)
	moved := w.event.RequestReceivedTimestamp.Before(now) // in which second it was is not told
	m.Finalizers = options.finalizers(m.Finalizers)
	asked := int64(30) // which the apiserver fills in
	if options.GracePeriod != nil {
		asked = positive(*options.GracePeriod)
	} else if in.Spec.Grace != nil {
		asked = positive(*in.Spec.Grace)
	}
	grace := int64(0)
	switch {
	case pending: // its grace is shortened
		grace = asked
		until := m.Deletion().Add(time.Duration(grace-*m.GracePeriod) * time.Second)
		if until.Before(now) {
			until, grace, f.Estimated = now, min(grace, 1), moved
		}
		m.DeletionTimestamp = until.Format(time.RFC3339)
	case m.DeletionTimestamp == "":
		if in.Spec.NodeName != "" && !f.Over { // something runs that has to come to an end
			grace = asked
		}
		m.DeletionTimestamp, f.Estimated = now.Add(time.Duration(grace)*time.Second).Format(time.RFC3339), moved
		f.Sudden = asked > 0 && !f.Over
	}
	if len(options.finalizers(nil)) == 0 {
		if f.Read, err = strconv.ParseUint(m.ResourceVersion, 10, 64); err != nil {
			f.Read = 0
		}
	}
	m.GracePeriod = &grace
	o.Deleted = grace == 0 && len(m.Finalizers) == 0
	o.Update = o.Deleted
	o.Object, err = kept.Encode(&h, f)
	return o, err
}

// positive returns a grace period as the apiserver reads it: below zero is one second.
func positive(seconds int64) int64 {
	if seconds < 0 {
		return 1
	}
	return seconds
}
