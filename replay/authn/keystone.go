package authn

// keystonePassword asks an OpenStack Keystone about a password.
type keystonePassword struct{}

func (keystonePassword) configured(c *compiled) says {
	return c.on(c.cfg != nil && c.cfg.Authentication.Keystone != "")
}

func (keystonePassword) answer(x *subject, _ *compiled, _ *facts) (says, string) {
	if !x.plain() || x.u.UID != "" {
		return no, "gives neither uid nor extra"
	}
	if len(x.u.Groups) != 1 || x.authenticated != 1 {
		return no, "gives no groups"
	}
	return open, "not-evaluable: whom Keystone knows is not recorded"
}
