package authn

// legacyAccountToken is a service account's token from a Secret.
type legacyAccountToken struct{}

func (legacyAccountToken) configured(c *compiled) says { return c.accounts() }

func (legacyAccountToken) answer(x *subject, _ *compiled, f *facts) (says, string) {
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

// boundAccountToken is a service account's token of a limited time, bound to an object or to none.
type boundAccountToken struct{}

func (boundAccountToken) configured(c *compiled) says { return c.accounts() }

func (boundAccountToken) answer(x *subject, _ *compiled, f *facts) (says, string) {
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

func (c *compiled) accounts() says {
	return c.on(c.cfg != nil && c.cfg.Authentication.ServiceAccount.Enabled)
}

// accountToken returns what legacy and bound tokens have in common.
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
