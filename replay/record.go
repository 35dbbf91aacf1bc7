package replay

import (
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authz"
)

// record is what an event says about its authorization. It is read only after the replica
// has decided.
type record struct {
	decision Decision
	reason   string
	// class and cause say why there is no decision to judge; empty when there is one.
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
		return record{class: ClassRequestReceived, cause: "the stage RequestReceived is recorded before authorization"}
	}
	switch decision {
	case "allow":
		return record{decision: DecisionAllow, reason: reason}
	case "forbid":
		return record{decision: DecisionForbid, reason: reason}
	}
	if found {
		return record{class: ClassNoDecision, cause: "the recorded decision is " + strconv.Quote(clip(decision)) + ", neither allow nor forbid"}
	}

	code := e.Code()
	var message string
	if e.ResponseStatus != nil {
		message = e.ResponseStatus.Message
	}
	not := func(class, cause string) record { return record{class: class, cause: cause} }
	switch {
	case code == 401:
		return not(ClassUnauthenticated, "401: "+clip(message))
	case reason == "internal error":
		r := not(ClassAuthorizerError, "the authorizer returned an error (500 internal error)")
		r.decision, r.reason = DecisionError, reason
		return r
	case code == 400 && e.User.Username == "" && strings.HasPrefix(message, "invalid timeout specified in the request URL"):
		return not(ClassBadTimeout, "400: "+clip(message))
	case code == 400 && e.ImpersonatedUser == nil && withoutUser(message):
		return not(ClassImpersonationBad, "400: impersonation headers without a user name")
	case code == 403 && e.ImpersonatedUser == nil && refusesImpersonation(message):
		return not(ClassImpersonationDenied, "403: "+clip(message))
	case code == 429:
		return not(ClassTooManyRequests, "429 before authorization")
	case code == 503:
		return not(ClassUnavailable, "503 before authorization")
	case e.Stage == event.StagePanic:
		return not(ClassPanic, "the handler panicked")
	case code == 0:
		return not(ClassNoDecision, "neither decision nor status are recorded")
	}
	r := not(ClassNoDecision, "no authorization annotations on a response "+strconv.Itoa(int(code)))
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

// clip bounds text quoted from an event: clients choose how long it is.
func clip(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// namedGrant is the binding and role a recorded reason names.
type namedGrant struct {
	bindingKind, bindingNamespace, binding string
	roleKind, role                         string
}

// parseReason takes a recorded RBAC reason apart:
//
//	RBAC: allowed by RoleBinding "name/namespace" of Role "name" to User "name"
func parseReason(reason string) (g namedGrant, ok bool) {
	rest, ok := strings.CutPrefix(reason, "RBAC: allowed by ")
	if !ok {
		return g, false
	}
	var binding string
	if g.bindingKind, binding, rest, ok = kindAndName(rest); !ok {
		return g, false
	}
	if rest, ok = strings.CutPrefix(rest, " of "); !ok {
		return g, false
	}
	if g.roleKind, g.role, rest, ok = kindAndName(rest); !ok || !strings.HasPrefix(rest, " to ") {
		return g, false
	}
	g.binding = binding
	if g.bindingKind == "RoleBinding" {
		i := strings.LastIndexByte(binding, '/')
		if i < 0 {
			return g, false
		}
		g.binding, g.bindingNamespace = binding[:i], binding[i+1:]
	}
	return g, true
}

// ReasonNames returns the binding that a recorded RBAC reason names, for example "RoleBinding
// namespace/name"; ok is false for every other reason.
func ReasonNames(reason string) (binding string, ok bool) {
	g, ok := parseReason(reason)
	if !ok {
		return "", false
	}
	k, _ := g.keys()
	return authz.ObjectName(k), true
}

// BuiltInReason tells whether a recorded reason is in the words of authorizers that are built into
// kube-apiserver, see authz.BuiltIn.
func BuiltInReason(reason string) bool { return authz.BuiltIn(reason) }

func kindAndName(s string) (kind, name, rest string, ok bool) {
	kind, rest, ok = strings.Cut(s, " ")
	if !ok {
		return "", "", "", false
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "", "", "", false
	}
	name, err = strconv.Unquote(quoted)
	return kind, name, rest[len(quoted):], err == nil
}
