package query

import (
	"context"
	"time"
)

// WhoCanAnswer says whom RBAC grants a request.
type WhoCanAnswer struct {
	Cluster string `json:"cluster"`
	Policy
	AccessRequest

	Subjects []Holder `json:"subjects"` // a subject stands in it once for each scope
	// InNamespaces counts the subjects that RoleBindings allow it in a namespace, when no namespace was named.
	InNamespaces int `json:"inNamespaces"`
	// Hints says what may be wrong with the question.
	Hints []string `json:"hints,omitempty"`
}

// Holder is a subject granted the request in one scope, with every grant.
type Holder struct {
	Kind      string  `json:"kind"` // User, Group, ServiceAccount
	Name      string  `json:"name"`
	Namespace string  `json:"namespace"` // of a service account
	Scope     string  `json:"scope"`     // "cluster", or "namespace:" and its name
	Grants    []Grant `json:"grants"`    // all that allow it there
}

// WhoCanRequest asks whom RBAC grants a request at a moment: every user, group and service account, with every grant. It names either a
// resource or a path. An unknown resource without a group, a resource that rules name in several groups, and a misspelt verb are refused
// (400): the answer would be to another question, as is a namespace that is not there and is spelt much like another (404). The group
// system:masters is always in the answer, with a grant of kind superuser that has no binding and no role.
type WhoCanRequest struct {
	Asks[WhoCanAnswer] `question:"who-can"`
	Cluster            string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"cluster the question is about (default: the only one there is)"`
	Verb               string    `json:"verb" required:"true" help:"verb of the request"`
	Resource           string    `json:"resource" help:"RESOURCE, RESOURCE.GROUP, and with a subresource RESOURCE[.GROUP]/SUBRESOURCE or RESOURCE/SUBRESOURCE.GROUP; without a group it is that of Kubernetes' own resource of the name, or the one in which rules name it; a dot at the end is always the core group; short names, singulars and kinds are read as kubectl reads them"`
	Namespace          string    `json:"namespace" short:"n" help:"count what is granted in this namespace as well"`
	AllNamespaces      bool      `json:"allNamespaces" short:"A" help:"count what is granted in any namespace, and say where"`
	Name               string    `json:"name" help:"name of the object; without it only rules for every name count"`
	Path               string    `json:"path" help:"path of the request, where it is about no resource"`
	At                 time.Time `json:"at" help:"moment the question is about, such as 2026-11-20T11:36:00Z (default: the newest that is known)"`
}

// access returns the request that is asked about.
func (r *WhoCanRequest) access() AccessRequest {
	return AccessRequest{Verb: r.Verb, Namespace: r.Namespace, AllNamespaces: r.AllNamespaces, Name: r.Name, Path: r.Path}
}

func (r WhoCanRequest) check() error {
	one := r.access()
	return one.check(r.Resource)
}

// WhoCan answers whom RBAC grants a request.
func (a *Service) WhoCan(ctx context.Context, q WhoCanRequest) (out WhoCanAnswer, err error) {
	view, policy, err := a.policy(ctx, q.Cluster, q.At)
	if err != nil {
		return out, err
	}
	out = WhoCanAnswer{Cluster: q.Cluster, Policy: policy, AccessRequest: q.access(), Subjects: []Holder{}}
	r, hints, err := out.request(q.Resource, view.RBAC)
	if err != nil {
		return out, err
	}
	absent, err := a.noNamespace(ctx, q.Cluster, q.Namespace, view.RBAC, q.At)
	if err != nil {
		return out, err
	}
	if out.Hints = hints; absent != "" {
		out.Hints = append(out.Hints, absent)
	}
	out.doubt(view.Doubts(out.Namespace, out.AllNamespaces))
	// Without a namespace those of all are only counted.
	for _, acc := range view.RBAC.WhoCan(&r, out.Namespace == "") {
		if acc.Namespace != "" && out.Namespace == "" && !out.AllNamespaces {
			out.InNamespaces++
			continue
		}
		s := acc.Subject()
		h := Holder{Kind: s.Kind, Name: s.Name, Namespace: s.Namespace, Scope: "cluster", Grants: make([]Grant, 0, len(acc.Grants)+1)}
		if acc.Namespace != "" {
			h.Scope = "namespace:" + acc.Namespace
		}
		if acc.Superuser {
			h.Grants = append(h.Grants, superuser(acc.Name))
		}
		for _, g := range acc.Grants {
			h.Grants = append(h.Grants, sourceOf(g))
		}
		out.Subjects = append(out.Subjects, h)
	}
	return out, nil
}
