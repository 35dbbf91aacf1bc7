package state

import (
	"slices"
	"sort"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// Effect is a change of what a State answers about one object, or about the unnamed objects of a scope: requests judged with an earlier
// answer in [From, To] may have to be judged again, those of the affected subjects only.
type Effect struct {
	Resource        string
	Namespace, Name string // an empty Name stands for a scope: the namespace, or everything
	// From and To bound the stretch in which answers changed. The zero From is the
	// beginning of time; the zero To means that the change holds until now.
	From, To time.Time
	// Before and After are what the State said, and says, of the object at the beginning
	// of the stretch: *rbacv1.Role, *rbacv1.ClusterRole, *rbacv1.RoleBinding,
	// *rbacv1.ClusterRoleBinding, or nil when absent, unknown or not an RBAC object.
	Before, After any
	// Credential is the id of the credential the effect concerns: only what was done with it
	// may have to be judged again. Subjects are then nobody.
	Credential string

	subjects Subjects
}

// Subjects says whose requests an Effect concerns.
type Subjects struct {
	All    bool     // everybody; Users and Groups are then empty
	Users  []string // user names, service accounts by their user name; sorted
	Groups []string // sorted
	// AllNamespaces: requests in every namespace and outside; else only those in Namespaces, sorted.
	AllNamespaces bool
	Namespaces    []string
}

// Subjects returns whose requests the effect concerns: for a binding the subjects it had and has in the stretch, for a role those of the
// bindings that name it, for unknown content everybody it could concern.
func (e Effect) Subjects() Subjects { return e.subjects }

// effect describes the difference between an object's old line and its present one: all but the first head and the last tail steps.
func (s *State) effect(obj *object, old []step, head, tail int) Effect {
	k, line := obj.key, obj.line
	e := Effect{Resource: k.Resource.String(), Namespace: k.Namespace, Name: k.Name}
	from := differ(&e, old, line, head, tail)
	// What was in force before the first difference stayed so in one of the two.
	lo := max(0, head-1)
	was, is := old[lo:len(old)-tail], line[lo:len(line)-tail]
	if k.Resource.RBACKind() != 0 {
		e.Before, e.After = objectAt(old, from), objectAt(line, from)
	}
	var g gather
	switch k.Resource {
	case kept.ResRoleBinding, kept.ResClusterRoleBinding:
		g.steps(k, was)
		g.steps(k, is)
	case kept.ResRole, kept.ResClusterRole:
		if k.Name == "" {
			g.all(k)
			break
		}
		for b := range s.refs[k] {
			// An unknown binding grants nothing, whatever its role says.
			for _, st := range s.objects[b.Resource][b].line {
				g.content(b, st.content)
				g.content(b, st.Most)
			}
		}
	case kept.ResNamespace:
		g.s.All = true
		g.s.AllNamespaces = k.Name == ""
		if k.Name != "" {
			g.s.Namespaces = []string{k.Name}
		}
	case kept.ResServiceAccount:
		if k.Name == "" {
			g.all(k)
			break
		}
		g.s.AllNamespaces = true
		g.s.Users = []string{kubenames.ServiceAccount(k.Namespace, k.Name)}
	default:
		s.concerned(&g, k, was, is)
	}
	e.subjects = g.done()
	return e
}

// objectAt returns the object that a line shows right after the change at a moment.
func objectAt(line []step, at int64) any {
	i := sort.Search(len(line), func(i int) bool { return line[i].nb > at })
	if i == 0 || line[i-1].content == nil {
		return nil
	}
	return line[i-1].content.Object
}

// gather collects subjects.
type gather struct{ s Subjects }

// all adds everybody in a key's scope.
func (g *gather) all(k kept.Key) {
	g.s.All = true
	g.scope(k)
}

// scope adds the namespaces a binding reaches.
func (g *gather) scope(k kept.Key) {
	if k.Namespace == "" {
		g.s.AllNamespaces = true
		return
	}
	g.s.Namespaces = append(g.s.Namespaces, k.Namespace)
}

// steps adds the subjects of a binding's steps.
func (g *gather) steps(k kept.Key, steps []step) {
	for i := range steps {
		if steps[i].phase == phaseUnknown && steps[i].Most == nil || k.Name == "" {
			g.all(k)
			continue
		}
		g.content(k, steps[i].content)
		g.content(k, steps[i].Most)
	}
}

// content adds the subjects of one version of a binding.
func (g *gather) content(k kept.Key, c *content.Content) {
	subjects, _, ok := c.Binding()
	if !ok {
		return
	}
	g.content(k, c.Or)
	g.scope(k)
	for i := range subjects {
		switch sub := &subjects[i]; sub.Kind {
		case rbacv1.UserKind:
			g.s.Users = append(g.s.Users, sub.Name)
		case rbacv1.GroupKind:
			if sub.Name == content.GroupAnybody {
				g.s.All = true
			}
			g.s.Groups = append(g.s.Groups, sub.Name)
		case rbacv1.ServiceAccountKind:
			ns := sub.Namespace
			if ns == "" {
				ns = k.Namespace
			}
			if ns != "" {
				g.s.Users = append(g.s.Users, kubenames.ServiceAccount(ns, sub.Name))
			}
		}
	}
}

// done sorts the subjects and removes duplicates.
func (g *gather) done() Subjects {
	s := g.s
	for _, list := range []*[]string{&s.Users, &s.Groups, &s.Namespaces} {
		slices.Sort(*list)
		*list = slices.Clip(slices.Compact(*list))
	}
	if s.All {
		s.Users, s.Groups = nil, nil
	}
	if s.AllNamespaces {
		s.Namespaces = nil
	}
	return s
}
