package admission

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// antiAffinity is LimitPodHardAntiAffinityTopology: what a pod must be kept apart by is the host alone. Of a pod that
// is patched it needs the object as it was stored, since the patch does not show the rest.
type antiAffinity struct{}

func (antiAffinity) name() string { return "LimitPodHardAntiAffinityTopology" }

// How the plugin words its refusals, around the key that it refuses.
const (
	topologyDenied  = "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey "
	topologyAllowed = " but only key " + corev1.LabelHostname + " is allowed"
)

func (antiAffinity) refused(r *refusal) (string, bool) {
	return "", r.code == 403 && r.forbidden && strings.HasPrefix(r.inner, topologyDenied)
}

func (antiAffinity) ask(q *Request, op Operation, body []byte, _, _ time.Time) said {
	a := q.Attributes
	if op != Create && op != Update || a.APIGroup != "" || a.Resource != "pods" || a.Subresource != "" {
		return said{}
	}
	missing := missingBody
	if op == Update && a.Verb == "patch" {
		body, missing = q.Written, "the anti-affinity of the pod"
	}
	var pod struct {
		Spec struct {
			Affinity struct {
				PodAntiAffinity struct {
					Required []struct {
						TopologyKey string `json:"topologyKey"`
					} `json:"requiredDuringSchedulingIgnoredDuringExecution"`
				} `json:"podAntiAffinity"`
			} `json:"affinity"`
		} `json:"spec"`
	}
	if len(body) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(body, &pod) != nil {
		return said{answer: unknown, missing: missing}
	}
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.Required {
		if term.TopologyKey != corev1.LabelHostname {
			return said{answer: refuses, code: 403, words: topologyDenied + term.TopologyKey + topologyAllowed, open: true}
		}
	}
	return said{answer: passes, open: true}
}
