package kept

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state/graph"
)

// Facts is what is kept of an object of a reduced kind.
type Facts struct {
	// Bare says that only the object's existence is known.
	Bare bool `json:"bare,omitempty"`

	// Of a pod, and of a Secret that is the token of a service account.
	Account    string `json:"account,omitempty"`
	AccountUID string `json:"accountUID,omitempty"`

	// Of a pod. Grace is spec.terminationGracePeriodSeconds, Target what a Binding binds to. Estimated says that deletionTimestamp was
	// calculated and may be earlier, Sudden that the pod was read before it was deleted: it has gone if its containers had ended by then,
	// and exists with its grace if it had got a node.
	Grace     *int64 `json:"grace,omitempty"`
	Target    string `json:"target,omitempty"`
	Estimated bool   `json:"estimated,omitempty"`
	Sudden    bool   `json:"sudden,omitempty"`
	// Over says that its containers have ended.
	Over bool `json:"over,omitempty"`
	// Of an eviction. Told says that its options were recorded, Holds that they add a finalizer.
	Told  bool `json:"told,omitempty"`
	Holds bool `json:"holds,omitempty"`
	// Read is the resourceVersion at which a pod was read to be deleted with others, by options that add no finalizer.
	Read uint64 `json:"read,omitempty"`

	// What the graph needs of pods, volumes, attachments and slices.
	Node      string `json:"node,omitempty"`
	Refs      string `json:"refs,omitempty"`
	Statuses  uint32 `json:"statuses,omitempty"`
	Ephemeral uint16 `json:"ephemeral,omitempty"`
	AnyNode   bool   `json:"anyNode,omitempty"`
	AnyRefs   bool   `json:"anyRefs,omitempty"`

	// Of a Secret.
	Type         string          `json:"type,omitempty"`
	LastUsed     string          `json:"lastUsed,omitempty"`
	InvalidSince string          `json:"invalidSince,omitempty"`
	Bootstrap    *bootstrapFacts `json:"bootstrap,omitempty"`

	// Of a certificate signing request and of a credential.
	Signer      string       `json:"signer,omitempty"`
	By          string       `json:"by,omitempty"`
	Issued      *Issue       `json:"issued,omitempty"`
	Certificate *certificate `json:"certificate,omitempty"`
}

// bootstrapFacts are the public fields of a bootstrap token's Secret, as they are there.
type bootstrapFacts struct {
	ID             string `json:"id,omitempty"`
	Expiration     string `json:"expiration,omitempty"`
	Authentication string `json:"authentication,omitempty"`
	Groups         string `json:"groups,omitempty"`
}

// Object is the stored form of an object of a reduced kind.
type Object struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   Meta   `json:"metadata"`
	Reduced    *Facts `json:"reduced,omitempty"`
}

// Kinds of the bodies of requests that bind and evict pods, reduced as their pods are.
const (
	KindBinding  = "Binding"
	KindEviction = "Eviction"
)

// Reduces reports whether objects of the resource are reduced.
func (r Resource) Reduces() bool { return r >= ResNode }

// rawFacts is what is read of an unreduced object, of whichever of the reduced kinds.
type rawFacts struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
		Labels      map[string]string `json:"labels"`
	} `json:"metadata"`
	Type string `json:"type"`
	Data struct {
		ID             *string `json:"token-id"`
		Expiration     *string `json:"expiration"`
		Authentication *string `json:"usage-bootstrap-authentication"`
		Groups         *string `json:"auth-extra-groups"`
	} `json:"data"`
	Spec struct {
		ServiceAccountName string `json:"serviceAccountName"`
		Grace              *int64 `json:"terminationGracePeriodSeconds"`
		SignerName         string `json:"signerName"`
		Username           string `json:"username"`
	} `json:"spec"`
	Status struct {
		Certificate string `json:"certificate"`
		Phase       string `json:"phase"`
	} `json:"status"`
	Target struct {
		Name string `json:"name"`
	} `json:"target"`
	DeleteOptions *struct {
		Grace *int64 `json:"gracePeriodSeconds"`
	} `json:"deleteOptions"`
}

// Annotations, labels and types of Secrets.
const (
	annotationAccount    = "kubernetes.io/service-account.name"
	annotationAccountUID = "kubernetes.io/service-account.uid"
	labelLastUsed        = "kubernetes.io/legacy-token-last-used"
	labelInvalidSince    = "kubernetes.io/legacy-token-invalid-since"

	typeBootstrap = "bootstrap.kubernetes.io/token"
	PrefixToken   = "bootstrap-token-"
)

// Reduce returns the stored form of an object of a reduced kind; request says that it is the body of a request, to which admission may have
// added. It returns objects of other kinds as they are.
func Reduce(res Resource, raw []byte, request bool) ([]byte, error) {
	if !res.Reduces() {
		return raw, nil
	}
	h, err := ReadHead(raw)
	if err != nil {
		return nil, fmt.Errorf("reduce %s: %w", res, err)
	}
	return ReduceHead(res, &h, raw, request)
}

