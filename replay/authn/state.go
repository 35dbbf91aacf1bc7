package authn

import (
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// State is what the evaluator asks about the objects behind credentials, as of a moment. Every
// answer is three-valued; Unknown never leads to a contradiction. Absent of a pod by uid or of a
// credential means that the record is complete: there has been none. *state.State is one.
type State interface {
	ServiceAccount(namespace, name string, at time.Time) (uid string, known state.Known)
	// History returns every version kept of an object, oldest first; it is asked for service
	// accounts, and only before a contradiction is reported.
	History(resource, namespace, name string) []state.Version
	Pod(namespace, name string, at time.Time) (state.Pod, state.Known)
	PodByUID(uid string) (state.Pod, state.Known)
	Node(name string, at time.Time) (uid string, known state.Known)
	Secret(namespace, name string, at time.Time) (kept.Secret, state.Known)
	Credential(id string) (state.Credential, state.Known)
}
