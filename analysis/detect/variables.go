package detect

import (
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// textOf returns how a string variable is read, nil for variables of other types. Every rule reads
// every request: what all of them read must not go through the interpreter.
func textOf(name string) func(*input) string {
	switch name {
	case "cluster":
		return func(in *input) string { return in.cluster }
	case "verb":
		return func(in *input) string { return in.event.Verb }
	case "user":
		return func(in *input) string { return in.event.User.Username }
	case "uid":
		return func(in *input) string { return in.event.User.UID }
	case "boundPod":
		return func(in *input) string {
			if uid := in.event.User.Extra.Get(event.ExtraPodUID); len(uid) == 1 {
				return uid[0]
			}
			return ""
		}
	case "impersonatedUser":
		return func(in *input) string {
			if in.event.ImpersonatedUser == nil {
				return ""
			}
			return in.event.ImpersonatedUser.Username
		}
	case "subject":
		return func(in *input) string { return in.event.EffectiveUser().Username }
	case "path":
		return func(in *input) string { p, _, _ := strings.Cut(in.event.RequestURI, "?"); return p }
	case "query":
		return func(in *input) string { _, q, _ := strings.Cut(in.event.RequestURI, "?"); return q }
	case "apiGroup":
		return func(in *input) string { return in.attrs.APIGroup }
	case "resource":
		return func(in *input) string { return in.attrs.Resource }
	case "subresource":
		return func(in *input) string { return in.attrs.Subresource }
	case "ns":
		return func(in *input) string { return in.attrs.Namespace }
	case "name":
		return func(in *input) string { return in.attrs.Name }
	case "message":
		return func(in *input) string {
			if in.event.ResponseStatus == nil {
				return ""
			}
			return in.event.ResponseStatus.Message
		}
	case "stage":
		return func(in *input) string { return string(in.event.Stage) }
	case "level":
		return func(in *input) string { return string(in.event.Level) }
	case "auditID":
		return func(in *input) string { return in.event.AuditID }
	case "requestKey":
		return (*input).requestKey
	case "sourceIP":
		return func(in *input) string {
			if n := len(in.event.SourceIPs); n > 0 {
				return in.event.SourceIPs[n-1]
			}
			return ""
		}
	case "userAgent":
		return func(in *input) string { return in.event.UserAgent }
	}
	return verdictTextOf(name)
}

func verdictTextOf(name string) func(*input) string {
	switch name {
	case "verdict.outcome":
		return func(in *input) string { return in.verdict.Outcome.String() }
	case "verdict.class":
		return func(in *input) string { return in.verdict.Class }
	case "verdict.recorded":
		return func(in *input) string { return in.verdict.Recorded.String() }
	case "verdict.replayed":
		return func(in *input) string { return in.verdict.Replayed.String() }
	case "verdict.reason":
		return func(in *input) string { return in.verdict.RecordedReason }
	case "verdict.authorizer":
		return func(in *input) string { return in.verdict.Authorizer }
	case "verdict.credential":
		return func(in *input) string { return in.verdict.Credential }
	case "verdict.admission":
		return func(in *input) string { return in.verdict.Admission.Recorded }
	case "verdict.admissionPlugin":
		return func(in *input) string { return in.verdict.Admission.Plugin() }
	}
	return nil
}

// flagOf returns how a bool variable is read, nil for variables of other types.
func flagOf(name string) func(*input) bool {
	switch name {
	case "component":
		return (*input).isComponent
	case "isResource":
		return func(in *input) bool { return in.attrs.ResourceRequest }
	case "dryRun":
		return func(in *input) bool { return event.DryRunOf(in.event) == event.DryRun }
	case "answerLost":
		return (*input).answerLost
	}
	return nil
}

// answerLost reports whether the request is a write that was allowed and whose outcome nobody was
// told.
func (in *input) answerLost() bool {
	switch in.event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return event.Ends(in.event) && in.verdict.Recorded == verdict.DecisionAllow && event.OutcomeOf(in.event) == event.PerhapsDone
	}
	return false
}
