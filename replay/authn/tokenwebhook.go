package authn

// tokenWebhook asks a server about a token.
type tokenWebhook struct{}

func (tokenWebhook) configured(c *compiled) says {
	return c.on(c.cfg != nil && c.cfg.Authentication.Webhook != nil)
}

func (tokenWebhook) answer(x *subject, _ *compiled, _ *facts) (says, string) {
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
