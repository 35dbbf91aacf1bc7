package authn

import (
	"slices"

	"github.com/retrial-io/retrial/replay/release"
)

// Each function here is an authenticator: it reports whether it can have produced an identity, and why not, or what would tell.

// loopbackToken is the apiserver's own token for itself. It is always there.
func loopbackToken(x *subject, _ *compiled, _ *facts) (says, string) {
	switch {
	case x.kind != kindLoopback:
		return no, whyName
	case !x.loopbackShaped():
		return no, "another shape than the apiserver's own token gives"
	}
	return yes, ""
}

// headerProxy takes the identity from headers of a proxy with a certificate of its own.
func headerProxy(x *subject, c *compiled, _ *facts) (says, string) {
	if x.legacy {
		return no, whyLegacy
	}
	if !x.adderPassed() && x.kind != kindAnonymous {
		return no, whyGroups
	}
	if c.cfg != nil && c.cfg.Authentication.RequestHeader != nil {
		h := c.cfg.Authentication.RequestHeader
		switch {
		case x.u.UID != "" && len(h.UIDHeaders) == 0:
			return no, "a uid is recorded, and no header for it is configured"
		case len(x.u.Extra) > 0 && len(h.ExtraPrefixes) == 0:
			return no, "extra is recorded, and no header prefix for it is configured"
		case len(h.GroupHeaders) == 0 && len(x.u.Groups) > 1:
			return no, "groups are recorded, and no header for them is configured"
		}
	}
	return open, "not-evaluable: what headers the front proxy sent is not recorded"
}

// basicAuthFile has passwords in a file, with the identity in the same row; up to 1.18.
func basicAuthFile(x *subject, c *compiled, _ *facts) (says, string) {
	if !x.plain() {
		return no, whyExtra
	}
	if c.basic == nil {
		return open, whyRows
	}
	r, ok := c.basic[x.u.Username]
	switch {
	case !ok:
		return no, "no row for this user"
	case r.uid != x.u.UID:
		return no, "the row of this user has another uid"
	case !x.groupsAre(r.groups):
		return no, "the row of this user has other groups"
	}
	return yes, ""
}

// keystonePassword asks an OpenStack Keystone about a password.
func keystonePassword(x *subject, _ *compiled, _ *facts) (says, string) {
	if !x.plain() || x.u.UID != "" {
		return no, "gives neither uid nor extra"
	}
	if len(x.u.Groups) != 1 || x.authenticated != 1 {
		return no, "gives no groups"
	}
	return open, "not-evaluable: whom Keystone knows is not recorded"
}

