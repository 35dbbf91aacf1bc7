package authn

// basicAuthFile has passwords in a file, with the identity in the same row; up to 1.18.
type basicAuthFile struct{}

func (basicAuthFile) configured(c *compiled) says {
	return c.on(c.cfg != nil && c.cfg.Authentication.BasicAuth != nil)
}

func (basicAuthFile) answer(x *subject, c *compiled, _ *facts) (says, string) {
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
