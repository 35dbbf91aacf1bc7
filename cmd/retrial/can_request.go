package main

import (
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// decisionJSON is whether a subject may make one request.
type decisionJSON struct {
	questionJSON
	// Allowed is "yes", "no", or "unknown": nothing known allows it and something is not known.
	Allowed string       `json:"allowed"`
	Grants  []sourceJSON `json:"grants"`
	// Nearest says what would have allowed it; null when it is allowed.
	Nearest *nearestJSON `json:"nearest,omitempty"`
	// Bind is whether it may bind the role, when that was asked.
	Bind *bindJSON `json:"bind,omitempty"`
}

// yes tells whether the subject may do what was asked.
func (d *decisionJSON) yes() bool {
	return d.Allowed == "yes" || d.Bind != nil && d.Bind.Allowed == "yes"
}

// nearestJSON is what would have allowed a request.
type nearestJSON struct {
	Rule     rbacv1.PolicyRule `json:"rule"`     // the narrowest that does
	Roles    []offerJSON       `json:"roles"`    // that exist and allow it, the narrowest first
	Bindings []offerJSON       `json:"bindings"` // that allow it to others
	Almost   []almostJSON      `json:"almost"`   // rules the subject has that lack one thing
}

type offerJSON struct {
	Binding string `json:"binding,omitempty"`
	Role    string `json:"role"`
	Rule    int    `json:"rule"`
}

type almostJSON struct {
	sourceJSON
	Lacks string `json:"lacks"` // verb, name, subresource, group, namespace
}

// mostNearest bounds the lists of what would have allowed a request.
const mostNearest = 10

// decide answers for one request.
func (out *canJSON) decide(view *state.View, one questionJSON, word string) error {
	r, hints, err := one.request(word, view.RBAC)
	if err != nil {
		return err
	}
	out.Hints = append(out.Hints, hints...)
	r.User, r.Groups = out.Subject, out.Groups
	d := decisionJSON{questionJSON: one, Allowed: "yes", Grants: []sourceJSON{}}
	out.Request = &d
	if out.Superuser {
		d.Grants = append(d.Grants, sourceJSON{Subject: "Group/" + groupMasters, Kind: kindSuperuser})
	}
	res := view.RBAC.Authorize(&r, nil)
	for _, g := range res.Grants {
		d.Grants = append(d.Grants, sourceOf(g))
	}
	named := map[rbacindex.Key]bool{}
	for _, k := range res.Missing {
		named[k] = true
	}
	out.doubtOwn(view.Doubts(r.Namespace, false), named)
	d.Bind = bindOf(view.RBAC, &r, len(out.Missing) == 0)
	if len(d.Grants) > 0 {
		return nil
	}
	d.Allowed = "no"
	if len(out.Missing) > 0 {
		d.Allowed = "unknown"
	}
	d.Nearest = nearestOf(view.RBAC.NearestMiss(&r, mostNearest))
	return nil
}

func nearestOf(m rbacindex.Miss) *nearestJSON {
	n := nearestJSON{Rule: m.Rule, Roles: []offerJSON{}, Bindings: []offerJSON{}, Almost: []almostJSON{}}
	for _, o := range m.Roles {
		n.Roles = append(n.Roles, offerJSON{Role: o.Role.String(), Rule: o.Rule})
	}
	for _, o := range m.Bindings {
		n.Bindings = append(n.Bindings, offerJSON{Binding: o.Key.String(), Role: o.Role.String(), Rule: o.Rule})
	}
	for _, x := range m.Almost {
		n.Almost = append(n.Almost, almostJSON{sourceOf(x.Grant), x.Lack.String()})
	}
	return &n
}

// text is the question in words.
func (out *questionJSON) text() string {
	if out.Path != "" {
		return out.Verb + " " + out.Path
	}
	r := resourceWord{name: out.Resource, group: out.Group, sub: out.Subresource}
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
