package state

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// credential is everything observed of one credential. Like a pod's record it only grows: the smaller of two values of a field counts, and
// any value counts before none.
type credential struct {
	id              string
	issued, expires int64 // noTime when not recorded
	namespace       string
	account, uid    string
	bound           *kept.Bound
	cert            *signed
	by, address     string
	audit           string
}

// signed is what a certificate and its request say.
type signed struct {
	csr, signer, commonName string
	organizations           []string
}

// takeCredential merges what is said of a credential; it returns false if that was known.
func (s *State) takeCredential(id, namespace string, f *kept.Facts) bool {
	c := s.credentials[id]
	if c == nil {
		c = &credential{id: strings.Clone(id), issued: instant.None, expires: instant.None}
		s.credentials[c.id] = c
	}
	was := *c
	first(&c.namespace, s.in.Str(namespace))
	first(&c.by, s.in.Str(f.By))
	if i := f.Issued; i != nil {
		firstTime(&c.issued, instant.Of(i.At))
		if i.Expires != nil {
			firstTime(&c.expires, instant.Of(*i.Expires))
		}
		first(&c.account, s.in.Str(i.Account))
		first(&c.uid, s.in.Str(i.UID))
		first(&c.by, s.in.Str(i.By))
		first(&c.address, s.in.Str(i.Address))
		first(&c.audit, strings.Clone(i.AuditID))
		if i.Bound != nil {
			c.bind(s.shared(i.Bound))
		}
	}
	sign := &signed{}
	if c.cert != nil {
		*sign = *c.cert
	}
	first(&sign.signer, s.in.Str(f.Signer))
	if f.Issued != nil {
		first(&sign.csr, s.in.Str(f.Issued.CSR))
	}
	if x := f.Certificate; x != nil {
		firstTime(&c.issued, instant.Of(x.NotBefore))
		firstTime(&c.expires, instant.Of(x.NotAfter))
		first(&sign.commonName, s.in.Str(x.CommonName))
		if sign.organizations == nil {
			sign.organizations = slices.Clone(x.Organizations) // one fingerprint, one subject
			s.in.Strs(sign.organizations)
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
func (c *credential) bind(b *kept.Bound) {
	if c.bound == nil || cmp.Or(strings.Compare(b.Kind, c.bound.Kind), strings.Compare(b.Name, c.bound.Name),
		strings.Compare(b.UID, c.bound.UID)) < 0 {
		c.bound = b
	}
}

// shared returns a copy that shares its strings with the pod's record.
func (s *State) shared(b *kept.Bound) *kept.Bound {
	if b.Kind == "Pod" {
		if p := s.pods.uids[b.UID]; p != nil && p.name.name == b.Name {
			return &kept.Bound{Kind: "Pod", Name: p.name.name, UID: p.uid}
		}
	}
	return &kept.Bound{Kind: s.in.Str(b.Kind), Name: strings.Clone(b.Name), UID: strings.Clone(b.UID)}
}

// first merges a text: any counts before none, the smaller before the larger.
func first(into *string, v string) {
	if v != "" && (*into == "" || v < *into) {
		*into = v
	}
}

// firstTime merges a time likewise.
func firstTime(into *int64, v int64) {
	if v != instant.None && (*into == instant.None || v < *into) {
		*into = v
	}
}

// export returns the credential as a Credential.
func (c *credential) export() Credential {
	out := Credential{
		ID: c.id, Issued: instant.Time(c.issued), Expires: instant.Time(c.expires),
		Namespace: c.namespace, ServiceAccount: c.account, UID: c.uid,
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

// full completes a credential with what is known of its objects.
func (s *State) full(c *credential) Credential {
	out := c.export()
	if out.UID == "" && out.ServiceAccount != "" {
		if st, known := s.lookup(kept.Key{Resource: kept.ResServiceAccount, Namespace: out.Namespace, Name: out.ServiceAccount},
			c.issued); known == Present {
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

// pruneCredentials forgets credentials that had expired by the horizon, or had been issued by it if their expiry is not known.
func (s *State) pruneCredentials(horizon int64) {
	for id, c := range s.credentials {
		until := c.expires
		if until == instant.None {
			until = c.issued
		}
		if until < horizon {
			delete(s.credentials, id)
			s.forgot = true
		}
	}
}

// takeIssue records the observation of an issue; it returns false if that says nothing new.
func (s *State) takeIssue(o *observe.Observation) bool {
	if o.Name == "" || o.Deleted || len(o.Object) == 0 {
		return false
	}
	r, err := kept.ReadObject(kept.ResCredential, o.Object)
	if err != nil || r.Reduced.Issued == nil {
		return false
	}
	s.issues = s.issues || strings.HasPrefix(o.Name, kept.PrefixJTI)
	return s.takeCredential(o.Name, o.Namespace, r.Reduced)
}
