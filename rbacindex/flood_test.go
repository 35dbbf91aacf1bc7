package rbacindex

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// met tells how many subjects f worked out while fn ran.
func met(f *family, fn func()) int {
	before := f.serial.Load()
	fn()
	return int(f.serial.Load() - before)
}

// TestSmallSubjectsAfterLargeOnes fills the cache with subjects in hundreds of groups, and
// then asks for ordinary ones, of which all fit: they must be found again. When the large ones
// kept the sets from growing, the small ones drove each other out.
func TestSmallSubjectsAfterLargeOnes(t *testing.T) {
	f := newFamily(8 << 20)
	s, err := f.build(cachePolicy(1))
	if err != nil {
		t.Fatal(err)
	}
	groups := make([]string, 300)
	for i := range groups {
		groups[i] = fmt.Sprint("a-group-with-a-name-of-its-own-", i)
	}
	for i := range 2000 {
		s.subject(fmt.Sprint("large-", i), groups)
	}
	if bytes, _ := f.cache.held(); bytes < 7<<20 {
		t.Fatalf("%d bytes held: the large ones do not fill the cache", bytes)
	}
	const small = 4000
	ask := func() {
		for i := range small {
			s.subject(fmt.Sprint("small-", i), nil)
		}
	}
	ask()
	if missed := met(f, ask); missed > small/100 {
		t.Errorf("missed %d of %d", missed, small)
	}
}

// manyRoles gives group "all" a role each for many resources, so that its members need a table
// of their own.
func manyRoles(n int) []any {
	var out []any
	for i := range n {
		name := fmt.Sprint("r-", i)
		out = append(out,
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"},
				APIGroups: []string{""}, Resources: []string{name}}}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
				Subjects: []rbacv1.Subject{{Kind: "Group", Name: "all"}}})
	}
	return out
}

// TestTablesOfManyRolesAreShared: members of a group with hundreds of roles hold one table,
// which counts once, and is let go with the last of them.
func TestTablesOfManyRolesAreShared(t *testing.T) {
	f := newFamily(1 << 20)
	s, err := f.build(manyRoles(200))
	if err != nil {
		t.Fatal(err)
	}
	first := s.subject("first", []string{"all"})
	table := first.own.merged
	if table == nil {
		t.Fatal("no table")
	}
	for i := range 100 {
		e := s.subject(fmt.Sprint("user-", i), []string{"all"})
		if e.own.merged != table {
			t.Fatalf("user-%d has a table of its own", i)
		}
		if bytes, _ := f.cache.held(); bytes != f.cache.bytes {
			t.Fatalf("%d bytes held, %d counted", bytes, f.cache.bytes)
		}
	}
	if table.uses != f.cache.live || table.uses < 90 { // a full set may have lost one
		t.Errorf("%d uses by %d entries", table.uses, f.cache.live)
	}
	for i := range 10_000 { // strangers drive them out
		s.subject(fmt.Sprint("stranger-", i), nil)
	}
	if table.uses != 0 || f.cache.merged(table.merged).Load() != nil {
		t.Errorf("%d uses after all members are gone, or still to be found", table.uses)
	}
	if bytes, _ := f.cache.held(); bytes != f.cache.bytes || bytes > 1<<20 {
		t.Errorf("%d bytes held, %d counted", bytes, f.cache.bytes)
	}
	edited := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r-7"}}
	next, err := s.Apply(Change{Key: Key{Kind: KindClusterRole, Name: "r-7"}, Object: edited})
	if err != nil {
		t.Fatal(err)
	}
	again := s.subject("user-1", []string{"all"})
	if e := next.subject("user-1", []string{"all"}); e.own.merged == again.own.merged {
		t.Error("a version with another role has the old table")
	}
}

// TestNamespacesWithNothingAreNotRemembered: one subject that goes through very many
// namespaces leaves the cache as it was.
func TestNamespacesWithNothingAreNotRemembered(t *testing.T) {
	f := newFamily(1 << 20)
	objects := cachePolicy(5)
	for _, ns := range []string{"a", "b"} { // in several, so that it has no home
		objects = append(objects, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "walker"},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "list"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "walker"}}})
	}
	s, err := f.build(objects)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ns string) bool {
		return s.Authorize(&Attributes{User: "walker", Verb: "list", Resource: "pods", ResourceRequest: true, Namespace: ns}, nil).Allowed
	}
	if !ask("a") || !ask("b") {
		t.Fatal("denied where a binding allows")
	}
	_, before := f.cache.held()
	for i := range 5000 {
		if ask(fmt.Sprint("ns-", i)) {
			t.Fatalf("allowed in ns-%d", i)
		}
	}
	if _, after := f.cache.held(); after != before {
		t.Errorf("%d entries, %d before", after, before)
	}
	if !ask("a") || !ask("b") {
		t.Fatal("denied where a binding allows")
	}
}

// TestEntryLines holds the layout that approach counts on: what it touches are lines of 64
// bytes, and an entry takes no more than the size class of 448.
func TestEntryLines(t *testing.T) {
	var e entry
	if n := unsafe.Sizeof(e); n > 448 {
		t.Errorf("an entry has %d bytes", n)
	}
	for name, at := range map[string]uintptr{
		"own": unsafe.Offsetof(e.own), "units": unsafe.Offsetof(e.units), "refs": unsafe.Offsetof(e.refs),
		"home": unsafe.Offsetof(e.home), "text": unsafe.Offsetof(e.text),
	} {
		if unsafe.Sizeof(at) == 8 && at%64 != 0 {
			t.Errorf("%s begins at %d", name, at)
		}
	}
}

// TestReadersShareTables lets readers ask versions with and without one rule while subjects of
// many roles come, go and pass their tables on.
func TestReadersShareTables(t *testing.T) {
	f := newFamily(256 << 10) // a few dozen of them
	with, err := f.build(manyRoles(40))
	if err != nil {
		t.Fatal(err)
	}
	key := Key{Kind: KindClusterRole, Name: "r-7"}
	had, _ := with.Get(key)
	var versions []*Snapshot
	for i, cur := 0, with; i < 8; i++ {
		versions = append(versions, cur)
		ch := Change{Key: key, Object: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r-7"}}}
		if i%2 == 1 {
			ch.Object = had
		}
		if cur, err = cur.Apply(ch); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for r := range 4 {
		wg.Go(func() {
			buf := make([]Grant, 0, 8)
			for i := range 4000 {
				v := (i*7 + r) % len(versions)
				a := Attributes{User: fmt.Sprint("user-", (i*13+r)%200), Groups: []string{"all"}, Verb: "get", Resource: "r-7",
					ResourceRequest: true}
				if got := versions[v].Authorize(&a, buf).Allowed; got != (v%2 == 0) {
					t.Errorf("version %d: allowed=%t", v, got)
					return
				}
			}
		})
	}
	wg.Wait()
	if bytes, _ := f.cache.held(); bytes != f.cache.bytes || bytes > 256<<10 {
		t.Errorf("%d bytes held, %d counted", bytes, f.cache.bytes)
	}
}
