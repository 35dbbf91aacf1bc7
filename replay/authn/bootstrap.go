package authn

// bootstrapTokens are those in Secrets of kube-system, for nodes that join.
type bootstrapTokens struct{}

func (bootstrapTokens) configured(c *compiled) says {
	return c.on(c.cfg != nil && c.cfg.Authentication.Bootstrap)
}

func (bootstrapTokens) answer(x *subject, _ *compiled, f *facts) (says, string) {
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
