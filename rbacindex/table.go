package rbacindex

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
)

// table is the compiled form of the rules of one role, or of several roles together: from what a
// rule names, (group, resource) or a path or a path prefix, to the rules that name it. A request
// looks up the few keys that could match it, so its cost does not grow with the number of rules. A
// table is immutable, but for the count of the cache.
type table struct {
	has   shape    // which key shapes occur, so that a request asks only for those
	slots []uint64 // open addressing over cells: half of the hash, and cell index + 1; 0 = free
	cells []cell
	roles []*role

	entries int // what it took of the room there was
	// Of a table made for a scope of many roles: the hash of those, the bytes it takes, and
	// how many entries of the cache hold it, for the cache's writers only.
	merged uint64
	bytes  int64
	uses   int

	// prefixes are the distinct lengths of the path prefixes, ascending.
	prefixes []int
	// names are the resourceNames of rules that have too many to enter one by one.
	names []map[string]struct{}
	// wide are rules that there was no room for; they are evaluated one by one, with hits of verb
	// set by set.
	wide []hit
}

// shape is the kind of a cell.
type shape uint8

const (
	shapeExact    shape = 1 << iota // group, resource (or resource/sub, or */sub)
	shapeAnyGroup                   // "*", resource
	shapeAnyRes                     // group, "*"
	shapeAny                        // "*", "*"
	shapeSub                        // a */sub occurs; cells are of shapeExact or shapeAnyGroup
	shapePath
	shapePrefix
	shapeWide

	shapesOfResources = shapeExact | shapeAnyGroup | shapeAnyRes | shapeAny | shapeSub | shapeWide
	shapesOfPaths     = shapePath | shapePrefix | shapeWide
)

// cell is one key and the rules under it. In paths, resource is the path or the prefix.
type cell struct {
	hash     uint64
	group    string
	resource string
	shape    shape
	verbs    verbSet          // union over open
	open     []hit            // rules without resourceNames, or with a set, by (role, rule)
	named    map[string][]hit // the other rules with resourceNames, by name
}

// hit is a rule found under a key.
type hit struct {
	role, rule int32 // indexes into table.roles and the role's rules
	verbs      verbSet
	names      uint16 // index into table.names + 1, 0 = any name or entered by name
}

// hitGroups, among the verbs of a hit, is not a verb: the key says nothing of the rule's API
// groups, which are still to be compared.
const hitGroups verbSet = 1 << 15

// slotCell are the bits of a slot that name a cell.
const slotCell = 1<<32 - 1

// Salts keep the hashes of the shapes apart.
const (
	saltResource = 0x52
	saltStar     = 0x2a
	saltPath     = 0x50
	saltPrefix   = 0x70
)

// compiling has the memory in which cells are made before their number is known, at most some megabytes: a role of a
// hostile policy has tens of thousands, and a user thousands of roles. Who finds it taken makes another.
var compiling atomic.Pointer[[]cell]

// compile builds the table of the given roles, of no more than room entries.
func compile(h *hasher, roles []*role, room int) *table {
	made := compiling.Swap(nil)
	if made == nil {
		made = new([]cell)
	}
	t := &table{roles: roles, slots: make([]uint64, 1), cells: *made}
	c := compiler{t: t, h: h, room: room}
	for ri, r := range roles {
		rules := r.rules()
		for i := range rules {
			c.rule(&rules[i], hit{role: int32(ri), rule: int32(i), verbs: verbsOf(rules[i].Verbs)})
		}
	}
	slices.Sort(t.prefixes)
	t.prefixes = slices.Compact(t.prefixes)
	used := t.cells
	t.cells = append([]cell(nil), used...)
	clear(used)
	*made = used[:0]
	compiling.Store(made)
	return t
}

type compiler struct {
	t    *table
	h    *hasher
	room int // for more entries
}

type cellKey struct {
	shape           shape
	group, resource string
}

// outOfProportion reports whether a product is much more than what it is a product of.
func outOfProportion(a, b int) bool { return a*b > 2*(a+b) }

func (c *compiler) rule(rule *rbacv1.PolicyRule, ht hit) {
	if ht.verbs == 0 {
		return
	}
	groups := rule.APIGroups
	if outOfProportion(len(groups), len(rule.Resources)) && !slices.Contains(groups, rbacv1.APIGroupAll) {
		groups = []string{rbacv1.APIGroupAll}
		ht.verbs |= hitGroups
	}
	keys := len(groups) * len(rule.Resources)
	entries := keys + len(rule.NonResourceURLs) + len(rule.ResourceNames)
	named := keys * len(rule.ResourceNames)
	crowded := named > maxNames || keys > fewKeys && named > fewKeys*fewKeys
	if named > 0 && !crowded {
		entries += keys*entriesOfNames + named
	}
	if entries > c.room || crowded && len(c.t.names) == math.MaxUint16 {
		ht.verbs &^= hitGroups
		c.t.wide = append(c.t.wide, ht)
		c.t.has |= shapeWide
		return
	}
	c.room -= entries
	c.t.entries += entries
	c.resources(rule, groups, ht, crowded)
	ht.verbs &^= hitGroups
	c.paths(rule, ht)
}

const (
	// maxNames bounds the entries by name of one rule, and fewKeys the keys that more than a few
	// are made for.
	maxNames = 1024
	fewKeys  = 8
	// entriesOfNames is how much more a key that distinguishes names costs.
	entriesOfNames = 4
)

