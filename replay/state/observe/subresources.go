package observe

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// Subresources whose writes are kept. The first three say something of their own, the others are answered with the object.
const (
	subBinding  = "binding"
	subEviction = "eviction"
	subToken    = "token"

	subStatus    = "status"
	subFinalize  = "finalize"
	subApproval  = "approval"
	subEphemeral = "ephemeralcontainers"
)

// annotationIssued carries the credential id of a token on the request that issued it.
const annotationIssued = "authentication.kubernetes.io/issued-credential-id"

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
	kind := kept.KindBinding
	if w.target.sub == subEviction {
		kind = kept.KindEviction
	}
	body := kept.Object{Kind: kind, Reduced: &kept.Facts{}}
	var err error
	if len(e.RequestObject) > 0 {
		var in struct {
			Metadata      kept.Meta                   `json:"metadata"`
			Target        struct{ Kind, Name string } `json:"target"`
			DeleteOptions *struct {
				deleteOptions
				DryRun        []string `json:"dryRun"`
				Preconditions *struct {
					UID string `json:"uid"`
				} `json:"preconditions"`
			} `json:"deleteOptions"`
		}
		if err = json.Unmarshal(e.RequestObject, &in); err != nil {
			err = fmt.Errorf("read %s of audit event %s: %w", kind, e.AuditID, err)
			in.DeleteOptions = nil
		} else {
			if o.Name == "" {
				o.Name = in.Metadata.Name
			}
			body.Reduced.Told = kind == kept.KindEviction
		}
		switch d := in.DeleteOptions; {
		case kind == kept.KindBinding:
			if w.target.name != "" { // in the old way the apiserver wipes the uid: any pod of the name is bound
				o.UID = in.Metadata.UID
			}
			if in.Target.Kind == "" || in.Target.Kind == "Node" {
				body.Reduced.Target = in.Target.Name
			}
		case d != nil && len(d.DryRun) > 0:
			return nil, nil
		case d != nil:
			if body.Reduced.Holds = len(d.finalizers(nil)) > 0; d.GracePeriod != nil {
				grace := positive(*d.GracePeriod)
				body.Reduced.Grace = &grace
			}
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
	if !ok || !strings.HasPrefix(id, kept.PrefixJTI) {
		return nil, nil // apiservers before 1.30 do not say
	}
	by := e.EffectiveUser()
	f := kept.Issue{At: e.RequestReceivedTimestamp.UTC(), Account: w.target.name, By: by.Username, AuditID: e.AuditID}
	if n := len(e.SourceIPs); n > 0 {
		f.Address = e.SourceIPs[n-1]
	}
	var err error
	for _, body := range [][]byte{e.RequestObject, e.ResponseObject} {
		if len(body) == 0 {
			continue
		}
		var in struct {
			Metadata kept.Meta `json:"metadata"`
			Spec     struct {
				Bound *kept.Bound `json:"boundObjectRef"`
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
		if uid := in.Metadata.UID; uid != "" && (f.UID == "" || uid < f.UID) { // should the two differ
			f.UID = uid
		}
	}
	object, bad := json.Marshal(kept.Object{Kind: kept.ResCredential.ObjectKind(), Reduced: &kept.Facts{Issued: &f}})
	if bad != nil {
		return nil, bad
	}
	o := w.base
	o.Resource, o.Name, o.Object = kept.Credentials, id, object
	return []Observation{o}, err
}
