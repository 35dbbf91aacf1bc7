package authn

import "github.com/retrial-io/retrial/replay/release"

// says is what an authenticator says of an identity.
type says uint8

const (
	no   says = iota // it cannot have produced it
	open             // it can, as far as an event tells: what would tell is not recorded
	yes              // it produces just this
)

// Reasons that more than one authenticator gives.
const (
	whyNotConfigured = "not configured"
	whyMaybe         = "not-evaluable: the configuration of authentication is not known"
	whyRows          = "not-evaluable: the file's rows are not known"
	whyLegacy        = "the annotation of a legacy service account token is recorded"
	whyCredential    = "a credential id is recorded, which it does not give"
	whyExtra         = "extra is recorded, which it does not give"
	whyName          = "gives another kind of user name"
	whyGroups        = "gives other groups"
)

// on tells whether an authenticator is there: yes, no, or open when that is not known.
func (c *compiled) on(configured bool) says {
	switch {
	case configured:
		return yes
	case c.known():
		return no
	}
	return open
}

// ask asks one authenticator. why is a constant: the details are in findings.
func (x *subject) ask(a authenticator, c *compiled, f *facts) (answer says, why string) {
	configured := yes
	switch a {
	case loopback:
		return x.askLoopback()
	case requestHeader:
		configured = c.on(c.cfg != nil && c.cfg.Authentication.RequestHeader != nil)
	case basicAuth:
		configured = c.on(c.cfg != nil && c.cfg.Authentication.BasicAuth != nil)
	case keystone:
		configured = c.on(c.cfg != nil && c.cfg.Authentication.Keystone != "")
	case x509:
		configured = c.on(c.cfg != nil && c.cfg.Authentication.ClientCA)
	case tokenFile:
		configured = c.on(c.cfg != nil && c.cfg.Authentication.TokenFile != nil)
	case legacyToken, boundToken:
		configured = c.on(c.cfg != nil && c.cfg.Authentication.ServiceAccount.Enabled)
	case bootstrap:
		configured = c.on(c.cfg != nil && c.cfg.Authentication.Bootstrap)
	case jwt:
		configured = c.on(c.cfg != nil && len(c.cfg.Authentication.JWT) > 0)
		if configured != yes && (c.cfg == nil || c.cfg.Authentication.JWTUnknown != "") {
			configured = open
		}
	case webhook:
		configured = c.on(c.cfg != nil && c.cfg.Authentication.Webhook != nil)
	case anyToken:
		configured = c.on(c.cfg != nil && c.cfg.Authentication.AnyToken)
	case insecure:
		configured = c.on(c.cfg != nil && c.cfg.Authentication.Insecure)
	case anonymous:
		return x.askAnonymous(c)
	}
	if configured == no {
		return no, whyNotConfigured
	}
	switch a {
	case requestHeader:
		answer, why = x.askRequestHeader(c)
	case basicAuth:
		answer, why = x.askBasic(c)
	case keystone:
		answer, why = x.askKeystone()
	case x509:
		answer, why = x.askX509(c, f)
	case tokenFile:
		answer, why = x.askTokenFile(c)
	case legacyToken:
		answer, why = x.askLegacy(f)
	case boundToken:
		answer, why = x.askBound(f)
	case bootstrap:
		answer, why = x.askBootstrap(f)
	case jwt:
		answer, why = x.askJWT(c)
	case webhook:
		answer, why = x.askWebhook()
	case anyToken:
		answer, why = x.askAnyToken()
	case insecure:
		answer, why = x.askInsecure()
	}
	if configured == open && answer == open {
		why = whyMaybe
	}
	return answer, why
}

func (x *subject) askLoopback() (says, string) {
	switch {
	case x.kind != kindLoopback:
		return no, whyName
	case !x.loopbackShaped():
		return no, "another shape than the apiserver's own token gives"
	}
	return yes, ""
}

func (x *subject) askRequestHeader(c *compiled) (says, string) {
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

func (x *subject) askBasic(c *compiled) (says, string) {
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

func (x *subject) askKeystone() (says, string) {
	if !x.plain() || x.u.UID != "" {
		return no, "gives neither uid nor extra"
	}
	if len(x.u.Groups) != 1 || x.authenticated != 1 {
		return no, "gives no groups"
	}
	return open, "not-evaluable: whom Keystone knows is not recorded"
}

func (x *subject) askX509(c *compiled, f *facts) (says, string) {
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

func (x *subject) askTokenFile(c *compiled) (says, string) {
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
	for i := range rows {
		if rows[i].uid == x.u.UID && x.groupsAre(rows[i].groups) {
			return yes, ""
		}
	}
	return no, "the rows of this user have another uid or other groups"
}

// accountToken is what legacy and bound tokens have in common.
func (x *subject) accountToken(f *facts) (says, string) {
	switch {
	case x.kind != kindAccount || x.name == "":
		return no, whyName
	case !x.accountGroups():
		return no, whyGroups
	case x.u.UID == "":
		return no, "gives the uid of the service account"
	case x.foreign || x.fingerprint:
		return no, whyExtra
	case f.has(factAccountOther):
		return no, "the service account had another uid, or did not exist"
	}
	return yes, ""
}

func (x *subject) askLegacy(f *facts) (says, string) {
	answer, why := x.accountToken(f)
	switch {
	case answer == no:
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

func (x *subject) askBound(f *facts) (says, string) {
	answer, why := x.accountToken(f)
	switch {
	case answer == no:
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

func (x *subject) askBootstrap(f *facts) (says, string) {
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

func (x *subject) askJWT(c *compiled) (says, string) {
	switch {
	case x.legacy:
		return no, whyLegacy
	case x.fingerprint:
		return no, "the credential id is that of a certificate"
	case !x.adderPassed():
		return no, whyGroups
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

func (x *subject) askWebhook() (says, string) {
	switch {
	case x.legacy:
		return no, whyLegacy
	case x.fingerprint:
		return no, "the credential id is that of a certificate"
	case !x.adderPassed():
		return no, whyGroups
	}
	return open, "not-evaluable: what the webhook answered is not recorded"
}

func (x *subject) askAnyToken() (says, string) {
	switch {
	case !x.plain() || x.u.UID != "":
		return no, "gives neither uid nor extra"
	case !x.adderPassed():
		return no, whyGroups
	}
	return open, "not-evaluable: every token is taken at its word"
}

// askInsecure: versions 1.10 to 1.19 give everybody one name on the port without
// authentication; earlier ones record nobody.
func (x *subject) askInsecure() (says, string) {
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

func (x *subject) askAnonymous(c *compiled) (says, string) {
	switch {
	case x.kind != kindAnonymous:
		return no, whyName
	case x.u.UID != "" || len(x.u.Groups) != 1 || !x.unauthenticated || len(x.u.Extra) > 0:
		return no, "another shape than an anonymous request has"
	case c.cfg == nil || c.cfg.Authentication.Unknown != "" || c.cfg.Authentication.Anonymous.Unknown != "":
		return yes, "" // nobody else gives this name
	case !c.cfg.Authentication.Anonymous.Enabled:
		return no, "anonymous requests are switched off"
	case c.paths != nil && !c.paths[decodedPath(x.e.RequestURI)]:
		return no, "the path is none that anonymous requests are let in for"
	}
	return yes, ""
}
