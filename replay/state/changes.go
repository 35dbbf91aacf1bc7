package state

import (
	"maps"
	"slices"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/instant"
)

// Changes says how a cluster's RBAC changed between two moments.
type Changes struct {
	// From and To are the views at the two moments. A change is certain only as far as both views are (View.Doubts).
	From, To View
	// Keys are the objects whose known content differs between the two, sorted.
	Keys []rbacindex.Key

	versions map[rbacindex.Key][]Version
}

// Changes returns what changed from one moment to another, which must not be before it; rbacindex.Snapshot.Differences of the two views
// says what the objects of Keys gave and give. Its cost grows with the changes between the two, not with the policy. Nothing is known of a
// moment before the horizon.
func (s *State) Changes(from, to time.Time) Changes {
	tl := s.timeline.Load()
	p, end := tl.at(instant.Of(from)), tl.at(instant.Of(to))
	c := Changes{From: s.views.cell(tl, p).views[0], To: s.views.cell(tl, end).views[0], versions: map[rbacindex.Key][]Version{}}
	if n := s.before(instant.Of(to)); n != nil {
		return n.Changes(from, to)
	}
	if n := s.before(instant.Of(from)); n != nil {
		c.From = n.RBAC(from)
	}
	for p.block < end.block || p.block == end.block && p.entry < end.entry {
		b := tl.block(p.block)
		if p.entry == len(b.entries) {
			p = position{p.block + 1, 0}
			continue
		}
		e := &b.entries[p.entry]
		p.entry++
		key := e.key.RBAC()
		c.versions[key] = append(c.versions[key], e.step.version(e.key))
	}
	for key := range c.versions {
		was, _ := c.From.RBAC.Get(key)
		if is, _ := c.To.RBAC.Get(key); was != is {
			c.Keys = append(c.Keys, key)
		}
	}
	slices.SortFunc(c.Keys, compareKeys)
	return c
}

// Touched returns the objects with any change between the two moments, sorted: of those that Keys has not, the content is as it was.
func (c *Changes) Touched() []rbacindex.Key {
	return slices.SortedFunc(maps.Keys(c.versions), compareKeys)
}

// Versions returns the changes of an object between the two moments, oldest first: writes, deletions, and versions known only to have been
// there by then. The result must not be modified.
func (c *Changes) Versions(k rbacindex.Key) []Version { return c.versions[k] }

// Causes returns the changed objects by which a rule is or was held: its bindings and their roles, sorted. There is always one, since a
// rule whose binding and role did not change is held on both sides.
func (c *Changes) Causes(rule *rbacindex.ChangedRule) []rbacindex.Key {
	var out []rbacindex.Key
	for _, by := range rule.By {
		for _, k := range []rbacindex.Key{by.BindingKey(), by.RoleKey()} {
			if _, changed := slices.BinarySearchFunc(c.Keys, k, compareKeys); changed {
				out = append(out, k)
			}
		}
	}
	slices.SortFunc(out, compareKeys)
	return slices.Compact(out)
}
