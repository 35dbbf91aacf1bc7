package state

import (
	"slices"
	"strconv"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// View is the cluster's RBAC state as of a time. It is immutable; the slices are shared and must not be modified.
//
// RBAC holds what is known. An allow found in it is certain; a refusal is certain only if nothing in Unknown or UnknownKinds could have
// allowed the request, and Most does not.
type View struct {
	// RBAC is the index. Its objects carry names and meaning only: State.Version tells uid and resourceVersion.
	RBAC *rbacindex.Snapshot
	// Unknown lists objects whose content is not known, sorted by kind, namespace, name. They are not in RBAC. A key without a Name stands
	// for objects of that kind whose names are not known, in that namespace.
	Unknown []rbacindex.Key
	// Doubted lists objects that have one of two contents, or one or none, as a write of theirs may not have been done; and those known in
	// part. RBAC has what holds either way, Most what may hold; Most is nil if nothing is doubted. Sorted as Unknown.
	Doubted []rbacindex.Key
	Most    *rbacindex.Snapshot
	parts   []rbacindex.Key // those of Doubted that hold more than is known
	// UnknownKinds lists the kinds of which the State may not know all objects: before the first complete listing, and during gaps.
	UnknownKinds []rbacindex.Kind
	// At is the moment from which the view was certainly in force: when the newest change
	// in it was done. Zero for a view before every change.
	At time.Time
	// Changed names, in a window, the versions that make this view differ from the one before it; nil in the first.
	Changed []Version
}

// Certain reports whether nothing in the view is unknown.
func (v *View) Certain() bool {
	return len(v.Unknown) == 0 && len(v.UnknownKinds) == 0 && v.Most == nil
}

// IsDoubted reports whether the content of an object is bounded: it is one of two, both of which are known, or a part of it is.
func (v *View) IsDoubted(k rbacindex.Key) bool {
	_, found := slices.BinarySearchFunc(v.Doubted, k, compareKeys)
	return found
}

// IsUnknown reports whether the content of an object is unknown in this view: it is listed itself, or doubted, or it is not in RBAC and
// could be one of those listed without a name.
func (v *View) IsUnknown(k rbacindex.Key) bool {
	if v.IsDoubted(k) {
		return true
	}
	if _, found := slices.BinarySearchFunc(v.Unknown, k, compareKeys); found {
		return true
	}
	if _, known := v.RBAC.Get(k); known {
		return false
	}
	if slices.Contains(v.UnknownKinds, k.Kind) || v.mayStandIn(k) {
		return true
	}
	_, found := slices.BinarySearchFunc(v.Unknown, rbacindex.Key{Kind: k.Kind, Namespace: k.Namespace}, compareKeys)
	return found
}

// Doubts returns what is not known and could grant somebody more than RBAC does: bindings, and roles that a known binding names. With a
// namespace, RoleBindings there count beside ClusterRoleBindings, with everywhere those of all namespaces. A key without a Name is as in
// Unknown; without a Namespace too it stands for all objects of the kind. Sorted, each once.
func (v *View) Doubts(namespace string, everywhere bool) []rbacindex.Key {
	if v.Certain() {
		return nil
	}
	counts := func(k rbacindex.Key) bool {
		switch k.Kind {
		case rbacindex.KindClusterRoleBinding:
			return true
		case rbacindex.KindRoleBinding:
			return everywhere || namespace != "" && (k.Namespace == namespace || k.Namespace == "")
		}
		return false
	}
	var out []rbacindex.Key
	add := func(k rbacindex.Key) {
		if counts(k) {
			out = append(out, k)
		}
	}
	for _, kind := range v.UnknownKinds {
		add(rbacindex.Key{Kind: kind})
	}
	for _, k := range v.Unknown {
		add(k)
	}
	for _, k := range v.Doubted {
		if add(k); k.Kind == rbacindex.KindRole || k.Kind == rbacindex.KindClusterRole {
			v.Most.ReferencingRole(k, func(binding rbacindex.Key) bool {
				if counts(binding) {
					out = append(out, k)
					return false
				}
				return true
			})
		}
	}
	v.RBAC.Dangling(func(role, binding rbacindex.Key) bool {
		if counts(binding) && v.IsUnknown(role) {
			out = append(out, role)
		}
		return true
	})
	slices.SortFunc(out, compareKeys)
	return slices.Compact(out)
}

// Blind returns the roles and bindings of unknown content: bindings that could name any role and anybody, and those that affect only what
// one role gives or could give.
func (v *View) Blind() (anybody, role []rbacindex.Key) {
	for _, k := range v.Unknown {
		if k.Kind == rbacindex.KindClusterRoleBinding || k.Kind == rbacindex.KindRoleBinding {
			anybody = append(anybody, k)
		} else {
			role = append(role, k)
		}
	}
	return anybody, append(role, v.Doubted...)
}

// Version names one version of an object, or its absence, with the bounds of the moment it became effective.
type Version struct {
	Resource        string // group resource
	Namespace, Name string
	UID             string // "" when not known
	ResourceVersion string // "" when not known
	Deleted         bool   // the object was absent from then on
	Unknown         bool   // its content is not known from then on
	// Assumed versions are not bracketed by an observed write: a listed object held back to its creation, an end inferred from a listing.
	Assumed             bool
	NotBefore, NotAfter time.Time
}

// String returns the version in one line, for causes: resource, name, what happened to it.
func (v Version) String() string {
	s := v.Resource + " "
	switch {
	case v.Name == "" && v.Namespace == "":
		s += "(all)"
	case v.Name == "":
		s += v.Namespace + "/(unnamed)"
	case v.Namespace != "":
		s += v.Namespace + "/" + v.Name
	default:
		s += v.Name
	}
	switch {
	case v.Unknown:
		s += " unknown"
	case v.Deleted && v.Name == "":
		s += " known"
	case v.Deleted:
		s += " deleted"
	case v.ResourceVersion != "":
		s += " at resourceVersion " + v.ResourceVersion
	default:
		s += " written"
	}
	if !v.NotAfter.IsZero() {
		s += " by " + v.NotAfter.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	return s
}

// version describes a step.
func (s *step) version(k kept.Key) Version {
	v := Version{
		Resource: k.Resource.String(), Namespace: k.Namespace, Name: k.Name, UID: s.uid,
		Deleted: s.phase == phaseAbsent, Unknown: s.phase == phaseUnknown, Assumed: s.assumed,
		NotBefore: instant.Time(s.nb), NotAfter: instant.Time(s.na),
	}
	if s.rv != 0 {
		v.ResourceVersion = strconv.FormatUint(s.rv, 10)
	}
	return v
}

// RBAC returns the view at a moment: every write that was done by then.
func (s *State) RBAC(at time.Time) View {
	tl := s.timeline.Load()
	if n := s.before(instant.Of(at)); n != nil {
		return n.RBAC(at)
	}
	return s.views.cell(tl, tl.at(instant.Of(at))).views[0]
}

// Prepare derives the newest view, after many observations, so that the next question need not pay for indexing a listing.
func (s *State) Prepare() {
	tl := s.timeline.Load()
	if tl.last != nil {
		s.views.cell(tl, position{len(tl.full), len(tl.last.entries)})
	}
}

// RBACWindow returns every distinct view that may have been in force between from and to,
// the one at from first, then one more after each change that may have become effective
// in the window, in the order in which they were done. The caller accounts for the apiserver's cache lag by an earlier from.
//
// Before the horizon everything is unknown; what is known becomes known there, in one change.
//
// If nothing changed, which is the rule, it searches and allocates nothing. The slice may be shared and must not be modified.
func (s *State) RBACWindow(from, to time.Time) []View {
	tl := s.timeline.Load()
	if n := s.before(instant.Of(from)); n != nil {
		return s.windowFromNothing(n, from, to)
	}
	p := tl.at(instant.Of(from))
	base := s.views.cell(tl, p)
	end := instant.Of(to)
	if tl.quiet(p, end) {
		return base.views[:1:1]
	}
	out := []View{base.views[0]}
	contiguous := true
	c := base
	for !tl.quiet(p, end) {
		b := tl.block(p.block)
		if p.entry == len(b.entries) {
			p = position{p.block + 1, 0}
			continue
		}
		e := &b.entries[p.entry]
		p.entry++
		if e.nb > end {
			contiguous = false
			continue
		}
		if contiguous {
			c = s.views.cell(tl, p)
		} else {
			c, _ = c.advance(tl, position{p.block, p.entry - 1}, p)
		}
		v := c.views[0]
		v.Changed = []Version{e.step.version(e.key)}
		out = append(out, v)
	}
	return out
}

// windowFromNothing is RBACWindow from a moment before the horizon: first a view in which
// everything is unknown, and, when the window reaches it, those since the horizon.
func (s *State) windowFromNothing(nothing *State, from, to time.Time) []View {
	out := []View{nothing.RBAC(from)}
	if horizon := s.Horizon(); !to.Before(horizon) {
		since := slices.Clone(s.RBACWindow(horizon, to))
		since[0].Changed = []Version{{Resource: "rbac.authorization.k8s.io", Deleted: true, Assumed: true, NotBefore: horizon,
			NotAfter: horizon}}
		out = append(out, since...)
	}
	return out
}
