package replay

import (
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// record is what an event says about its authorization. It is read only after the replica
// has decided.
type record struct {
	decision verdict.Decision
	reason   string
	// class and cause say why there is no decision to judge; empty if there is one.
	class, cause string
	// unnoted is a success without a decision: something lets requests through unauthorized,
	// or has taken the annotations away.
	unnoted bool
}

// readRecord reads the recorded decision, or classifies why there is none by what the
// event proves about how far the request came in the apiserver's handler chain.
func readRecord(e *event.Event) record {
	decision, found := e.Annotations.Get(event.AnnotationDecision)
	reason, _ := e.Annotations.Get(event.AnnotationReason)
	if e.Stage == event.StageRequestReceived {
		return record{class: verdict.ClassRequestReceived, cause: "the stage RequestReceived is recorded before authorization"}
	}
	switch decision {
	case "allow":
		return record{decision: verdict.DecisionAllow, reason: reason}
	case "forbid":
		return record{decision: verdict.DecisionForbid, reason: reason}
	}
	if found {
		return record{class: verdict.ClassNoDecision, cause: "the recorded decision is " + strconv.Quote(verdict.Clip(decision)) +
			", neither allow nor forbid"}
	}

	code := e.Code()
	var message string
	if e.ResponseStatus != nil {
		message = e.ResponseStatus.Message
	}
	not := func(class, cause string) record { return record{class: class, cause: cause} }
	switch {
	case code == 401:
		return not(verdict.ClassUnauthenticated, "401: "+verdict.Clip(message))
	case reason == "internal error":
		r := not(verdict.ClassAuthorizerError, "the authorizer returned an error (500 internal error)")
		r.decision, r.reason = verdict.DecisionError, reason
		return r
	case code == 400 && e.User.Username == "" && strings.HasPrefix(message, "invalid timeout specified in the request URL"):
		return not(verdict.ClassBadTimeout, "400: "+verdict.Clip(message))
	case code == 400 && e.ImpersonatedUser == nil && withoutUser(message):
		return not(verdict.ClassImpersonationBad, "400: impersonation headers without a user name")
	case code == 403 && e.ImpersonatedUser == nil && refusesImpersonation(message):
		return not(verdict.ClassImpersonationDenied, "403: "+verdict.Clip(message))
	case code == 429:
		return not(verdict.ClassTooManyRequests, "429 before authorization")
	case code == 503:
		return not(verdict.ClassUnavailable, "503 before authorization")
	case e.Stage == event.StagePanic:
		return not(verdict.ClassPanic, "the handler panicked")
	case code == 0:
		return not(verdict.ClassNoDecision, "neither decision nor status are recorded")
	}
	r := not(verdict.ClassNoDecision, "no authorization annotations on a response "+strconv.Itoa(int(code)))
	r.unnoted = code >= 200 && code < 300
	return r
}

// withoutUser recognises the text of a request that names groups, a uid or extra to act as
// and no user. Redaction may have cut its end, behind the wanted user as Go prints it.
func withoutUser(message string) bool {
	return strings.HasPrefix(message, "requested &user.DefaultInfo{") ||
		strings.HasPrefix(message, "requested ") && strings.Contains(message, "without impersonating a user")
}

// refusesImpersonation recognises the forbidden text of an impersonation check: its verb
// is impersonate, impersonate:<mode> or impersonate-on:<mode>:<verb>.
func refusesImpersonation(message string) bool {
	return strings.Contains(message, " cannot impersonate ") ||
		strings.Contains(message, " cannot impersonate:") ||
		strings.Contains(message, " cannot impersonate-on:") ||
		strings.Contains(message, "impersonating the ") || strings.Contains(message, "impersonating an invalid key in extra") ||
		strings.Contains(message, "impersonating empty values in extra") || strings.Contains(message, "impersonating a non-lowercase key")
}

// objectRefContradicts reports whether the recorded objectRef names something else than
// the URI. Fields the URI leaves empty are completed from the body and prove nothing.
func objectRefContradicts(ref *event.ObjectRef, a *verdict.Attributes) bool {
	if ref == nil || !a.ResourceRequest {
		return false
	}
	differs := func(uri, ref string) bool { return uri != "" && uri != ref }
	return differs(a.Resource, ref.Resource) || differs(a.Subresource, ref.Subresource) || differs(a.Namespace, ref.Namespace) ||
		differs(a.Name, ref.Name) || differs(a.APIGroup, ref.APIGroup) || differs(a.APIVersion, ref.APIVersion)
}
