package query

import (
	"strings"

	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// Advice says what to supply next, so that more requests get a certain verdict.
type Advice struct {
	Class    string `json:"class"`             // of the verdicts that wait
	Requests int64  `json:"requests"`          // that wait for it
	Title    string `json:"title"`             // what to supply, in a few words
	Text     string `json:"text"`              // what to supply, and why
	Command  string `json:"command,omitempty"` // for a shell
	Missing  []Lack `json:"missing"`           // what exactly, most wanted first
}

// Lack is a missing thing and how many requests wait for it.
type Lack struct {
	What     string `json:"what"` // what is missing
	Requests int64  `json:"requests"`
}

// mostMissing is how many missing things an Advice lists.
const mostMissing = 8

// Advise picks the class of indeterminate requests that is most worth an operator's effort, and says what to do.
func Advise(cluster string, shares []queries.Share, lacks []queries.Lack) *Advice {
	var out *Advice
	for _, s := range shares {
		if s.Outcome != "indeterminate" || s.Requests <= 0 {
			continue
		}
		a := AdviceFor(cluster, s.Class)
		a.Requests = s.Requests
		if out == nil || rank(a) > rank(*out) || rank(a) == rank(*out) && a.Requests > out.Requests {
			out = &a
		}
	}
	if out == nil {
		return nil
	}
	out.Missing = []Lack{}
	for _, l := range lacks {
		if classOfLack(l.Missing) == out.Class && len(out.Missing) < mostMissing {
			out.Missing = append(out.Missing, Lack{l.Missing, l.Requests})
		}
	}
	return out
}

// rank puts what can be supplied before what cannot, and a missing state first: it settles most of the rest too.
func rank(a Advice) int {
	switch a.Class {
	case verdict.ClassNoState:
		return 4
	case verdict.ClassConfig:
		return 3
	case verdict.ClassUnknown:
		return 2
	case verdict.ClassNodeGraph:
		return 1
	}
	return 0
}

// AdviceFor says what to supply for requests of a class.
func AdviceFor(cluster, class string) Advice {
	a := Advice{Class: class}
	switch class {
	case verdict.ClassNoState:
		a.Title = "The cluster's roles and bindings"
		a.Text = "Retrial was not told what the policy was when these requests were made. List it once and import it; changes after that " +
			"are read from the audit log itself."
		a.Command = StateListing + "\n" + StateImport(cluster)
	case verdict.ClassUnknown:
		a.Title = "Objects whose content the log does not carry"
		a.Text = "These roles and bindings were written while the audit policy logged them without bodies, or their events were too " +
			"large. Import a fresh list of the state to learn what they hold now, and log writes to RBAC objects at level RequestResponse."
		a.Command = StateListing + "\n" + StateImport(cluster) + "\n" +
			"# in the audit policy, before other rules\n" +
			"- level: RequestResponse\n  verbs: [create, update, patch, delete, deletecollection]\n  resources: [{group: " +
			"rbac.authorization.k8s.io}]"
	case verdict.ClassNodeGraph:
		a.Title = "The pods of the cluster's nodes"
		a.Text = "Kubelets may read what their own pods use, and which pods ran on these nodes is not known. List them once with the " +
			"rest of the state, and log the making, binding and end of pods at level RequestResponse (deploy/audit-policy.yaml does)."
		a.Command = StateListing + "\n" + StateImport(cluster)
	case verdict.ClassConfig:
		a.Title = "A part of the apiserver's configuration"
		a.Text = "How the apiserver decides is not fully known: a file that its flags name is missing, or an authorizer has an " +
			"unknown type. Supply its configuration, then judge again."
		a.Command = "retrial config check DIR   # names what is missing\n" +
			"retrial serve --apiserver-config " + phrase.ShellWord(cluster) + "=DIR\nretrial rejudge --cluster " +
			phrase.ShellWord(cluster) + " --since TIME"
	case verdict.ClassWebhook:
		a.Title = "Nothing you need to supply"
		a.Text = "Only the authorizer webhook can explain these decisions, and no audit event holds its answers. Every authorizer of the " +
			"apiserver itself was replayed."
	default:
		a.Title = "Nothing you can supply"
		a.Text = "This version does not know why." // a class that another version stored
		if text := verdict.Explain(class); text != "" {
			a.Text = strings.ToUpper(text[:1]) + text[1:] + "."
		}
	}
	return a
}

// classOfLack tells what kind of thing is missing from the words the engine uses for it.
func classOfLack(missing string) string {
	switch {
	case strings.HasPrefix(missing, "pods bound to node "):
		return verdict.ClassNodeGraph
	case strings.HasPrefix(missing, "the cluster's "), strings.HasPrefix(missing, "all "):
		return verdict.ClassNoState
	case strings.HasPrefix(missing, "not-evaluable:webhook"):
		return verdict.ClassWebhook
	case strings.HasPrefix(missing, "Role"), strings.HasPrefix(missing, "ClusterRole"):
		return verdict.ClassUnknown
	}
	return verdict.ClassConfig
}

// StateListing is the command that lists what requests are judged against.
const StateListing = "kubectl get clusterroles,clusterrolebindings,roles,rolebindings,namespaces,serviceaccounts,pods,nodes," +
	"persistentvolumes,volumeattachments,certificatesigningrequests -A -o json > state.json"

// StateImport returns the command that imports what StateListing lists.
func StateImport(cluster string) string {
	return "retrial import --cluster " + phrase.ShellWord(cluster) + " --state state.json"
}
