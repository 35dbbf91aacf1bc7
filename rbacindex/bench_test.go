package rbacindex_test

import (
	"fmt"
	"runtime"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

var benchSizes = []struct {
	name string
	n    int
}{{"bootstrap", 0}, {"1k", 1_000}, {"10k", 10_000}, {"50k", 50_000}}

// BenchmarkAuthorize asks for all grants of requests whose subjects are known and whose
// shapes are new: 131,072 different ones, one after the other.
func BenchmarkAuthorize(b *testing.B) {
	for _, size := range benchSizes {
		w := newWorkload(b, size.n)
		s, err := rbacindex.New(w.objects...)
		if err != nil {
			b.Fatal(err)
		}
		for _, kind := range workloadCases {
			requests := w.requests(kind, 1<<17)
			b.Run(fmt.Sprintf("bindings=%s/case=%s", size.name, kind), func(b *testing.B) {
				buf := make([]rbacindex.Grant, 0, 512)
				for i := range requests {
					s.Authorize(&requests[i], buf)
				}
				runtime.GC()
				b.ReportAllocs()
				grants, i := 0, 0
				for b.Loop() {
					res := s.Authorize(&requests[i&(1<<17-1)], buf)
					grants += len(res.Grants)
					i++
				}
				b.ReportMetric(float64(grants)/float64(b.N), "grants/op")
			})
			if kind != "groups200" {
				continue
			}
			b.Run(fmt.Sprintf("bindings=%s/case=%s-subject", size.name, kind), func(b *testing.B) {
				buf := make([]rbacindex.Grant, 0, 512)
				sub := s.Subject(requests[0].User, requests[0].Groups)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					sub.Authorize(&requests[i&(1<<17-1)], buf)
				}
			})
		}
	}
}

// BenchmarkAuthorizeParallel is the same from all processors at once.
func BenchmarkAuthorizeParallel(b *testing.B) {
	w := newWorkload(b, 10_000)
	s, err := rbacindex.New(w.objects...)
	if err != nil {
		b.Fatal(err)
	}
	requests := w.requests("namespaced", 1<<14)
	for i := range requests {
		s.Authorize(&requests[i], nil)
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		buf := make([]rbacindex.Grant, 0, 16)
		for i := 0; pb.Next(); i++ {
			s.Authorize(&requests[i&(1<<14-1)], buf)
		}
	})
}

// BenchmarkColdSubject asks about subjects never seen before.
func BenchmarkColdSubject(b *testing.B) {
	for _, size := range benchSizes {
		w := newWorkload(b, size.n)
		s, err := rbacindex.New(w.objects...)
		if err != nil {
			b.Fatal(err)
		}
		for _, groups := range [][]string{{"system:authenticated"}, w.requests("groups200", 1)[0].Groups} {
			b.Run(fmt.Sprintf("bindings=%s/groups=%d", size.name, len(groups)), func(b *testing.B) {
				b.ReportAllocs()
				buf := make([]rbacindex.Grant, 0, 16)
				for i := 0; b.Loop(); i++ {
					a := rbacindex.Attributes{User: fmt.Sprint("someone-", i), Groups: groups, ResourceRequest: true, Verb: "get", Resource: "pods", Namespace: "ns-1"}
					s.Authorize(&a, buf)
				}
			})
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, size := range benchSizes {
		w := newWorkload(b, size.n)
		b.Run("bindings="+size.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rbacindex.New(w.objects...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkApply makes one change and asks one question of the new version, so that nothing
// put off is left out.
func BenchmarkApply(b *testing.B) {
	for _, size := range benchSizes {
		w := newWorkload(b, size.n)
		everybody := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "everybody"},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}}
		one := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns-1", Name: "one"},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "user-7"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}}
		edit := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "edit"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
		s, err := rbacindex.New(w.objects...)
		if err != nil {
			b.Fatal(err)
		}
		a := rbacindex.Attributes{User: "user-6", Groups: []string{"system:authenticated"}, ResourceRequest: true, Verb: "get", Resource: "pods", Namespace: "ns-6"}
		for _, c := range []struct {
			name    string
			objects []any // applied in turn, deleted when the turn comes again
		}{{"rolebinding", []any{one}}, {"everybody", []any{everybody}}, {"role-bound-by-all", []any{edit}}} {
			b.Run(fmt.Sprintf("bindings=%s/change=%s", size.name, c.name), func(b *testing.B) {
				b.ReportAllocs()
				buf := make([]rbacindex.Grant, 0, 64)
				cur := s
				for i := 0; b.Loop(); i++ {
					k, err := rbacindex.KeyOf(c.objects[0])
					if err != nil {
						b.Fatal(err)
					}
					ch := rbacindex.Change{Key: k}
					if i%2 == 0 {
						ch.Object = c.objects[0]
					}
					if cur, err = cur.Apply(ch); err != nil {
						b.Fatal(err)
					}
					cur.Authorize(&a, buf)
				}
			})
		}
	}
}

// BenchmarkMemory reports the bytes a Snapshot holds beyond the objects it was given.
func BenchmarkMemory(b *testing.B) {
	for _, size := range benchSizes[1:] {
		b.Run("bindings="+size.name, func(b *testing.B) {
			w := newWorkload(b, size.n)
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				s, err := rbacindex.New(w.objects...)
				if err != nil {
					b.Fatal(err)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(2*size.n), "B/binding")
				runtime.KeepAlive(s)
			}
			runtime.KeepAlive(w)
		})
	}
}
