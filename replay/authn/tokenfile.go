package authn

// staticTokenFile has tokens in a file, with the identity in the same row.
type staticTokenFile struct{}

func (staticTokenFile) configured(c *compiled) says {
	return c.on(c.cfg != nil && c.cfg.Authentication.TokenFile != nil)
}

func (staticTokenFile) answer(x *subject, c *compiled, _ *facts) (says, string) {
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
