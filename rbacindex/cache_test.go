package rbacindex

import (
	"fmt"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// everyone may get pods, user-i also list them in namespace ns-i.
func cachePolicy(users int) []any {
	out := []any{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "get"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"},
			APIGroups: []string{""}, Resources: []string{"pods"}}}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "list"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"},
			APIGroups: []string{""}, Resources: []string{"pods"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "all"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "get"},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "all"}}},
	}
	for i := range users {
		out = append(out, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("ns-", i), Name: "b"},
			RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "list"},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: fmt.Sprint("user-", i)}}})
	}
	return out
}

// held sums what the cache holds, by looking.
func (c *cache) held() (bytes int64, entries int) {
	sets := *c.sets.Load()
	bytes = int64(len(sets)) * cacheSetBytes
	tables := map[*table]struct{}{}
	for i := range sets {
		for w := range sets[i].entries {
			if e := sets[i].entries[w].Load(); e != nil {
				bytes += e.size
				entries++
				e.tables(func(t *table) {
					if _, twice := tables[t]; !twice {
						tables[t] = struct{}{}
						bytes += t.bytes
					}
				})
			}
		}
	}
	return bytes, entries
}

func TestCacheStaysWithinItsBytes(t *testing.T) {
	const users, limit = 300, 64 << 10
	f := newFamily(limit)
	s, err := f.build(cachePolicy(users))
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for i := range 20_000 {
		u := i % 5000 // far more subjects than fit, most of them strangers
		a := Attributes{User: fmt.Sprint("user-", u), Groups: []string{"all"}, Verb: "list", Resource: "pods", ResourceRequest: true,
			Namespace: fmt.Sprint("ns-", u%7)}
		if u%3 == 0 {
			a.Namespace = fmt.Sprint("ns-", u)
		}
		want := u < users && a.Namespace == fmt.Sprint("ns-", u)
		if got := s.Authorize(&a, nil).Allowed; got != want {
			t.Fatalf("user-%d in %s: allowed=%t, want %t", u, a.Namespace, got, want)
		}
		if i%500 == 0 {
			bytes, entries := f.cache.held()
			if bytes != f.cache.bytes || bytes > limit {
				t.Fatalf("after %d: %d bytes held, %d counted, limit %d", i, bytes, f.cache.bytes, limit)
			}
			most = max(most, entries)
		}
	}
	if most < 50 {
		t.Errorf("never more than %d entries: the bytes are not used", most)
	}
}

// TestCacheKeepsRegulars asks for a few subjects again and again amid a flood of others that
// come once: the regulars must mostly be found, or a scan would make everybody cold.
func TestCacheKeepsRegulars(t *testing.T) {
	f := newFamily(256 << 10)
	s, err := f.build(cachePolicy(10))
	if err != nil {
		t.Fatal(err)
	}
	once, found, asked := 0, 0, 0
	for range 3000 {
		for r := range 8 {
			user := fmt.Sprint("user-", r)
			before := f.serial.Load()
			s.subject(user, nil)
			asked++
			if f.serial.Load() == before {
				found++
			}
		}
		for range 4 {
			once++
			s.subject(fmt.Sprint("once-", once), nil)
		}
	}
	// A few misses are chance, when a set is full of regulars. First come, first gone would
	// miss each of them some twenty times.
	if missed := asked - found; missed > 3*8 {
		t.Errorf("regulars missed %d of %d times", missed, asked)
	}
}