// ReduceHead reduces an object of a reduced kind whose head has been read.
func ReduceHead(res Resource, h *Head, raw []byte, request bool) ([]byte, error) {
	f, err := FactsOf(res, raw, request)
	if err != nil {
		return nil, fmt.Errorf("reduce %s: %w", res, err)
	}
	return Encode(h, f)
}

// Encode returns the stored form of an object with these facts, without names and versions, which observations carry.
func Encode(h *Head, f *Facts) ([]byte, error) {
	m := &h.Metadata
	return json.Marshal(Object{APIVersion: h.APIVersion, Kind: h.Kind, Reduced: f, Metadata: Meta{
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, GracePeriod: m.GracePeriod,
		Finalizers: m.Finalizers,
	}})
}

// Bare returns the stored form of an object of which only its existence is known.
func Bare(res Resource) []byte {
	b, err := json.Marshal(Object{Kind: res.ObjectKind(), Reduced: &Facts{Bare: true}})
	if err != nil {
		return nil // cannot be: it is all text
	}
	return b
}

// FactsOf reads the facts of an unreduced object.
func FactsOf(res Resource, raw []byte, request bool) (*Facts, error) {
	f := &Facts{}
	var in rawFacts
	if res == ResPod || res == ResSecret || res == ResSigning {
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, err
		}
	}
	var c graph.Content
	var err error
	switch res {
	case ResPod:
		if in.Kind == KindBinding || in.Kind == KindEviction {
			f.Target = in.Target.Name
			if in.DeleteOptions != nil {
				f.Grace = in.DeleteOptions.Grace
			}
			return f, nil
		}
		f.Account, f.Grace = in.Spec.ServiceAccountName, in.Spec.Grace
		f.Over = in.Status.Phase == "Succeeded" || in.Status.Phase == "Failed"
		c, err = graph.PodContent(raw)
		c.AnyRefs = c.AnyRefs || request
	case ResVolume:
		c, err = graph.VolumeContent(raw)
	case ResAttachment, ResSlice, ResPodCertificate:
		c, err = graph.NodeContent(raw)
	case ResSecret:
		in.secret(f)
	case ResSigning:
		f.Signer, f.By = in.Spec.SignerName, in.Spec.Username
		f.Certificate = readCertificate(in.Status.Certificate)
	}
	if err != nil {
		return nil, err
	}
	f.Node, f.Refs, f.Statuses, f.Ephemeral, f.AnyNode, f.AnyRefs = c.Node, string(c.Refs), c.Statuses, c.Ephemeral, c.AnyNode, c.AnyRefs
	return f, nil
}

// secret reads what is public of a Secret.
func (in *rawFacts) secret(f *Facts) {
	f.Type = in.Type
	f.Account, f.AccountUID = in.Metadata.Annotations[annotationAccount], in.Metadata.Annotations[annotationAccountUID]
	f.LastUsed, f.InvalidSince = in.Metadata.Labels[labelLastUsed], in.Metadata.Labels[labelInvalidSince]
	d := &in.Data
	if in.Type != typeBootstrap || d.ID == nil {
		return
	}
	b := &bootstrapFacts{}
	for _, field := range []struct {
		from *string
		to   *string
	}{{d.ID, &b.ID}, {d.Expiration, &b.Expiration}, {d.Authentication, &b.Authentication}, {d.Groups, &b.Groups}} {
		if field.from == nil {
			continue
		}
		plain, err := base64.StdEncoding.DecodeString(*field.from)
		if err != nil {
			return // taken out by redaction: nothing is known of the token
		}
		*field.to = string(plain)
	}
	f.Bootstrap = b
}

// Token reads the fields as the bootstrap authenticator does; it returns nil for a Secret that it would not accept.
func (b *bootstrapFacts) Token() *BootstrapToken {
	if b == nil {
		return nil
	}
	t := &BootstrapToken{ID: b.ID, Authentication: b.Authentication == "true", Groups: []string{}}
	if b.Expiration != "" {
		at, err := time.Parse(time.RFC3339, b.Expiration)
		if err != nil {
			at = time.Unix(0, 0) // unreadable times count as expired
		}
		t.Expires = at.UTC()
	}
	for g := range strings.SplitSeq(b.Groups, ",") {
		if g != "" {
			t.Groups = append(t.Groups, g)
		}
	}
	slices.Sort(t.Groups)
	t.Groups = slices.Clip(slices.Compact(t.Groups))
	return t
}

// Graph returns the facts in the graph's form.
func (f *Facts) Graph() *graph.Content {
	if f.Bare {
		return nil
	}
	return &graph.Content{Node: f.Node, Refs: graph.Refs(f.Refs), Statuses: f.Statuses, Ephemeral: f.Ephemeral, AnyNode: f.AnyNode,
		AnyRefs: f.AnyRefs}
}

// ReadObject reads an object of a reduced kind, reducing it first if need be.
func ReadObject(res Resource, raw []byte) (*Object, error) {
	o := &Object{}
	if err := json.Unmarshal(raw, o); err != nil {
		return nil, err
	}
	if o.Reduced != nil {
		return o, nil
	}
	f, err := FactsOf(res, raw, false)
	if err != nil {
		return nil, err
	}
	o.Reduced = f
	return o, nil
}
