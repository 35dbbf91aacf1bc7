package authn

// loopbackToken is the apiserver's own token for itself. It is always there.
type loopbackToken struct{}

func (loopbackToken) configured(*compiled) says { return yes }

func (loopbackToken) answer(x *subject, _ *compiled, _ *facts) (says, string) {
	switch {
	case x.kind != kindLoopback:
		return no, whyName
	case !x.loopbackShaped():
		return no, "another shape than the apiserver's own token gives"
	}
	return yes, ""
}