// clientCertificate takes the identity from a certificate of the cluster's authority.
func clientCertificate(x *subject, c *compiled, f *facts) (says, string) {
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

// staticTokenFile has tokens in a file, with the identity in the same row.
func staticTokenFile(x *subject, c *compiled, _ *facts) (says, string) {
	if !x.plain() {
		return no, whyExtra
	}
	if c.tokens == nil {
		return open, whyRows
	}
	rows, ok := c.tokens[x.u.Username]
	if !ok {
		return no, "no row for this user"
	}
	if slices.ContainsFunc(rows, func(r row) bool { return r.uid == x.u.UID && x.groupsAre(r.groups) }) {
		return yes, ""
	}
	return no, "the rows of this user have another uid or other groups"
}

// legacyAccountToken is a service account's token from a Secret.
func legacyAccountToken(x *subject, _ *compiled, f *facts) (says, string) {
	switch why := x.noAccountToken(f); {
	case why != "":
		return no, why
	case len(x.u.Extra) > 0:
		return no, whyExtra
	case f.has(factSecretOther):
		return no, "the token's Secret did not exist, or belongs to another service account"
	case x.legacy:
		return yes, ""
	case x.since(32):
		return no, "no annotation of a legacy token is recorded"
	}
	return open, "not-evaluable: before 1.32 nothing tells a legacy token from a bound one"
}

// boundAccountToken is a service account's token of a limited time, bound to an object or to none.
func boundAccountToken(x *subject, _ *compiled, f *facts) (says, string) {
	switch why := x.noAccountToken(f); {
	case why != "":
		return no, why
	case x.legacy:
		return no, whyLegacy
	case (x.podName == "") != (x.podUID == ""), x.nodeUID != "" && x.nodeName == "":
		return no, "half a binding"
	case !x.jti && x.since(32):
		return no, "no token id is recorded"
	case f.has(factBindingOther):
		return no, "the object the token is bound to contradicts it"
	case f.has(factTokenOther):
		return no, "the token was never issued, or to another identity"
	case x.jti || x.podName != "":
		return yes, ""
	}
	return open, "not-evaluable: before 1.32 nothing tells a bound token from a legacy one"
}

// noAccountToken says why neither a legacy nor a bound token can have led to the user, "" if one can.
func (x *subject) noAccountToken(f *facts) string {
	switch {
	case x.kind != kindAccount || x.name == "":
		return whyName
	case !x.accountGroups():
		return whyGroups
	case x.u.UID == "":
		return "gives the uid of the service account"
	case x.foreign || x.fingerprint:
		return whyExtra
	case f.has(factAccountOther):
		return "the service account had another uid, or did not exist"
	}
	return ""
}

// bootstrapTokens are those in Secrets of kube-system, for nodes that join.
func bootstrapTokens(x *subject, _ *compiled, f *facts) (says, string) {
	switch {
	case x.kind != kindBootstrap:
		return no, whyName
	case !x.plain() || x.u.UID != "":
		return no, whyExtra
	case !bootstrapGroups(x.u.Groups) || f.has(factBootstrapGroups):
		return no, whyGroups
	case f.has(factBootstrapOther):
		return no, "no Secret makes the token good"
	}
	return yes, ""
}

// noForeignToken says why no token of somebody else than the cluster can have led to the user, "" if one can.
func (x *subject) noForeignToken() string {
	switch {
	case x.legacy:
		return whyLegacy
	case x.fingerprint:
		return "the credential id is that of a certificate"
	case !x.adderPassed():
		return whyGroups
	}
	return ""
}

// jwtIssuers are those of the OIDC flags and of AuthenticationConfiguration.
func jwtIssuers(x *subject, c *compiled, _ *facts) (says, string) {
	switch why := x.noForeignToken(); {
	case why != "":
		return no, why
	case c.cfg != nil && c.cfg.Authentication.JWTUnknown != "" && len(c.issuers) == 0:
		return open, whyMaybe
	case c.cfg == nil || c.cfg.Authentication.JWTUnknown != "" || len(c.issuers) == 0:
		return open, "not-evaluable: the issuers are not known"
	}
	worst := refusedPrefix
	for i := range c.issuers {
		r, _ := c.issuers[i].produces(x)
		if r == possible {
			return open, "not-evaluable: claims and signature are not recorded"
		}
		worst = max(worst, r)
	}
	return no, worst.why()
}

// tokenWebhook asks a server about a token.
func tokenWebhook(x *subject, _ *compiled, _ *facts) (says, string) {
	if why := x.noForeignToken(); why != "" {
		return no, why
	}
	return open, "not-evaluable: what the webhook answered is not recorded"
}

// anyTokens takes every token at its word.
func anyTokens(x *subject, _ *compiled, _ *facts) (says, string) {
	switch {
	case !x.plain() || x.u.UID != "":
		return no, "gives neither uid nor extra"
	case !x.adderPassed():
		return no, whyGroups
	}
	return open, "not-evaluable: every token is taken at its word"
}

// anonymousRequests lets in who sends no credential. It is the last.
func anonymousRequests(x *subject, c *compiled, _ *facts) (says, string) {
	switch {
	case x.kind != kindAnonymous:
		return no, whyName
	case x.u.UID != "" || len(x.u.Groups) != 1 || !x.unauthenticated || len(x.u.Extra) > 0:
		return no, "another shape than an anonymous request has"
	case c.cfg == nil || c.cfg.Authentication.Unknown != "" || c.cfg.Authentication.Anonymous.Unknown != "":
		return yes, "" // nobody else gives this name
	case !c.cfg.Authentication.Anonymous.Enabled:
		return no, "anonymous requests are switched off"
	case !c.takesAnonymous(x.e.RequestURI):
		return no, "the path is none that anonymous requests are let in for"
	}
	return yes, ""
}

// insecurePort is not an authenticator: the port without authentication of versions up to 1.19. Versions 1.10 to 1.19 give everybody one
// name on it; earlier ones record nobody.
func insecurePort(x *subject, _ *compiled, _ *facts) (says, string) {
	switch {
	case x.since(20):
		return no, whyNotConfigured
	case x.u.Username != UserUnsecured:
		return no, whyName
	case !x.masters || x.u.UID != "" || !x.plain():
		return no, "another shape than that port gives"
	}
	return yes, ""
}
