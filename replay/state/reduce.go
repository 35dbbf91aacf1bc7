package state

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/replay/state/graph"
)

// Objects of the kinds that are many or hold what is nobody's business are reduced on the way
// in: to the metadata the store works with and the facts that somebody asks for. What is
// stored of them is a small object of the same kind with a member "reduced". No field of a
// Secret's data ever gets there but the public ones of bootstrap tokens.

// facts are what is kept of an object of a reduced kind.
type facts struct {
	// Bare says that only the object's being there is known.
	Bare bool `json:"bare,omitempty"`

	// Of a pod, and of a Secret that is the token of a service account.
	Account    string `json:"account,omitempty"`
	AccountUID string `json:"accountUID,omitempty"`

	// Of a pod. Grace is spec.terminationGracePeriodSeconds, Target what a Binding binds to.
	// Estimated says that deletionTimestamp was worked out and may be earlier, Sudden that the pod
	// was read before it was deleted: it is gone if its containers had ended by then, and there
	// with its grace if it was given a node.
	Grace     *int64 `json:"grace,omitempty"`
	Target    string `json:"target,omitempty"`
	Estimated bool   `json:"estimated,omitempty"`
	Sudden    bool   `json:"sudden,omitempty"`
	// Over says that its containers have ended.
	Over bool `json:"over,omitempty"`
	// Of an eviction. Told says that its options were recorded, Holds that they put on a finalizer.
	Told  bool `json:"told,omitempty"`
	Holds bool `json:"holds,omitempty"`
	// Read is the resourceVersion at which a pod was read to be deleted with others, by options that
	// put on no finalizer.
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
	Signer      string           `json:"signer,omitempty"`
	By          string           `json:"by,omitempty"`
	Issued      *credentialFacts `json:"issued,omitempty"`
	Certificate *certificate     `json:"certificate,omitempty"`
}

// bootstrapFacts are the public fields of a bootstrap token's Secret, as they are there.
type bootstrapFacts struct {
	ID             string `json:"id,omitempty"`
	Expiration     string `json:"expiration,omitempty"`
	Authentication string `json:"authentication,omitempty"`
	Groups         string `json:"groups,omitempty"`
}

// reducedObject is the stored form of an object of a reduced kind.
type reducedObject struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   meta   `json:"metadata"`
	Reduced    *facts `json:"reduced,omitempty"`
}

// Kinds of the bodies of requests that bind and evict pods, reduced as their pods are.
const (
	kindBinding  = "Binding"
	kindEviction = "Eviction"
)

// reduces tells whether objects of the resource are reduced.
func (r resource) reduces() bool { return r >= resNode }

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
	prefixToken   = "bootstrap-token-"
)

// reduce returns the stored form of an object of a reduced kind; request says that it is the
// body of a request, which admission may have added to. Objects of other kinds are returned
// as they are.
func reduce(res resource, raw []byte, request bool) ([]byte, error) {
	if !res.reduces() {
		return raw, nil
	}
	h, err := readHead(raw)
	if err != nil {
		return nil, fmt.Errorf("reduce %s: %w", res, err)
	}
	return reduceHead(res, &h, raw, request)
}

// reduceHead reduces an object of a reduced kind whose head has been read.
func reduceHead(res resource, h *head, raw []byte, request bool) ([]byte, error) {
	f, err := factsOf(res, raw, request)
	if err != nil {
		return nil, fmt.Errorf("reduce %s: %w", res, err)
	}
	return encodeReduced(h, f)
}

// encodeReduced returns the stored form of an object with these facts. Names and versions are
// told beside it.
func encodeReduced(h *head, f *facts) ([]byte, error) {
	m := &h.Metadata
	return json.Marshal(reducedObject{APIVersion: h.APIVersion, Kind: h.Kind, Reduced: f, Metadata: meta{
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, GracePeriod: m.GracePeriod, Finalizers: m.Finalizers,
	}})
}

// bare returns the stored form of an object of which only its being there is known.
func bare(res resource) []byte {
	b, err := json.Marshal(reducedObject{Kind: resources[res].kind, Reduced: &facts{Bare: true}})
	if err != nil {
		return nil // cannot be: it is all text
	}
	return b
}

// factsOf reads the facts of an unreduced object.
func factsOf(res resource, raw []byte, request bool) (*facts, error) {
	f := &facts{}
	var in rawFacts
	if res == resPod || res == resSecret || res == resSigning {
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, err
		}
	}
	var c graph.Content
	var err error
	switch res {
	case resPod:
		if in.Kind == kindBinding || in.Kind == kindEviction {
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
	case resVolume:
		c, err = graph.VolumeContent(raw)
	case resAttachment, resSlice, resPodCertificate:
		c, err = graph.NodeContent(raw)
	case resSecret:
		in.secret(f)
	case resSigning:
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
func (in *rawFacts) secret(f *facts) {
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

// token reads the fields as the bootstrap authenticator does; nil when the Secret is none it
// accepts.
func (b *bootstrapFacts) token() *BootstrapToken {
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

// graph returns the facts as the graph takes them.
func (f *facts) graph() *graph.Content {
	if f.Bare {
		return nil
	}
	return &graph.Content{Node: f.Node, Refs: graph.Refs(f.Refs), Statuses: f.Statuses, Ephemeral: f.Ephemeral, AnyNode: f.AnyNode, AnyRefs: f.AnyRefs}
}

// readReduced reads an object of a reduced kind, reducing it first when that was not done.
func readReduced(res resource, raw []byte) (*reducedObject, error) {
	o := &reducedObject{}
	if err := json.Unmarshal(raw, o); err != nil {
		return nil, err
	}
	if o.Reduced != nil {
		return o, nil
	}
	f, err := factsOf(res, raw, false)
	if err != nil {
		return nil, err
	}
	o.Reduced = f
	return o, nil
}

// parseReduced reads an object of a reduced kind, pods and credentials excepted.
func (in *interner) parseReduced(res resource, raw []byte) (*content, error) {
	o, err := readReduced(res, raw)
	if err != nil {
		return nil, err
	}
	c := &content{created: nanos(o.Metadata.created()), deletion: nanos(o.Metadata.deletion()), deleting: o.Metadata.DeletionTimestamp != "", digest: xxhash.Sum64(raw)}
	f := o.Reduced
	switch res {
	case resVolume, resAttachment, resSlice, resPodCertificate:
		if g := f.graph(); g != nil {
			g.Node, g.Refs = in.str(g.Node), graph.Refs(in.str(string(g.Refs)))
			c.object = g
		}
	case resSecret:
		if !f.Bare {
			c.object = &Secret{
				Type: in.str(f.Type), ServiceAccount: in.str(f.Account), ServiceAccountUID: f.AccountUID,
				LastUsed: f.LastUsed, InvalidSince: f.InvalidSince, Bootstrap: f.Bootstrap.token(),
			}
		}
	case resSigning:
		c.object = f
	}
	return c, nil
}

// signing returns the facts of a certificate signing request, nil for other contents.
func (c *content) signing() *facts {
	if c == nil {
		return nil
	}
	f, _ := c.object.(*facts)
	return f
}