// resources enters the resource half of a rule; crowded rules keep their names in one set
// that all their keys share.
func (c *compiler) resources(rule *rbacv1.PolicyRule, groups []string, ht hit, crowded bool) {
	if crowded {
		set := make(map[string]struct{}, len(rule.ResourceNames))
		for _, name := range rule.ResourceNames {
			set[name] = struct{}{}
		}
		c.t.names = append(c.t.names, set)
		ht.names = uint16(len(c.t.names))
	}
	for _, g := range groups {
		for _, r := range rule.Resources {
			cl := c.cell(resourceShape(g, r), g, r)
			if crowded || len(rule.ResourceNames) == 0 {
				cl.open = appendHit(cl.open, ht)
				cl.verbs |= ht.verbs
				continue
			}
			if cl.named == nil {
				cl.named = make(map[string][]hit, len(rule.ResourceNames))
			}
			for _, name := range rule.ResourceNames {
				cl.named[name] = appendHit(cl.named[name], ht)
			}
		}
	}
}

func (c *compiler) paths(rule *rbacv1.PolicyRule, ht hit) {
	for _, u := range rule.NonResourceURLs {
		var cl *cell
		if p := strings.TrimRight(u, "*"); p != u {
			cl = c.cell(shapePrefix, "", p)
			c.t.prefixes = append(c.t.prefixes, len(p))
		} else {
			cl = c.cell(shapePath, "", u)
		}
		cl.open = appendHit(cl.open, ht)
		cl.verbs |= ht.verbs
	}
}

// appendHit leaves out what a repeated string in a rule would enter twice.
func appendHit(hits []hit, h hit) []hit {
	if n := len(hits); n > 0 && hits[n-1] == h {
		return hits
	}
	return append(hits, h)
}

func resourceShape(group, resource string) shape {
	switch {
	case group == rbacv1.APIGroupAll && resource == rbacv1.ResourceAll:
		return shapeAny
	case group == rbacv1.APIGroupAll:
		return shapeAnyGroup
	case resource == rbacv1.ResourceAll:
		return shapeAnyRes
	}
	return shapeExact
}

// cell finds or adds the cell of a key. The pointer is good until the next call.
func (c *compiler) cell(s shape, group, resource string) *cell {
	t, k := c.t, cellKey{s, group, resource}
	hash := c.hash(k)
	mask := uint64(len(t.slots) - 1)
	for at := hash & mask; t.slots[at] != 0; at = (at + 1) & mask {
		if (t.slots[at]^hash)&^slotCell != 0 {
			continue
		}
		if cl := &t.cells[t.slots[at]&slotCell-1]; cl.hash == hash && cl.shape == s && cl.group == group && cl.resource == resource {
			return cl
		}
	}
	t.has |= s
	if s&(shapeExact|shapeAnyGroup) != 0 && strings.HasPrefix(resource, "*/") {
		t.has |= shapeSub
	}
	t.cells = append(t.cells, cell{hash: hash, group: group, resource: resource, shape: s})
	t.slot()
	return &t.cells[len(t.cells)-1]
}

// slot gives the last cell a slot. There are more than half as many again as cells.
func (t *table) slot() {
	first := len(t.cells) - 1
	if most := 1 << bits.Len(uint(len(t.cells))*3/2); most > len(t.slots) {
		t.slots, first = make([]uint64, most), 0
	}
	mask := uint64(len(t.slots) - 1)
	for i := first; i < len(t.cells); i++ {
		at := t.cells[i].hash & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = t.cells[i].hash&^slotCell | uint64(i+1)
	}
}

func (c *compiler) hash(k cellKey) uint64 {
	switch k.shape {
	case shapePath:
		return mix(saltPath, c.h.str(k.resource))
	case shapePrefix:
		return mix(saltPrefix, c.h.str(k.resource))
	}
	group, res := uint64(saltStar), uint64(saltStar)
	if k.group != rbacv1.APIGroupAll {
		group = mix(saltResource, c.h.str(k.group))
	}
	if k.resource != rbacv1.ResourceAll {
		head, tail, sub := strings.Cut(k.resource, "/")
		res = c.h.resource(head, tail, sub)
	}
	return mix(group, res)
}

// resource hashes a resource and its subresource, split at the first slash.
func (h *hasher) resource(head, tail string, sub bool) uint64 {
	x := mix(saltResource, h.str(head))
	if sub {
		x = mix(x, h.str(tail))
	}
	return x
}

// find returns the cell with that hash for which the strings agree.
func (t *table) find(hash uint64, s shape, group, resource, sub string) *cell {
	mask := uint64(len(t.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		slot := t.slots[at]
		if slot == 0 {
			return nil
		}
		if (slot^hash)&^slotCell != 0 {
			continue
		}
		c := &t.cells[slot&slotCell-1]
		if c.hash == hash && c.shape == s && c.group == group && isResource(c.resource, resource, sub) {
			return c
		}
	}
}

// tables counts the entries of the tables that are made once and kept with a role, or with all of
// them, over a family. Policies of any real cluster have room; beyond it rules are evaluated as
// written.
type tables struct {
	room    int64
	entries *atomic.Int64 // by itself, so that a table that is dropped can be counted off
}

func newTables() *tables { return &tables{room: maxEntries, entries: new(atomic.Int64)} }

const (
	// maxEntries bounds the entries of a family's tables, of some 150 bytes each.
	maxEntries = 1 << 19
	// maxRoleEntries bounds those of one role, and with it the time it takes to compile it.
	maxRoleEntries = 1 << 15
	// maxMergedEntries bounds those of a table merged for one subject. It is rebuilt with every
	// change that concerns the subject.
	maxMergedEntries = 1 << 14
)

// make compiles roles within the room there is.
func (f *tables) make(h *hasher, roles []*role, most int) *table {
	entries := f.entries
	room := min(int64(most), f.room-entries.Load())
	t := compile(h, roles, int(max(0, room)))
	n := int64(t.entries)
	entries.Add(n)
	runtime.AddCleanup(t, func(n int64) { entries.Add(-n) }, n)
	return t
}
