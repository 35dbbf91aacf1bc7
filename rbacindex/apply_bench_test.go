package rbacindex_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// hardChanges returns the changes that concern most: each is made and taken back in turn, and
// somebody it concerns asks after each.
func hardChanges(w *workload) []struct {
	name   string
	object any
	was    any // before and after; nil: not there
	asks   rbacindex.Attributes
} {
	pods := rbacindex.Attributes{User: "user-6", Groups: []string{"system:authenticated"}, ResourceRequest: true, Verb: "get",
		Resource: "pods", Namespace: "ns-6"}
	as := func(user string) rbacindex.Attributes {
		a := pods
		a.User = user
		return a
	}
	rule := func(i int) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{fmt.Sprint("g", i%50)},
			Resources: []string{fmt.Sprint("r", i)}}
	}
	long := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "long"}}
	for i := range 1000 {
		long.Rules = append(long.Rules, rule(i))
	}
	longer := &rbacv1.ClusterRole{ObjectMeta: long.ObjectMeta, Rules: append(long.Rules[:1000:1000], rule(1000))}
	crowd := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "crowd"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole",
		Name: "view"}}
	for i := range 1000 {
		crowd.Subjects = append(crowd.Subjects, rbacv1.Subject{Kind: "User", Name: fmt.Sprint("user-", i)})
	}
	everybody := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "everybody"},
		Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole",
			Name: "view"}}
	one := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns-1", Name: "one"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "user-7"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}}
	var edit *rbacv1.ClusterRole // bound by every RoleBinding
	for _, o := range w.objects {
		if r, ok := o.(*rbacv1.ClusterRole); ok && r.Name == "edit" {
			edit = r
		}
	}
	more := &rbacv1.ClusterRole{ObjectMeta: edit.ObjectMeta, Rules: append(edit.Rules[:len(edit.Rules):len(edit.Rules)], rule(0))}
	return []struct {
		name   string
		object any
		was    any
		asks   rbacindex.Attributes
	}{
		{"one-binding", one, nil, as("user-7")},
		{"binding-to-everybody", everybody, nil, pods},
		{"binding-of-1000-subjects", crowd, nil, pods},
		{"role-of-1000-rules", longer, long, as("long")},
		{"role-bound-by-half", more, edit, pods},
	}
}

// burnt returns the CPU time of the process, which other processes do not add to.
func burnt() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkApplyHard makes one change and asks the first question of somebody it concerns. It
// tells beside it what the change alone costs, what the first question costs a subject that it
// does not concern, of ten thousand that are known, and a rebuild.
func BenchmarkApplyHard(b *testing.B) {
	for _, size := range benchSizes[1:] {
		w := newWorkload(b, size.n)
		changes := hardChanges(w)
		objects := append(w.objects[:len(w.objects):len(w.objects)],
			changes[3].was, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "long"},
				RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "long"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "long"}}})
		began := burnt()
		s, err := rbacindex.New(objects...)
		if err != nil {
			b.Fatal(err)
		}
		rebuild := burnt() - began
		known := min(10_000, size.n)
		others := make([]rbacindex.Attributes, known)
		for i := range others {
			others[i] = rbacindex.Attributes{User: fmt.Sprint("stranger-", i), Groups: []string{"strangers"}, ResourceRequest: true,
				Verb: "get", Resource: "pods", Namespace: fmt.Sprint("ns-", i%w.namespaces)}
		}
		for _, c := range changes {
			b.Run(fmt.Sprintf("bindings=%s/change=%s", size.name, c.name), func(b *testing.B) {
				key, err := rbacindex.KeyOf(c.object)
				if err != nil {
					b.Fatal(err)
				}
				buf := make([]rbacindex.Grant, 0, 64)
				cur := s
				for i := range others {
					cur.Authorize(&others[i], buf)
				}
				a := c.asks
				cur.Authorize(&a, buf)
				change := func(i int) {
					ch := rbacindex.Change{Key: key, Object: c.was}
					if i%2 == 0 {
						ch.Object = c.object
					}
					if cur, err = cur.Apply(ch); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
				n, started := 0, burnt()
				for b.Loop() {
					change(n)
					cur.Authorize(&a, buf)
					n++
				}
				took := (burnt() - started) / time.Duration(b.N)
				began := burnt()
				const rounds = 200
				for i := range rounds {
					change(n + i)
				}
				alone := (burnt() - began) / rounds
				cur.Authorize(&others[0], buf)
				for i := range others { // as they are asked between changes
					cur.Authorize(&others[i], buf)
				}
				change(n)
				began = burnt()
				for i := range others {
					cur.Authorize(&others[i], buf)
				}
				b.ReportMetric(float64((burnt()-began).Nanoseconds())/float64(known), "ns/stranger")
				b.ReportMetric(float64(alone.Nanoseconds()), "change-ns")
				b.ReportMetric(float64(took.Nanoseconds()), "cpu-ns/op")
				b.ReportMetric(float64(rebuild)/float64(took), "x-rebuild")
			})
		}
	}
}
