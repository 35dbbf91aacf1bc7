package authn

// anyTokens takes every token at its word.
type anyTokens struct{}

func (anyTokens) configured(c *compiled) says {
	return c.on(c.cfg != nil && c.cfg.Authentication.AnyToken)
}

func (anyTokens) answer(x *subject, _ *compiled, _ *facts) (says, string) {
	switch {
	case !x.plain() || x.u.UID != "":
		return no, "gives neither uid nor extra"
	case !x.adderPassed():
		return no, whyGroups
	}
	return open, "not-evaluable: every token is taken at its word"
}
