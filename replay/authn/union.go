package authn

// says is what an authenticator says of an identity.
type says uint8

const (
	no   says = iota // it cannot have produced it
	open             // it can, as far as an event tells: what would tell is not recorded
	yes              // it produces just this
)

// Reasons that more than one authenticator gives.
const (
	whyNotConfigured = "not configured"
	whyMaybe         = "not-evaluable: the configuration of authentication is not known"
	whyRows          = "not-evaluable: the file's rows are not known"
	whyLegacy        = "the annotation of a legacy service account token is recorded"
	whyCredential    = "a credential id is recorded, which it does not give"
	whyExtra         = "extra is recorded, which it does not give"
	whyName          = "gives another kind of user name"
	whyGroups        = "gives other groups"
)

// on reports whether an authenticator is there: yes, no, or open when that is not known.
func (c *compiled) on(configured bool) says {
	switch {
	case configured:
		return yes
	case c.known():
		return no
	}
	return open
}

// ask asks one authenticator. why is a constant: the details are in contradictions.
func (x *subject) ask(a rank, c *compiled, f *facts) (answer says, why string) {
	z := &union[a]
	configured := z.configured(c)
	if configured == no {
		return no, whyNotConfigured
	}
	if answer, why = z.answer(x, c, f); configured == open && answer == open {
		why = whyMaybe
	}
	return answer, why
}
