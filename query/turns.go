package query

import (
	"cmp"
	"context"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// turn is a request that RBAC refuses, and the change since which it does.
type turn struct {
	at    time.Time
	attrs rbacindex.Attributes
	// allowed: by the policy of its own moment it is not refused.
	allowed bool
	// lost are the changes at the last moment before which it was allowed; none: it never was, as far as was looked back.
	lost []change
	gone bool // its namespace was not there
	// unknown: the policy changed too often to be asked about it.
	unknown bool
}

// change is one version of one object.
type change struct {
	key rbacindex.Key
	v   state.Version
}

// Bounds of looking back: how many moments at which the policy changed, and how many times requests are decided in all.
const (
	mostMoments = 20_000
	mostDecided = 2_000_000
)

// moments are the changes of a policy between two moments, oldest first, those that came into force together in one.
func moments(st *state.State, from, to time.Time) (out [][]change) {
	var all []change
	c := st.Changes(from, to)
	for _, k := range c.Touched() {
		for _, v := range c.Versions(k) {
			all = append(all, change{k, v})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int {
		return cmp.Or(a.v.NotAfter.Compare(b.v.NotAfter), a.key.Compare(b.key))
	})
	for _, x := range all {
		if n := len(out); n > 0 && out[n-1][0].v.NotAfter.Equal(x.v.NotAfter) {
			out[n-1] = append(out[n-1], x)
			continue
		}
		out = append(out, []change{x})
	}
	return out
}

// looking asks at every moment about the requests that its changes may concern.
type looking struct {
	list    []*turn
	users   map[string][]int // of list
	groups  map[string][]int
	before  [][]rbacindex.Key // by which objects each was allowed when it was asked last
	decided int
	buf     []rbacindex.Grant
}

// look finds for every request the last change since which it is refused, among those since a moment. It returns the moment it looked back
// to: a later one, where the policy changed too often.
func look(ctx context.Context, st *state.State, since time.Time, list []*turn) (from time.Time, err error) {
	var last time.Time
	for _, t := range list {
		if t.at.After(last) {
			last = t.at
		}
	}
	var all [][]change
	if last.After(since) {
		all = moments(st, since, last)
	}
	if len(all) > mostMoments {
		all = all[len(all)-mostMoments:]
		since, all = all[0][0].v.NotAfter, all[1:]
	}
	l := looking{list: list, users: map[string][]int{}, groups: map[string][]int{}, before: make([][]rbacindex.Key, len(list))}
	view := st.RBAC(since)
	for i, t := range list {
		l.users[t.attrs.User] = append(l.users[t.attrs.User], i)
		for _, g := range t.attrs.Groups {
			l.groups[g] = append(l.groups[g], i)
		}
		l.decide(i, &view, since, nil)
	}
	for _, changed := range all {
		at := changed[0].v.NotAfter
		next := st.RBAC(at)
		for i := range l.concerned(changed, view.RBAC, next.RBAC) {
			l.decide(i, &next, at, changed)
		}
		view = next
		if err := ctx.Err(); err != nil {
			return since, err
		}
	}
	for i, t := range list {
		t.allowed = l.before[i] != nil
		t.unknown = t.unknown || t.at.Before(since)
	}
	return since, nil
}

// decide asks about a request at a moment; changed are the changes that came into force then.
func (l *looking) decide(i int, view *state.View, at time.Time, changed []change) {
	t := l.list[i]
	if at.After(t.at) {
		return
	}
	if l.decided++; l.decided > mostDecided {
		t.unknown = true
		return
	}
	res := view.RBAC.Authorize(&t.attrs, l.buf[:0])
	l.buf = res.Grants
	if len(res.Grants) == 0 && l.before[i] != nil {
		t.lost = causing(changed, l.before[i])
	}
	l.before[i] = nil
	for _, g := range res.Grants {
		l.before[i] = append(l.before[i], g.BindingKey(), g.RoleKey())
	}
}

// concerned returns the requests that changes may concern: those of whom the changed bindings name, and the bindings to changed roles.
func (l *looking) concerned(changed []change, views ...*rbacindex.Snapshot) map[int]bool {
	out := map[int]bool{}
	for _, policy := range views {
		add := func(k rbacindex.Key) bool {
			object, _ := policy.Get(k)
			subjects, _, _ := rbacindex.BindingOf(object)
			for i := range subjects {
				s := &subjects[i]
				of := l.users[rbacindex.UserOf(s, k.Namespace)]
				if s.Kind == rbacv1.GroupKind {
					of = l.groups[s.Name]
				}
				for _, i := range of {
					out[i] = true
				}
			}
			return true
		}
		for _, c := range changed {
			if c.key.Kind == rbacindex.KindRole || c.key.Kind == rbacindex.KindClusterRole {
				policy.ReferencingRole(c.key, add)
				continue
			}
			add(c.key)
		}
	}
	return out
}

// causing returns the changes of some objects, all when there is none of them.
func causing(changed []change, of []rbacindex.Key) []change {
	var out []change
	for _, c := range changed {
		if slices.Contains(of, c.key) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return changed
	}
	return out
}
