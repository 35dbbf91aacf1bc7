package rbacindex_test

import (
	"fmt"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
)

// policies returns how many generated policies a test goes through: RETRIAL_POLICIES asks
// for a long run.
func policies(t *testing.T, usual int) uint64 {
	t.Helper()
	if v := os.Getenv("RETRIAL_POLICIES"); v != "" {
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil {
			t.Fatalf("RETRIAL_POLICIES: %v", err)
		}
		return n
	}
	if testing.Short() {
		return uint64(usual / 10)
	}
	return uint64(usual)
}

// nobody is a user that no policy names.
const nobody = "\x00nobody"

// principals returns all users and groups that could matter: those the generator knows, those
// the policy names in any spelling, and one that nobody names.
func (t *twin) principals() (users, groups []string) {
	users, groups = append([]string{nobody}, genUsers...), append([]string{nobody}, genSubjectGroups...)
	see := func(ns string, subjects []rbacv1.Subject) {
		for _, s := range subjects {
			users, groups = append(users, s.Name), append(groups, s.Name)
			for _, sns := range []string{s.Namespace, ns} {
				users = append(users, "system:serviceaccount:"+sns+":"+s.Name)
			}
		}
	}
	for _, o := range t.objects {
		switch b := o.(type) {
		case *rbacv1.RoleBinding:
			see(b.Namespace, b.Subjects)
		case *rbacv1.ClusterRoleBinding:
			see("", b.Subjects)
		}
	}
	slices.Sort(users)
	slices.Sort(groups)
	return slices.Compact(users), slices.Compact(groups)
}

// whoCan returns the dumb alternative: everybody is asked, in every scope.
func (t *twin) whoCan(a rbacindex.Attributes, everywhere bool) []string {
	var out []string
	scopes := []string{a.Namespace}
	if everywhere {
		scopes = genNamespaces
	}
	users, groups := t.principals()
	row := func(name string, group bool) {
		a.User, a.Groups = name, nil
		if group {
			a.User, a.Groups = nobody, []string{name}
		}
		cluster := map[string]bool{}
		for _, a.Namespace = range scopes {
			for _, g := range t.authorize(&a).grants {
				ns := ""
				if !strings.HasPrefix(g, "RBAC: allowed by ClusterRoleBinding") {
					ns = a.Namespace
				} else if cluster[g] {
					continue // seen in another namespace
				} else {
					cluster[g] = true
				}
				out = append(out, fmt.Sprintf("%q group=%t in %q: %s", name, group, ns, g))
			}
		}
	}
	for _, name := range users {
		row(name, false)
	}
	for _, name := range groups {
		row(name, true)
	}
	sort.Strings(out)
	return out
}

// whoCanLines returns the index's answer in the twin's form. It fails on what that form hides: a
// subject twice in one scope, an empty row, and the order.
func whoCanLines(s *rbacindex.Snapshot, a *rbacindex.Attributes, everywhere bool) ([]string, error) {
	var out []string
	type row struct {
		group    bool
		name, ns string
	}
	var last row
	masters := 0
	for i, acc := range s.WhoCan(a, everywhere) {
		if acc.Superuser {
			masters++
		}
		if acc.Superuser != (acc.Group && acc.Name == "system:masters" && acc.Namespace == "") || len(acc.Grants) == 0 && !acc.Superuser {
			return nil, fmt.Errorf("row %+v", acc)
		}
		r := row{acc.Group, acc.Name, acc.Namespace}
		if i > 0 && (last.group == r.group && (last.name > r.name || last.name == r.name && last.ns >= r.ns) || !last.group && r.group) {
			return nil, fmt.Errorf("%v stands after %v", r, last)
		}
		last = r
		for j, g := range acc.Grants {
			if g.BindingNamespace() != acc.Namespace {
				return nil, fmt.Errorf("%s in scope %q", g.Reason(), acc.Namespace)
			}
			if p := acc.Grants[max(j-1, 0)]; j > 0 && (p.RoleKind() == g.RoleKind() && p.Role() == g.Role() && p.Binding() >= g.Binding() ||
				p.RoleKind() == g.RoleKind() && p.Role() > g.Role()) {
				return nil, fmt.Errorf("%s after %s", g.Reason(), p.Reason())
			}
			out = append(out, fmt.Sprintf("%q group=%t in %q: %s [subject %d rule %d]", acc.Name, acc.Group, acc.Namespace, g.Reason(),
				g.SubjectIndex(), g.Rule()))
		}
	}
	if masters != 1 {
		return nil, fmt.Errorf("system:masters stands in it %d times", masters)
	}
	sort.Strings(out)
	return out, nil
}

// asWhoCan takes from a request what WhoCan does not look at.
func asWhoCan(a rbacindex.Attributes) rbacindex.Attributes {
	a.User, a.Groups = "", nil
	if !a.ResourceRequest {
		a.Namespace = ""
	}
	return a
}

