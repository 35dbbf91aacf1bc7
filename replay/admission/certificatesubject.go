package admission

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// certificateSubject is CertificateSubjectRestriction: the signer of client certificates signs none
// for the group system:masters. The body of the request says all that it decides by.
type certificateSubject struct{}

func (certificateSubject) name() string { return "CertificateSubjectRestriction" }

// How the plugin words its refusals.
const (
	mastersNotSigned = "use of " + certificatesv1.KubeAPIServerClientSignerName + " signer with " + user.SystemPrivilegedGroup +
		" group is not allowed"
	notParsed = "failed to parse CSR: "
)

func (certificateSubject) refused(r *refusal) (string, bool) {
	return "", r.code == 403 && r.forbidden && begins(r.inner, mastersNotSigned, notParsed)
}

func (certificateSubject) ask(q *Request, op Operation, body []byte, _, _ time.Time) said {
	a := q.Attributes
	if op != Create || a.APIGroup != certificatesv1.GroupName || a.Resource != "certificatesigningrequests" || a.Subresource != "" {
		return said{}
	}
	var in struct {
		Spec struct {
			SignerName string `json:"signerName"`
			Request    []byte `json:"request"`
		} `json:"spec"`
	}
	if len(body) == 0 || json.Unmarshal(body, &in) != nil {
		return said{answer: unknown, missing: missingBody}
	}
	if in.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return said{answer: passes, open: true}
	}
	refuse := func(words string) said { return said{answer: refuses, code: 403, words: words, open: true} }
	block, _ := pem.Decode(in.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return refuse(notParsed + "PEM block type must be CERTIFICATE REQUEST")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	switch {
	case err != nil:
		return refuse(notParsed + err.Error())
	case slices.Contains(csr.Subject.Organization, user.SystemPrivilegedGroup):
		return refuse(mastersNotSigned)
	}
	return said{answer: passes, open: true}
}
