package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

// Subresources whose requests say something of their own.
const (
	subBinding  = "binding"
	subEviction = "eviction"
	subToken    = "token"
)

// annotationIssued carries the credential id of a token on the request that issued it.
const annotationIssued = "authentication.kubernetes.io/issued-credential-id"

// Born returns what the making of a cluster says: that before everything observed there was
// nothing, so that every resource is known completely from the beginning.
func Born() []Observation {
	out := make([]Observation, 0, resCount-1)
	for _, res := range Resources() {
		out = append(out, Observation{Source: SourceAudit, Resource: res, AllOf: true, Complete: true})
	}
	return out
}

// bears tells whether the write made the cluster: it created the namespace that apiservers
// make first and never let go.
func (w *write) bears(obs []Observation) bool {
	if w.target.res != resNamespace || len(obs) != 1 || obs[0].Name != "kube-system" || obs[0].AllOf {
		return false
	}
	return w.event.Code() == 201 || w.event.Code() == 0 && w.event.Verb == "create"
}

// there returns the observation that the named object was written, content unknown: of a kind
// that is reduced, that it is there.
func (w *write) there() []Observation {
	obs := w.unknown()
	if o := &obs[0]; w.target.res.reduces() && !o.AllOf {
		o.Unknown, o.Object = false, bare(w.target.res)
	}
	return obs
}

// changed returns the observation that what a pod refers to was changed, how was not recorded.
func (w *write) changed() []Observation {
	o := w.base
	b, err := json.Marshal(reducedObject{Kind: resources[resPod].kind, Reduced: &facts{Bare: true, AnyRefs: true}})
	if err != nil {
		o.Unknown = true
	}
	o.Object = b
	return []Observation{o}
}

// ended completes the observation of an end by what the pod was: tokens outlive their pods.
func (w *write) ended(o Observation, h *head, body []byte) []Observation {
	if w.target.res == resPod {
		if object, err := reduceHead(resPod, h, body, false); err == nil {
			o.Object = object
		}
	}
	return []Observation{o}
}

// deletePods translates the deletion of a collection of pods. The answer shows each as it
// stood before: what became of it follows from that and the options, as the apiserver derives
// it. The grace begins when the request was done at the latest.
func (w *write) deletePods(items *json.RawMessage) ([]Observation, error) {
	var list []json.RawMessage
	if items != nil {
		if err := json.Unmarshal(*items, &list); err != nil {
			return w.someDeleted(), fmt.Errorf("read deletecollection items of audit event %s: %w", w.event.AuditID, err)
		}
	}
	grace := w.grace()
	out := make([]Observation, 0, len(list))
	for _, raw := range list {
		var in struct {
			Spec struct {
				NodeName string `json:"nodeName"`
				Grace    *int64 `json:"terminationGracePeriodSeconds"`
			} `json:"spec"`
			Status struct {
				Phase string `json:"phase"`
			} `json:"status"`
		}
		f, err := factsOf(resPod, raw, false)
		o, badHead := readHead(raw)
		if err := errors.Join(err, badHead, json.Unmarshal(raw, &in)); err != nil {
			return w.someDeleted(), fmt.Errorf("read deletecollection items of audit event %s: %w", w.event.AuditID, err)
		}
		m := &o.Metadata
		obs := w.base
		obs.Name, obs.UID = m.Name, m.UID
		if m.Namespace != "" {
			obs.Namespace = m.Namespace
		}
		given := int64(30)
		if in.Spec.Grace != nil {
			given = *in.Spec.Grace
		}
		if grace != nil {
			given = *grace
		}
		if in.Spec.NodeName == "" || in.Status.Phase == "Succeeded" || in.Status.Phase == "Failed" {
			given = 0 // nothing runs that would have to come to an end
		}
		obs.Deleted = given <= 0 && len(m.Finalizers) == 0
		if until := w.event.StageTimestamp.Add(time.Duration(given) * time.Second); m.DeletionTimestamp == "" || until.Before(m.deletion()) {
			m.DeletionTimestamp = until.UTC().Truncate(time.Second).Format(time.RFC3339)
		}
		obs.Object, err = encodeReduced(&o, f)
		if err != nil {
			return w.someDeleted(), fmt.Errorf("read deletecollection items of audit event %s: %w", w.event.AuditID, err)
		}
		out = append(out, obs)
	}
	return out, nil
}

