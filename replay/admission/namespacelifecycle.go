package admission

import (
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/request"
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

// namespaceLifecycle keeps namespaces that are missing or on their way out from being filled, and
// some from being deleted. It is evaluated again.
type namespaceLifecycle struct{}

func (namespaceLifecycle) name() string { return "NamespaceLifecycle" }

func (namespaceLifecycle) refused(r *refusal) bool {
	a := r.a
	if r.code == 404 {
		return a.Namespace != "" && a.Verb != request.VerbDelete && a.Resource != "namespaces" && isNamespaceNotFound(r.message, a.Namespace)
	}
	return r.code == 403 && r.forbidden &&
		(strings.HasPrefix(r.inner, "this namespace may not be deleted") || strings.HasPrefix(r.inner, "unable to create new content in namespace "))
}

func (namespaceLifecycle) judge(q *Request, op Operation, adm *verdict.Admission) {
	adm.NamespaceLifecycle = judgeLifecycle(q.lifecycle(op, q.Received, q.Received), adm, q.Code, q.Message)
	if adm.NamespaceLifecycle != verdict.LifecycleDrift {
		return
	}
	from, to := q.Window.Window()
	if floor := q.Received.Add(namespaceWait); to.Before(floor) {
		to = floor
	}
	if ans := q.lifecycle(op, from, to); ans == lifecycleChanging || ans == lifecycleUnknown {
		adm.NamespaceLifecycle = judgeLifecycle(ans, adm, q.Code, q.Message)
	}
}

// lifecycle evaluates the plugin: immortal namespaces cannot be deleted; nothing can be
// created in a namespace that is missing or being terminated. from and to bound the time the
// namespace is asked for.
func (q *Request) lifecycle(op Operation, from, to time.Time) lifecycleAnswer {
	a := q.Attributes
	if a.APIGroup == "" && a.Resource == "namespaces" {
		if op == Delete && a.Subresource == "" && (a.Name == "default" || a.Name == "kube-system" || a.Name == "kube-public") {
			return lifecycleImmortal
		}
		if op == None || op == Connect {
			return lifecycleUnasked
		}
		return lifecyclePass
	}
	if a.Namespace == "" || (op != Create && op != Update) {
		return lifecycleUnasked
	}
	if a.APIGroup == "authorization.k8s.io" && a.Resource == "localsubjectaccessreviews" {
		return lifecyclePass
	}
	if q.State == nil {
		return lifecycleUnknown
	}
	return lifecycleOf(q.State.Namespace(a.Namespace, from, to), op)
}

// judgeLifecycle compares with the record. Errors from before the plugins (a body that does
// not decode, a resource that is not served, an object that is not there) leave the
// question open; what comes after them proves that the plugin let the request pass.
func judgeLifecycle(ans lifecycleAnswer, adm *verdict.Admission, code int32, message string) string {
	rejected := adm.Plugin == namespaceLifecycle{}.name()
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
func lifecycleOf(ns state.NamespaceAnswer, op Operation) lifecycleAnswer {
	switch ns {
	case state.NamespaceActive:
		return lifecyclePass
	case state.NamespaceTerminating:
		if op == Update {
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

// isNamespaceNotFound recognises the whole message `namespaces "ns" not found`.
func isNamespaceNotFound(message, namespace string) bool {
	const head, tail = `namespaces "`, `" not found`
	return len(message) == len(head)+len(namespace)+len(tail) && strings.HasPrefix(message, head) &&
		strings.HasSuffix(message, tail) && message[len(head):len(head)+len(namespace)] == namespace
}
