package authn

// anonymousRequests lets in who sends no credential. It is the last.
type anonymousRequests struct{}

func (anonymousRequests) configured(*compiled) says { return yes }

func (anonymousRequests) answer(x *subject, c *compiled, _ *facts) (says, string) {
	switch {
	case x.kind != kindAnonymous:
		return no, whyName
	case x.u.UID != "" || len(x.u.Groups) != 1 || !x.unauthenticated || len(x.u.Extra) > 0:
		return no, "another shape than an anonymous request has"
	case c.cfg == nil || c.cfg.Authentication.Unknown != "" || c.cfg.Authentication.Anonymous.Unknown != "":
		return yes, "" // nobody else gives this name
	case !c.cfg.Authentication.Anonymous.Enabled:
		return no, "anonymous requests are switched off"
	case !c.takesAnonymous(x.e.RequestURI):
		return no, "the path is none that anonymous requests are let in for"
	}
	return yes, ""
}
