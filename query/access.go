package query

import (
	"strconv"

	"github.com/retrial-io/retrial/query/resource"
	"github.com/retrial-io/retrial/rbacindex"
)

// ResourceWord is a resource as people write it.
type ResourceWord = resource.Word

// AccessRequest is the request a question is about, as understood.
type AccessRequest struct {
	Verb          string `json:"verb"`
	Resource      string `json:"resource"`
	Group         string `json:"group"`
	Subresource   string `json:"subresource"`
	Namespace     string `json:"namespace"`
	AllNamespaces bool   `json:"allNamespaces"`
	Name          string `json:"name"`
	Path          string `json:"path"`
}

// check returns an error for a request that makes no sense; word is the resource as it was written.
func (out *AccessRequest) check(word string) error {
	switch {
	case out.Verb == "":
		return Bad("verb is missing")
	case (word == "") == (out.Path == ""):
		return Bad("name either a resource or a path")
	case out.Path != "" && out.Path[0] != '/':
		return Bad("invalid path %q: must begin with a slash", out.Path)
	case out.Path != "" && (out.Namespace != "" || out.Name != "" || out.AllNamespaces):
		return Bad("a path has neither namespace nor name")
	case out.Namespace != "" && out.AllNamespaces:
		return Bad("name either one namespace or all namespaces")
	}
	return nil
}

// request completes a question by the words of a policy's rules.
func (out *AccessRequest) request(word string, policy *rbacindex.Snapshot) (r rbacindex.Attributes, hints []string, err error) {
	named := resource.NamedIn(policy)
	say := func(hint string) {
		if hint != "" {
			hints = append(hints, hint)
		}
	}
	hint, err := named.Verb(out.Verb, word == "")
	if err != nil {
		return r, nil, Bad("verb: %w", err)
	}
	say(hint)
	if word == "" {
		return rbacindex.Attributes{Verb: out.Verb, Path: out.Path}, hints, nil
	}
	res, err := resource.Parse(word)
	if err != nil {
		return r, nil, Bad("resource: %w", err)
	}
	read, err := res.Understand(named)
	if err != nil {
		return r, nil, Bad("resource: %w", err)
	}
	say(read)
	say(named.Hint(&res))
	out.Resource, out.Group, out.Subresource = res.Name, res.Group, res.Sub
	if res.Group == "" && res.Name == "namespaces" && out.Namespace == "" && !out.AllNamespaces {
		out.Namespace = out.Name // as the apiserver reads requests for one namespace
	}
	r = rbacindex.Attributes{ResourceRequest: true, Verb: out.Verb, APIGroup: res.Group, Resource: res.Name, Subresource: res.Sub,
		Namespace: out.Namespace, Name: out.Name}
	return r, hints, nil
}

// Text returns the question in words.
func (out *AccessRequest) Text() string {
	if out.Path != "" {
		return out.Verb + " " + out.Path
	}
	r := ResourceWord{Name: out.Resource, Group: out.Group, Sub: out.Subresource}
	what := out.Verb + " " + r.String()
	if out.Name != "" {
		what += " " + strconv.Quote(out.Name)
	}
	switch {
	case out.AllNamespaces:
		what += " in any namespace"
	case out.Namespace != "":
		what += " in namespace " + out.Namespace
	}
	return what
}