// grace returns the gracePeriodSeconds of the options of a deletion, nil when they have none.
func (w *write) grace() *int64 {
	if len(w.event.RequestObject) > 0 {
		var o struct {
			Grace *int64 `json:"gracePeriodSeconds"`
		}
		if err := json.Unmarshal(w.event.RequestObject, &o); err == nil {
			return o.Grace
		}
	}
	_, query, _ := strings.Cut(w.event.RequestURI, "?")
	if strings.Contains(query, "gracePeriodSeconds") {
		values, _ := url.ParseQuery(query)
		if n, err := strconv.ParseInt(values.Get("gracePeriodSeconds"), 10, 64); err == nil {
			return &n
		}
	}
	return nil
}

// subresource translates a request whose body is not the object it is about.
func (w *write) subresource(dryRun event.DryRunAnswer) ([]Observation, error) {
	e := w.event
	if e.Verb != "create" || dryRun != event.NoDryRun {
		return nil, nil
	}
	if w.target.sub == subToken {
		return w.token()
	}
	o := w.base
	kind := kindBinding
	if w.target.sub == subEviction {
		kind = kindEviction
	}
	body := reducedObject{Kind: kind, Reduced: &facts{}}
	var err error
	if len(e.RequestObject) > 0 {
		var in struct {
			Metadata      meta                        `json:"metadata"`
			Target        struct{ Kind, Name string } `json:"target"`
			DeleteOptions *struct {
				Grace         *int64   `json:"gracePeriodSeconds"`
				DryRun        []string `json:"dryRun"`
				Preconditions *struct {
					UID string `json:"uid"`
				} `json:"preconditions"`
			} `json:"deleteOptions"`
		}
		if err = json.Unmarshal(e.RequestObject, &in); err != nil {
			err = fmt.Errorf("read %s of audit event %s: %w", kind, e.AuditID, err)
			in.DeleteOptions = nil
		} else if o.Name == "" {
			o.Name = in.Metadata.Name
		}
		switch d := in.DeleteOptions; {
		case kind == kindBinding:
			o.UID = in.Metadata.UID
			if in.Target.Kind == "" || in.Target.Kind == "Node" {
				body.Reduced.Target = in.Target.Name
			}
		case d != nil && len(d.DryRun) > 0:
			return nil, nil
		case d != nil:
			body.Reduced.Grace = d.Grace
			if d.Preconditions != nil {
				o.UID = d.Preconditions.UID
			}
		}
	} else if o.Name == "" && e.ObjectRef != nil {
		o.Name = e.ObjectRef.Name
	}
	if o.Name == "" {
		return nil, err // bound, but which pod was not recorded
	}
	object, jsonErr := json.Marshal(body)
	if jsonErr != nil {
		return nil, jsonErr
	}
	o.Object = object
	return []Observation{o}, err
}

// token translates the issue of a service account's token.
func (w *write) token() ([]Observation, error) {
	e := w.event
	id, ok := e.Annotations.Get(annotationIssued)
	if !ok || !strings.HasPrefix(id, prefixJTI) {
		return nil, nil // apiservers before 1.30 do not say
	}
	by := e.EffectiveUser()
	f := credentialFacts{At: e.RequestReceivedTimestamp.UTC(), Account: w.target.name, By: by.Username, AuditID: e.AuditID}
	if n := len(e.SourceIPs); n > 0 {
		f.Address = e.SourceIPs[n-1]
	}
	var err error
	for _, body := range [][]byte{e.RequestObject, e.ResponseObject} {
		if len(body) == 0 {
			continue
		}
		var in struct {
			Metadata meta `json:"metadata"`
			Spec     struct {
				Bound *boundTo `json:"boundObjectRef"`
			} `json:"spec"`
			Status json.RawMessage `json:"status"`
		}
		if bad := json.Unmarshal(body, &in); bad != nil {
			err = fmt.Errorf("read token request of audit event %s: %w", e.AuditID, bad)
			continue
		}
		if in.Spec.Bound != nil {
			f.Bound = in.Spec.Bound
		}
		var status struct {
			Expires string `json:"expirationTimestamp"`
		}
		if len(in.Status) > 0 && json.Unmarshal(in.Status, &status) == nil {
			if at, bad := time.Parse(time.RFC3339, status.Expires); bad == nil {
				at = at.UTC()
				f.Expires = &at
			}
		}
		first(&f.UID, in.Metadata.UID)
	}
	object, bad := json.Marshal(reducedObject{Kind: resources[resCredential].kind, Reduced: &facts{Issued: &f}})
	if bad != nil {
		return nil, bad
	}
	o := w.base
	o.Resource, o.Name, o.Object = Credentials, id, object
	return []Observation{o}, err
}
