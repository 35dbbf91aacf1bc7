package state

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// credentialFacts are what the issue of a token says, and of a certificate what the request
// that issued it says beside it.
type credentialFacts struct {
	At      time.Time  `json:"at"`
	Expires *time.Time `json:"expires,omitempty"`

	Account string   `json:"account,omitempty"`
	UID     string   `json:"uid,omitempty"`
	Bound   *boundTo `json:"bound,omitempty"`

	CSR string `json:"csr,omitempty"`

	By      string `json:"by,omitempty"`
	Address string `json:"address,omitempty"`
	AuditID string `json:"auditID,omitempty"`
}

// boundTo is the object a token is bound to.
type boundTo struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

// credential is everything observed of one credential. Like a pod's record it only becomes
// fuller: of two values of a field the smaller one counts, and any before none.
type credential struct {
	id              string
	issued, expires int64 // noTime when not recorded
	namespace       string
	account, uid    string
	bound           *boundTo
	cert            *signed
	by, address     string
	audit           string
}

// signed is what a certificate and its request say.
type signed struct {
	csr, signer, commonName string
	organizations           []string
}

// takeCredential merges what is said of a credential; false when it was known.
func (s *State) takeCredential(id, namespace string, f *facts) bool {
	c := s.credentials[id]
	if c == nil {
		c = &credential{id: strings.Clone(id), issued: noTime, expires: noTime}
		s.credentials[c.id] = c
	}
	was := *c
	first(&c.namespace, s.in.str(namespace))
	first(&c.by, s.in.str(f.By))
	if i := f.Issued; i != nil {
		firstTime(&c.issued, nanos(i.At))
		if i.Expires != nil {
			firstTime(&c.expires, nanos(*i.Expires))
		}
		first(&c.account, s.in.str(i.Account))
		first(&c.uid, s.in.str(i.UID))
		first(&c.by, s.in.str(i.By))
		first(&c.address, s.in.str(i.Address))
		first(&c.audit, strings.Clone(i.AuditID))
		if i.Bound != nil {
			c.bind(s.shared(i.Bound))
		}
	}
	sign := &signed{}
	if c.cert != nil {
		*sign = *c.cert
	}
	first(&sign.signer, s.in.str(f.Signer))
	if f.Issued != nil {
		first(&sign.csr, s.in.str(f.Issued.CSR))
	}
	if x := f.Certificate; x != nil {
		firstTime(&c.issued, nanos(x.NotBefore))
		firstTime(&c.expires, nanos(x.NotAfter))
		first(&sign.commonName, s.in.str(x.CommonName))
		if sign.organizations == nil {
			sign.organizations = slices.Clone(x.Organizations) // one fingerprint, one subject
			s.in.strs(sign.organizations)
		}
	}
	if c.cert != nil && sign.equal(c.cert) || sign.equal(&signed{}) {
		return *c != was
	}
	c.cert = sign
	return true
}

func (a *signed) equal(b *signed) bool {
	return a.csr == b.csr && a.signer == b.signer && a.commonName == b.commonName && slices.Equal(a.organizations, b.organizations)
}

// bind notes what a token is bound to.
func (c *credential) bind(b *boundTo) {
	if c.bound == nil || cmp.Or(strings.Compare(b.Kind, c.bound.Kind), strings.Compare(b.Name, c.bound.Name), strings.Compare(b.UID, c.bound.UID)) < 0 {
		c.bound = b
	}
}

// shared returns a copy that shares its strings with the pod's record.
func (s *State) shared(b *boundTo) *boundTo {
	if b.Kind == "Pod" {
		if p := s.pods.uids[b.UID]; p != nil && p.name.name == b.Name {
			return &boundTo{Kind: "Pod", Name: p.name.name, UID: p.uid}
		}
	}
	return &boundTo{Kind: s.in.str(b.Kind), Name: strings.Clone(b.Name), UID: strings.Clone(b.UID)}
}

// first merges a text: any goes before none, the smaller before the larger.
func first(into *string, v string) {
	if v != "" && (*into == "" || v < *into) {
		*into = v
	}
}

// firstTime merges a time likewise.
func firstTime(into *int64, v int64) {
	if v != noTime && (*into == noTime || v < *into) {
		*into = v
	}
}

// export returns the credential as it is told.
func (c *credential) export() Credential {
	out := Credential{
		ID: c.id, Issued: timeOf(c.issued), Expires: timeOf(c.expires), Namespace: c.namespace, ServiceAccount: c.account, UID: c.uid,
		By: c.by, ByAddr: c.address, AuditID: c.audit,
	}
	if b := c.bound; b != nil {
		switch b.Kind {
		case "Pod":
			out.Pod, out.PodUID = b.Name, b.UID
		case "Node":
			out.Node, out.NodeUID = b.Name, b.UID
		case "Secret":
			out.Secret, out.SecretUID = b.Name, b.UID
		}
	}
	if x := c.cert; x != nil {
		out.CSR, out.Signer, out.CommonName, out.Organizations = x.csr, x.signer, x.commonName, x.organizations
	}
	return out
}

// full completes what the issue did not say by what is known of its objects.
func (s *State) full(c *credential) Credential {
	out := c.export()
	if out.UID == "" && out.ServiceAccount != "" {
		if st, known := s.lookup(objectKey{resServiceAccount, out.Namespace, out.ServiceAccount}, c.issued); known == Present {
			out.UID = st.uid
		}
	}
	if out.PodUID != "" && out.Node == "" {
		if p := s.pods.uids[out.PodUID]; p != nil && p.name.namespace == out.Namespace && p.name.name == out.Pod {
			out.Node = p.node
		}
	}
	return out
}

// pruneCredentials forgets credentials that had expired by the horizon; of those whose expiry
// is not known, those that had been issued.
func (s *State) pruneCredentials(horizon int64) {
	for id, c := range s.credentials {
		until := c.expires
		if until == noTime {
			until = c.issued
		}
		if until < horizon {
			delete(s.credentials, id)
			s.forgot = true
		}
	}
}

// takeIssue records the observation of an issue; false when it says nothing new.
func (s *State) takeIssue(o *Observation) bool {
	if o.Name == "" || o.Deleted || len(o.Object) == 0 {
		return false
	}
	r, err := readReduced(resCredential, o.Object)
	if err != nil || r.Reduced.Issued == nil {
		return false
	}
	s.issues = s.issues || strings.HasPrefix(o.Name, prefixJTI)
	return s.takeCredential(o.Name, o.Namespace, r.Reduced)
}
