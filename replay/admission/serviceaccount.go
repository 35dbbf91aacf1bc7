package admission

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/graph"
)

// serviceAccount is ServiceAccount: a pod runs as an account that is there, and a pod that mirrors a
// node's own has neither account nor secrets.
type serviceAccount struct{}

func (serviceAccount) name() string { return "ServiceAccount" }

// defaultAccount is the account of pods that name none. It is looked for up to ten times, up to
// 200 ms apart: it may be about to be made.
const (
	defaultAccount = "default"
	defaultWait    = 2 * time.Second
)

func (serviceAccount) refused(r *refusal) (string, bool) {
	words := r.message
	if r.forbidden {
		words = r.inner
	}
	return "", r.code == 403 && r.forbidden &&
		begins(words, "error looking up service account ", "no service account specified for pod", "a mirror pod may not ") ||
		strings.Contains(words, " is not allowed because service account ") &&
			begins(words, "volume with secret", "init container ", "container ", "ephemeral container ", "imagePullSecrets[")
}

// podParts is what ServiceAccount reads of a pod: reading the rest of it would cost as much as judging
// the request.
type podParts struct {
	Metadata struct {
		Annotations struct {
			Mirror given `json:"kubernetes.io/config.mirror"`
		} `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		ServiceAccountName       string `json:"serviceAccountName"`
		DeprecatedServiceAccount string `json:"serviceAccount"`
		Volumes                  []struct {
			Secret    *struct{} `json:"secret"`
			Projected *struct {
				Sources []struct {
					Token *struct{} `json:"serviceAccountToken"`
				} `json:"sources"`
			} `json:"projected"`
		} `json:"volumes"`
		InitContainers   []containerParts `json:"initContainers"`
		Containers       []containerParts `json:"containers"`
		ImagePullSecrets []struct{}       `json:"imagePullSecrets"`
	} `json:"spec"`
}

// containerParts is what ServiceAccount reads of a container.
type containerParts struct {
	Env []struct {
		ValueFrom *struct {
			Secret *struct{} `json:"secretKeyRef"`
		} `json:"valueFrom"`
	} `json:"env"`
	EnvFrom []struct {
		Secret *struct{} `json:"secretRef"`
	} `json:"envFrom"`
}

// given is whether a member is there, whatever it is.
type given bool

// UnmarshalJSON notes that the member is there.
func (g *given) UnmarshalJSON([]byte) error {
	*g = true
	return nil
}

// decodes reports whether a body is a pod.
func (serviceAccount) decodes(body []byte) bool {
	return kjson.UnmarshalCaseSensitivePreserveInts(body, new(corev1.Pod)) == nil
}

func (p serviceAccount) ask(q *Request, op Operation, body []byte, from, to time.Time) said {
	a := q.Attributes
	switch {
	case a.APIGroup != "" || a.Resource != "pods":
		return said{}
	case op == Update && a.Subresource == "ephemeralcontainers":
		return said{answer: unknown, missing: "the account of the pod, and whether it lists the secrets of its pods"}
	case op != Create || a.Subresource != "":
		return said{}
	}
	var pod podParts
	if len(body) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(body, &pod) != nil {
		return said{answer: unknown, missing: missingBody}
	}
	account := cmp.Or(pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount)
	if pod.Metadata.Annotations.Mirror {
		return askMirror(&pod, account, body)
	}
	account = cmp.Or(account, defaultAccount)
	return p.find(q, &pod, account, from, to)
}

// find looks for the account of a pod.
func (serviceAccount) find(q *Request, pod *podParts, account string, from, to time.Time) said {
	namespace := q.Attributes.Namespace
	ans := said{answer: unknown, missing: "service account " + namespace + "/" + account + " is not known"}
	if q.State == nil {
		return ans
	}
	if account == defaultAccount {
		ans.wait = defaultWait
	}
	known, changed := q.State.ServiceAccountIn(namespace, account, from, to)
	lost := fmt.Sprintf("error looking up service account %s/%s: serviceaccount %q not found", namespace, account, account)
	switch {
	case changed:
		ans.answer, ans.missing = changing, "service account "+namespace+"/"+account+" changed meanwhile"
	case known == state.Absent:
		ans.answer, ans.code, ans.words, ans.missing = refuses, 403, lost, ""
	case known == state.Present && holdsSecrets(pod):
		// An account can be annotated to be held to the secrets that it lists.
		ans.missing = "whether service account " + namespace + "/" + account + " is held to the secrets it lists"
	case known == state.Present:
		ans.answer, ans.open, ans.excludes, ans.missing = passes, true, lost, ""
	}
	return ans
}

// askMirror returns the answer for a pod that mirrors one of a node's own.
func askMirror(pod *podParts, account string, body []byte) said {
	refuse := func(what string) said {
		return said{answer: refuses, code: 403, words: "a mirror pod may not " + what}
	}
	if account != "" {
		return refuse("reference service accounts")
	}
	if some, err := graph.PodSecrets(body); err != nil || some {
		return refuse("reference secrets")
	}
	if projectsToken(pod) {
		return refuse("use ServiceAccountToken volume projections")
	}
	return said{answer: passes, open: true}
}

// projectsToken reports whether a volume of a pod holds a token of its account.
func projectsToken(pod *podParts) bool {
	for i := range pod.Spec.Volumes {
		if p := pod.Spec.Volumes[i].Projected; p != nil {
			for j := range p.Sources {
				if p.Sources[j].Token != nil {
					return true
				}
			}
		}
	}
	return false
}

// holdsSecrets reports whether a pod refers to secrets that an account can be held to list.
func holdsSecrets(pod *podParts) bool {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Secret != nil {
			return true
		}
	}
	for _, list := range [...][]containerParts{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for j := range list[i].Env {
				if from := list[i].Env[j].ValueFrom; from != nil && from.Secret != nil {
					return true
				}
			}
			for j := range list[i].EnvFrom {
				if list[i].EnvFrom[j].Secret != nil {
					return true
				}
			}
		}
	}
	return len(pod.Spec.ImagePullSecrets) > 0
}
