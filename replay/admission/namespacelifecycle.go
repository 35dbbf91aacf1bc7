package admission

import (
	"time"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// namespaceWait is how long NamespaceLifecycle waits for a namespace it does not see before
// it asks etcd: a namespace created that much after a request arrived is still found.
const namespaceWait = 50 * time.Millisecond

// namespaceLifecycle keeps namespaces that are missing or on their way out from being filled, and
// some from being deleted. It is evaluated again.
type namespaceLifecycle struct{}

func (namespaceLifecycle) name() string { return verdict.PluginNamespaceLifecycle }

func (namespaceLifecycle) refused(r *refusal) (string, bool) {
	a := r.a
	if r.code == 404 {
		return "", a.Namespace != "" && a.Verb != request.VerbDelete && a.Resource != "namespaces" &&
			r.message == `namespaces "`+a.Namespace+`" not found`
	}
	return "", r.code == 403 && r.forbidden && begins(r.inner, immortal, "unable to create new content in namespace ")
}

// immortal is how the plugin refuses to delete a namespace.
const immortal = "this namespace may not be deleted"

// ask: immortal namespaces cannot be deleted; nothing can be created in a namespace that is missing
// or being terminated.
func (namespaceLifecycle) ask(q *Request, op Operation, _ []byte, from, to time.Time) said {
	a := q.Attributes
	if a.APIGroup == "" && a.Resource == "namespaces" {
		if op == Delete && a.Subresource == "" && (a.Name == "default" || a.Name == "kube-system" || a.Name == "kube-public") {
			return said{answer: refuses, code: 403, words: immortal}
		}
		if op == None || op == Connect {
			return said{}
		}
		return said{answer: passes}
	}
	if a.Namespace == "" || (op != Create && op != Update) {
		return said{}
	}
	if a.APIGroup == "authorization.k8s.io" && a.Resource == "localsubjectaccessreviews" {
		return said{answer: passes}
	}
	if q.State == nil {
		return said{answer: unknown, missing: "namespaces are not known"}
	}
	ans := lifecycleOf(q.State.Namespace(a.Namespace, from, to), op, a.Namespace)
	ans.wait = namespaceWait
	return ans
}

// lifecycleOf turns what is known of a namespace into the plugin's answer. Updates reach
// the plugin only when their object exists, and a namespace under termination takes them.
func lifecycleOf(is state.NamespaceAnswer, op Operation, namespace string) said {
	switch is {
	case state.NamespaceActive:
		return said{answer: passes}
	case state.NamespaceTerminating:
		if op == Update {
			return said{answer: passes}
		}
		return said{answer: refuses, code: 403, words: "unable to create new content in namespace " + namespace +
			" because it is being terminated"}
	case state.NamespaceAbsent:
		return said{answer: refuses, code: 404, words: `namespaces "` + namespace + `" not found`}
	case state.NamespaceChanging:
		return said{answer: changing, missing: "namespace " + namespace + " changed meanwhile"}
	}
	return said{answer: unknown, missing: "namespace " + namespace + " is not known"}
}
