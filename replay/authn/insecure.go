package authn

// insecurePort is not an authenticator: the port without authentication of versions up to 1.19.
type insecurePort struct{}

func (insecurePort) configured(c *compiled) says {
	return c.on(c.cfg != nil && c.cfg.Authentication.Insecure)
}

// Versions 1.10 to 1.19 give everybody one name on that port; earlier ones record nobody.
func (insecurePort) answer(x *subject, _ *compiled, _ *facts) (says, string) {
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
