package authn

// jwtIssuers are those of the OIDC flags and of AuthenticationConfiguration.
type jwtIssuers struct{}

func (jwtIssuers) configured(c *compiled) says {
	if c.cfg == nil || c.cfg.Authentication.JWTUnknown != "" && len(c.cfg.Authentication.JWT) == 0 {
		return open
	}
	return c.on(len(c.cfg.Authentication.JWT) > 0)
}

func (jwtIssuers) answer(x *subject, c *compiled, _ *facts) (says, string) {
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
