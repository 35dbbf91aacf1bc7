package replay

import (
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// namespaceWait is how long NamespaceLifecycle waits for a namespace it does not see before
// it asks etcd: a namespace created that much after a request arrived is still found.
const namespaceWait = 50 * time.Millisecond

// lifecycleAnswer is what the plugin NamespaceLifecycle does with a request.
type lifecycleAnswer uint8

const (
	lifecycleUnasked    lifecycleAnswer = iota // the plugin does not look at it
	lifecyclePass                              // certain
	lifecycleImmortal                          // 403: this namespace may not be deleted
	lifecycleMissing                           // 404: namespaces "x" not found
	lifecycleTerminates                        // 403: being terminated
	lifecycleChanging                          // the namespace changed meanwhile: either
	lifecycleUnknown                           // the namespace is not known
)

// admission fills in what admission did: the recorded refusal attributed to its plugin, and
// NamespaceLifecycle evaluated again.
func (t *trial) admission(rec *record) {
	a := &t.v.Attributes
	if t.uriErr != nil {
		return
	}
	op := operationOf(a)
	code := t.e.Code()
	var reason, message string
	if t.e.ResponseStatus != nil {
		reason, message = t.e.ResponseStatus.Reason, t.e.ResponseStatus.Message
	}
	adm := &t.v.Admission
	if op != opNone && rec.decision == verdict.DecisionAllow && code >= 400 {
		u := t.e.EffectiveUser()
		adm.Plugin = t.eng.admission.plugin(code, reason, message, node.Is(u.Username, u.Groups), a)
	}
	adm.Recorded = recordedAdmission(op, *rec, code, adm.Plugin)
	if rec.decision != verdict.DecisionAllow {
		return // admission never ran
	}
	received := t.e.RequestReceivedTimestamp
	adm.NamespaceLifecycle = judgeLifecycle(t.lifecycle(op, received, received), adm, code, message)
	if adm.NamespaceLifecycle != verdict.LifecycleDrift {
		return
	}
	from, to := t.window()
	if floor := received.Add(namespaceWait); to.Before(floor) {
		to = floor
	}
	if ans := t.lifecycle(op, from, to); ans == lifecycleChanging || ans == lifecycleUnknown {
		adm.NamespaceLifecycle = judgeLifecycle(ans, adm, code, message)
	}
}

// lifecycle evaluates the plugin: immortal namespaces cannot be deleted; nothing can be
// created in a namespace that is missing or being terminated. from and to bound the time the
// namespace is asked for.
func (t *trial) lifecycle(op admissionOp, from, to time.Time) lifecycleAnswer {
	a := &t.v.Attributes
	if a.APIGroup == "" && a.Resource == "namespaces" {
		if op == opDelete && a.Subresource == "" && (a.Name == "default" || a.Name == "kube-system" || a.Name == "kube-public") {
			return lifecycleImmortal
		}
		if op == opNone || op == opConnect {
			return lifecycleUnasked
		}
		return lifecyclePass
	}
	if a.Namespace == "" || (op != opCreate && op != opUpdate) {
		return lifecycleUnasked
	}
	if a.APIGroup == "authorization.k8s.io" && a.Resource == "localsubjectaccessreviews" {
		return lifecyclePass
	}
	if t.s == nil {
		return lifecycleUnknown
	}
	return lifecycleOf(t.s.Namespace(a.Namespace, from, to), op)
}

// judgeLifecycle compares with the record. Errors from before the plugins (a body that does
// not decode, a resource that is not served, an object that is not there) leave the
// question open; what comes after them proves that the plugin let the request pass.
func judgeLifecycle(ans lifecycleAnswer, adm *verdict.Admission, code int32, message string) string {
	rejected := adm.Plugin == pluginNamespaceLifecycle
	passed := adm.Recorded == verdict.AdmissionAdmitted || (adm.Recorded == verdict.AdmissionRejected && !rejected) ||
		code == 409 || code == 422
	switch ans {
	case lifecycleUnasked:
		if rejected {
			return verdict.LifecycleDrift
		}
		return ""
	case lifecyclePass:
		if rejected {
			return verdict.LifecycleDrift
		}
		return verdict.LifecyclePass
	case lifecycleChanging:
		if rejected || passed {
			return verdict.LifecycleAmbiguous
		}
		return ""
	case lifecycleUnknown:
		return verdict.LifecycleIndeterminate
	}
	switch {
	case rejected && wordsOf(ans, code, message):
		return verdict.LifecycleMatch
	case rejected, passed:
		return verdict.LifecycleDrift
	}
	return ""
}

// wordsOf reports whether the recorded refusal is the one this answer gives.
func wordsOf(ans lifecycleAnswer, code int32, message string) bool {
	switch ans {
	case lifecycleImmortal:
		return code == 403 && strings.HasSuffix(message, "this namespace may not be deleted")
	case lifecycleTerminates:
		return code == 403 && strings.HasSuffix(message, " because it is being terminated")
	case lifecycleMissing:
		return code == 404
	}
	return false
}

// lifecycleOf turns what is known of a namespace into the plugin's answer. Updates reach
// the plugin only when their object exists, and a namespace under termination takes them.
func lifecycleOf(ns state.NamespaceAnswer, op admissionOp) lifecycleAnswer {
	switch ns {
	case state.NamespaceActive:
		return lifecyclePass
	case state.NamespaceTerminating:
		if op == opUpdate {
			return lifecyclePass
		}
		return lifecycleTerminates
	case state.NamespaceAbsent:
		return lifecycleMissing
	case state.NamespaceChanging:
		return lifecycleChanging
	}
	return lifecycleUnknown
}
