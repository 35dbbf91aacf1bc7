package authn

import "github.com/retrial-io/retrial/replay/release"

// clientCertificate takes the identity from a certificate of the cluster's authority.
type clientCertificate struct{}

func (clientCertificate) configured(c *compiled) says {
	return c.on(c.cfg != nil && c.cfg.Authentication.ClientCA)
}

func (clientCertificate) answer(x *subject, c *compiled, f *facts) (says, string) {
	switch {
	case x.legacy:
		return no, whyLegacy
	case x.jti:
		return no, "the credential id is that of a token"
	case x.foreign || x.podName != "" || x.podUID != "" || x.nodeName != "" || x.nodeUID != "":
		return no, whyExtra
	case !x.fingerprint && x.since(release.CertificateID.Since):
		return no, "no fingerprint is recorded"
	case x.u.UID != "" && !x.enabled("AllowParsingUserUIDFromCertAuth"):
		return no, "certificates give no uid"
	case !x.adderPassed():
		return no, whyGroups
	case f.has(factCertificateOther):
		return no, "the certificate was issued to another identity"
	case x.fingerprint:
		return yes, ""
	}
	return open, "not-evaluable: certificates leave no trace before 1.32"
}
