package admission

import (
	"bytes"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/retrial-io/retrial/internal/patchops"
)

// externalIPs is DenyServiceExternalIPs: no service is given an external IP that it has not. The object before
// a change is not recorded, so that a change is judged only where it gives none.
type externalIPs struct{}

func (externalIPs) name() string { return "DenyServiceExternalIPs" }

// externalDenied is how the plugin words its refusals.
const externalDenied = "Use of external IPs is denied by admission control"

func (externalIPs) refused(r *refusal) (string, bool) {
	return "", r.code == 403 && r.forbidden && strings.HasPrefix(r.inner, externalDenied)
}

func (externalIPs) ask(q *Request, op Operation, body []byte, _, _ time.Time) said {
	a := q.Attributes
	if op != Create && op != Update || a.APIGroup != "" || a.Resource != "services" || a.Subresource != "" {
		return said{}
	}
	given, ok := givesExternal(body)
	switch {
	case !ok:
		return said{answer: unknown, missing: missingBody}
	case !given:
		return said{answer: passes, open: true}
	case op == Update:
		return said{answer: unknown, missing: "the external IPs that the service had"}
	}
	return said{answer: refuses, code: 403, words: externalDenied, open: true}
}

// givesExternal reports whether a service, or a patch of one, gives external IPs, or may; ok is false if the body is neither.
func givesExternal(body []byte) (given, ok bool) {
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		const list = "/spec/externalIPs"
		ops, ok := patchops.Read(body)
		for _, x := range ops {
			if x.Op != "remove" && x.Op != "test" && (patchops.Reaches(x.Path, list) || patchops.Reaches(list, x.Path)) {
				return true, true
			}
		}
		return false, ok
	}
	var in struct {
		Spec struct {
			ExternalIPs []string `json:"externalIPs"`
		} `json:"spec"`
	}
	ok = len(body) > 0 && kjson.UnmarshalCaseSensitivePreserveInts(body, &in) == nil
	return len(in.Spec.ExternalIPs) > 0, ok
}
