package implied

import (
	"cmp"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// onlyChanged is why an update of a status may have gone unchecked.
const onlyChanged = "what the request leaves as it was is not checked"

// signer derives approve, sign and attest on signers, by name or for all of the signer's domain.
func (d *derivation) signer() {
	c := Check{}
	verb, kind := "", "CertificateSigningRequest"
	update := d.a.Verb != request.VerbCreate
	switch {
	case d.a.Resource == "certificatesigningrequests" && d.a.Subresource == "approval" && update:
		c.Name, verb = verdict.CheckSignerApprove, "approve"
	case d.a.Resource == "certificatesigningrequests" && d.a.Subresource == "status" && update:
		c.Name, verb, c.Perhaps = verdict.CheckSignerSign, "sign", onlyChanged
	case d.a.Resource == "podcertificaterequests" && d.a.Subresource == "status" && update:
		c.Name, verb, kind, c.Perhaps = verdict.CheckSignerSign, "sign", "PodCertificateRequest", onlyChanged
	case d.a.Resource == "clustertrustbundles" && d.a.Subresource == "":
		c.Name, verb, kind = verdict.CheckSignerAttest, "attest", "ClusterTrustBundle"
		if update {
			c.Perhaps = onlyCollected
		}
	default:
		return
	}
	name, open := d.signerName(kind)
	if name == "" && c.Name == verdict.CheckSignerAttest && open == "" {
		return // a bundle without a signer needs nothing
	}
	if name == "" {
		c.Open = []string{cmp.Or(open, "the signer's name")}
		d.add(c)
		return
	}
	c.Attributes = verdict.Attributes{Verb: verb, ResourceRequest: true, APIGroup: groupCertificates, APIVersion: "*",
		Resource: "signers", Name: name}
	all := c.Attributes
	domain, _, _ := strings.Cut(name, "/")
	all.Name = domain + "/*"
	c.Or = []verdict.Attributes{all}
	d.add(c)
}

// signerName returns the signer an object names: of the object before the request as far as it
// is known, for the apiserver checks that one. open says what would tell, "" if the object is
// known to name none.
func (d *derivation) signerName(kind string) (name, open string) {
	var o struct {
		Spec struct {
			SignerName string `json:"signerName"`
		}
	}
	if kind == "CertificateSigningRequest" && d.s != nil {
		if name, known := d.s.Signer(d.a.Name); known == Present && name != "" {
			return name, ""
		}
	}
	shown := decode(d.e.ResponseObject, kind, member{"spec", &o.Spec})
	if o.Spec.SignerName == "" && decode(d.e.RequestObject, "", member{"spec", &o.Spec}) {
		shown = shown || d.a.Verb != request.VerbPatch
	}
	switch {
	case o.Spec.SignerName != "" || shown:
		return o.Spec.SignerName, ""
	case len(d.e.RequestObject) == 0:
		return "", d.lacksBody()
	}
	return "", "the object before the patch"
}

// SignerOf returns the signer that a check about signers was about. It may have passed by the right to all signers of the domain; which one
// it was tells the request, if its content is known.
func SignerOf(check *verdict.Implied, e *event.Event, a *verdict.Attributes) string {
	if !strings.HasSuffix(check.Attributes.Name, "/*") {
		return check.Attributes.Name
	}
	for _, asked := range Of(e, a, nil, nil) {
		if asked.Name == check.Check && asked.Attributes.Name != "" {
			return asked.Attributes.Name
		}
	}
	return check.Attributes.Name
}
