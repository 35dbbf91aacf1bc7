package authn

import (
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
)

// What a refused request was refused for, as far as its answer tells.
const (
	RefusedCredentials   = "credentials-refused"  // at least one authenticator objected
	RefusedNoCredentials = "no-credentials"       // nobody objected, and anonymous requests are not let in
	RefusedUnknown       = "not-evaluable:answer" // the usual answer tells nothing
)

const (
	textAttempted = "Authentication failed, attempted: "
	textNone      = "Authentication failed, no credentials provided"
)

// Refusal reads the answer to a request that failed authentication (401): what for, and which
// kinds of credentials were tried ("basic", "bearer", "access_token", "x509", in that order).
// The usual answer is "Unauthorized" and tells neither; the other texts are written only when
// the apiserver could not encode its answer the way the client wanted it. ok is false for
// events of any other kind.
func Refusal(e *event.Event) (reason string, attempted []string, ok bool) {
	if e.User.Username != "" || e.Code() != 401 {
		return "", nil, false
	}
	message := strings.TrimSpace(e.ResponseStatus.Message)
	if rest, cut := strings.CutPrefix(message, textAttempted); cut {
		for kind := range strings.SplitSeq(rest, ",") {
			switch kind = strings.TrimSpace(kind); kind {
			case "basic", "bearer", "access_token", "x509":
				attempted = append(attempted, kind)
			}
		}
		return RefusedCredentials, attempted, true
	}
	if message == textNone {
		return RefusedNoCredentials, nil, true
	}
	return RefusedUnknown, nil, true
}

// refused compares a request that failed authentication with the configuration: without any
// credential it is an anonymous one where those are let in.
func (x *subject) refused(out []Contradiction, c *compiled) []Contradiction {
	reason, _, ok := Refusal(x.e)
	if !ok || reason != RefusedNoCredentials || c.cfg == nil {
		return out
	}
	a := &c.cfg.Authentication
	if a.Unknown != "" || a.Anonymous.Unknown != "" || !a.Anonymous.Enabled || !c.takesAnonymous(x.e.RequestURI) {
		return out
	}
	return append(out, Contradiction{ContradictionAnonymousNotTaken, "no credentials were sent, and anonymous requests are let in"})
}