func compareWhoCan(t *testing.T, seed uint64, s *rbacindex.Snapshot, tw *twin, a rbacindex.Attributes, everywhere bool) (rows int) {
	t.Helper()
	a = asWhoCan(a)
	got, err := whoCanLines(s, &a, everywhere)
	want := tw.whoCan(a, everywhere && a.ResourceRequest)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("seed %d request %+v everywhere %t: %v\nindex\n  %s\neverybody asked\n  %s", seed, a, everywhere, err,
			strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	return len(got)
}

func TestWhoCanEqualsAskingEverybody(t *testing.T) {
	t.Parallel()
	rows, asked := 0, 0
	for seed := range policies(t, 3000) {
		g := newGenerator(seed + 1<<33)
		objects := g.policy()
		s, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		tw := newTwin(objects...)
		for i := range 3 {
			rows += compareWhoCan(t, seed, s, tw, *g.aimed(objects), i == 2)
			asked++
		}
	}
	if rows < asked/4 {
		t.Errorf("%d rows in %d answers: the generator no longer exercises grants", rows, asked)
	}
}

// TestWhoCanOfVersions asks versions of one policy in turn: what was made for one must not
// show in the answer of another.
func TestWhoCanOfVersions(t *testing.T) {
	for seed := range uint64(40) {
		g := newGenerator(seed + 1<<34)
		objects := g.policy()
		s, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		type version struct {
			s  *rbacindex.Snapshot
			tw *twin
		}
		versions := []version{{s, newTwin(objects...)}}
		for range 25 {
			last := versions[len(versions)-1]
			tw := newTwin(last.tw.list()...)
			var changes []rbacindex.Change
			// Now and then so many that the tables are made again.
			for range 1 + g.IntN(3) + 120*max(0, 1-g.IntN(8)) {
				c := rbacindex.Change{Key: g.key()}
				if c.Key.Kind == rbacindex.KindClusterRole && g.IntN(4) > 0 {
					c.Key.Name += fmt.Sprint("-", g.IntN(100))
				}
				if g.IntN(3) > 0 {
					c.Object = g.object(c.Key)
					tw.objects[c.Key] = c.Object
				} else {
					delete(tw.objects, c.Key)
				}
				changes = append(changes, c)
			}
			next, err := last.s.Apply(changes...)
			if err != nil {
				t.Fatal(err)
			}
			versions = append(versions, version{next, tw})
			for range 3 {
				v := versions[g.IntN(len(versions))]
				if g.IntN(2) == 0 {
					v = versions[len(versions)-1]
				}
				compareWhoCan(t, seed, v.s, v.tw, *g.aimed(v.tw.list()), g.IntN(3) == 0)
			}
		}
	}
}

func TestWhoCanOfBootstrapPolicy(t *testing.T) {
	objects := bootstrap(t)
	s, err := rbacindex.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	a := rbacindex.Attributes{Verb: "list", Resource: "secrets", ResourceRequest: true}
	var got []string
	compareWhoCan(t, 0, s, newTwin(objects...), a, true)
	for _, acc := range s.WhoCan(&a, false) {
		sub := acc.Subject()
		line := strings.Trim(sub.Kind+" "+sub.Namespace+"/"+sub.Name, " ")
		for _, g := range acc.Grants {
			line += " by " + g.RoleKey().String()
		}
		got = append(got, line)
	}
	want := []string{
		"Group /kubeadm:cluster-admins by ClusterRole/cluster-admin",
		"Group /system:masters by ClusterRole/cluster-admin",
		"User /system:kube-controller-manager by ClusterRole/system:kube-controller-manager",
		"ServiceAccount kube-system/generic-garbage-collector by ClusterRole/system:controller:generic-garbage-collector",
		"ServiceAccount kube-system/namespace-controller by ClusterRole/system:controller:namespace-controller",
		"ServiceAccount kube-system/resourcequota-controller by ClusterRole/system:controller:resourcequota-controller",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestSplitServiceAccount(t *testing.T) {
	for _, c := range []struct {
		user, ns, name string
		ok             bool
	}{
		{"system:serviceaccount:ns:sa", "ns", "sa", true},
		{"system:serviceaccount:ns:", "", "", false}, {"system:serviceaccount::sa", "", "", false},
		{"system:serviceaccount:ns", "", "", false}, {"system:serviceaccount:a:b:c", "", "", false},
		{"system:serviceaccounts:a", "", "", false}, {"alice", "", "", false}, {"", "", "", false},
	} {
		if ns, name, ok := kubenames.SplitServiceAccount(c.user); ok != c.ok || ok && (ns != c.ns || name != c.name) {
			t.Errorf("%q: %q %q %t", c.user, ns, name, ok)
		}
	}
}

// TestWhoCanWhilePolicyChanges: readers of many versions share what was made for one of them.
func TestWhoCanWhilePolicyChanges(t *testing.T) {
	t.Parallel()
	g := newGenerator(7)
	objects := g.policy()
	s, err := rbacindex.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	type question struct {
		s          *rbacindex.Snapshot
		a          rbacindex.Attributes
		everywhere bool
		want       []string
	}
	tw := newTwin(objects...)
	var questions []question
	for range 60 {
		for range 1 + 80*max(0, 1-g.IntN(10)) {
			c := rbacindex.Change{Key: g.key()}
			c.Object = g.object(c.Key)
			tw.objects[c.Key] = c.Object
			if s, err = s.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
		a := asWhoCan(*g.aimed(tw.list()))
		everywhere := g.IntN(3) == 0
		questions = append(questions, question{s: s, a: a, everywhere: everywhere, want: tw.whoCan(a, everywhere && a.ResourceRequest)})
	}
	var readers sync.WaitGroup
	failed := make(chan string, 8)
	for reader := range 8 {
		readers.Go(func() {
			for i := range 4 * len(questions) {
				q := questions[(i*(reader+1)+reader)%len(questions)]
				got, err := whoCanLines(q.s, &q.a, q.everywhere)
				if err != nil || !slices.Equal(got, q.want) {
					failed <- fmt.Sprintf("request %+v: %v\ngot %q\nwant %q", q.a, err, got, q.want)
					return
				}
				q.s.Can(q.a.User, genSubjectGroups)
			}
		})
	}
	readers.Wait()
	close(failed)
	for text := range failed {
		t.Error(text)
	}
}