// TestVersionsDoNotMix asks several versions in turn through one cache.
func TestVersionsDoNotMix(t *testing.T) {
	s, err := newFamily(1 << 20).build(cachePolicy(4))
	if err != nil {
		t.Fatal(err)
	}
	key := Key{Kind: KindClusterRole, Name: "list"}
	without, err := s.Apply(Change{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	object, _ := s.Get(key)
	again, err := without.Apply(Change{Key: key, Object: object})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for i, v := range []*Snapshot{s, without, again} {
			a := Attributes{User: "user-1", Verb: "list", Resource: "pods", ResourceRequest: true, Namespace: "ns-1"}
			res := v.Authorize(&a, nil)
			if res.Allowed != (i != 1) || len(res.Missing) != i%2 {
				t.Fatalf("version %d: %+v", i, res)
			}
		}
	}
}

// TestEntriesDecideNotHashes: with every hash and tag alike, subjects, namespaces and versions
// are still told apart.
func TestEntriesDecideNotHashes(t *testing.T) {
	f := newFamily(1 << 20)
	f.hasher.keep = 0
	s, err := f.build(cachePolicy(6))
	if err != nil {
		t.Fatal(err)
	}
	without, err := s.Apply(Change{Key: Key{Kind: KindClusterRole, Name: "list"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 { // neighbours differ in one thing, while the eight ways still hold both
		for _, d := range []struct{ u, n, missing int }{{0, 0, 0}, {0, 1, 0}, {1, 1, 0}, {1, 1, 1}, {1, 1, 0}} {
			u, n, v := (i+d.u)%7, (i+d.n)%7, s
			if d.missing == 1 {
				v = without
			}
			a := Attributes{User: fmt.Sprint("user-", u), Verb: "list", Resource: "pods", ResourceRequest: true,
				Namespace: fmt.Sprint("ns-", n)}
			if got, want := v.Authorize(&a, nil).Allowed, v == s && u == n && u < 6; got != want {
				t.Fatalf("user-%d in ns-%d, role missing %d: allowed=%t", u, n, d.missing, got)
			}
		}
	}
}

// TestGroupsAreComparedWhole: sets of many groups that hash alike are still told apart.
func TestGroupsAreComparedWhole(t *testing.T) {
	s, err := newFamily(1 << 20).build(cachePolicy(1))
	if err != nil {
		t.Fatal(err)
	}
	groups := make([]string, 100)
	for i := range groups {
		groups[i] = fmt.Sprintf("a-rather-long-group-name-%03d", i)
	}
	a := Attributes{User: "u", Verb: "get", Resource: "pods", ResourceRequest: true}
	for i := range groups {
		with := append([]string(nil), groups...)
		with[i] = "all"
		for range 2 {
			a.Groups = groups
			if s.Authorize(&a, nil).Allowed {
				t.Fatal("allowed without the group")
			}
			if a.Groups = with; !s.Authorize(&a, nil).Allowed {
				t.Fatalf("group at %d not seen", i)
			}
		}
	}
	for n := range 40 { // every length and every position of a difference
		x := make([]byte, n)
		for i := range x {
			x[i] = 'a'
		}
		if !sameKey(string(x), string(x)) {
			t.Fatalf("%q differs from itself", x)
		}
		for i := range x {
			y := append([]byte(nil), x...)
			y[i] = 'b'
			if sameKey(string(x), string(y)) {
				t.Fatalf("%q equals %q", x, y)
			}
		}
		if sameKey(string(x), string(x)+"a") {
			t.Fatalf("length %d equals %d", n, n+1)
		}
	}
}

// sameKey compares a group in the middle of a key.
func sameKey(kept, asked string) bool {
	k, _ := newKey(nil, "user", []string{"x", kept, "another"}, "also")
	return k.is("user", []string{"x", asked, "another"})
}

// TestReadersAgainstApply lets readers ask versions while they are made. Each version says
// how many of the bindings exist, so a torn read would be seen; -race looks for the rest.
func TestReadersAgainstApply(t *testing.T) {
	const steps, readers = 300, 4
	s, err := newFamily(64 << 10).build(cachePolicy(50))
	if err != nil {
		t.Fatal(err)
	}
	type version struct {
		s     *Snapshot
		allow bool
	}
	feeds := make([]chan version, readers)
	var wg sync.WaitGroup
	for r := range feeds {
		feeds[r] = make(chan version, 8)
		wg.Add(1)
		go func() {
			defer wg.Done()
			buf := make([]Grant, 0, 8)
			n, failed := 0, false
			for v := range feeds[r] {
				for i := 0; i < 40 && !failed; i++ {
					n++
					a := Attributes{User: fmt.Sprint("user-", n%90), Groups: []string{"team"}, Verb: "watch", Resource: "pods",
						ResourceRequest: true, Namespace: fmt.Sprint("ns-", i%5)}
					if got := v.s.Authorize(&a, buf); got.Allowed != v.allow {
						t.Errorf("version %d: allowed=%t, want %t", v.s.version, got.Allowed, v.allow)
						failed = true // and go on emptying the feed
					}
				}
			}
		}()
	}
	cur := s
	for i := range steps {
		ch := Change{Key: Key{Kind: KindClusterRoleBinding, Name: "team"}}
		if i%2 == 0 {
			ch.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "team"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole",
				Name: "watch"},
				Subjects: []rbacv1.Subject{{Kind: "Group", Name: "team"}}}
		}
		role := Change{Key: Key{Kind: KindClusterRole, Name: "watch"},
			Object: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "watch"},
				Rules: []rbacv1.PolicyRule{{Verbs: []string{"watch"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}}
		if cur, err = cur.Apply(ch, role); err != nil {
			t.Error(err)
			break
		}
		for _, f := range feeds {
			f <- version{cur, i%2 == 0}
			f <- version{s, false}
		}
	}
	for _, f := range feeds {
		close(f)
	}
	wg.Wait()
}
