package authn

// headerProxy takes the identity from headers of a proxy with a certificate of its own.
type headerProxy struct{}

func (headerProxy) configured(c *compiled) says {
	return c.on(c.cfg != nil && c.cfg.Authentication.RequestHeader != nil)
}

func (headerProxy) answer(x *subject, c *compiled, _ *facts) (says, string) {
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
