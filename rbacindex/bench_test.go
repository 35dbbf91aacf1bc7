package rbacindex_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

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
					a := rbacindex.Attributes{User: fmt.Sprint("someone-", i), Groups: groups, ResourceRequest: true, Verb: "get",
						Resource: "pods", Namespace: "ns-1"}
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
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole",
				Name: "view"}}
		one := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns-1", Name: "one"},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "user-7"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}}
		edit := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "edit"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"},
			APIGroups: []string{""}, Resources: []string{"pods"}}}}
		s, err := rbacindex.New(w.objects...)
		if err != nil {
			b.Fatal(err)
		}
		a := rbacindex.Attributes{User: "user-6", Groups: []string{"system:authenticated"}, ResourceRequest: true, Verb: "get",
			Resource: "pods", Namespace: "ns-6"}
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

// BenchmarkWhoCan asks who may make requests that are all different, in a policy whose roles
// were turned round before; case=first is the first question of a new policy.
func BenchmarkWhoCan(b *testing.B) {
	for _, size := range benchSizes {
		w := newWorkload(b, size.n)
		s, err := rbacindex.New(w.objects...)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			name       string
			everywhere bool
			set        func(a *rbacindex.Attributes, i int)
		}{
			{"namespace", false, func(a *rbacindex.Attributes, i int) { a.Namespace = fmt.Sprintf("ns-%d", i%w.namespaces) }},
			{"cluster", false, func(a *rbacindex.Attributes, _ int) {}},
			{"narrow-everywhere", true, func(a *rbacindex.Attributes, i int) {
				a.APIGroup, a.Resource, a.Verb = "certificates.k8s.io", "certificatesigningrequests", "approve"
			}},
			{"named", false, func(a *rbacindex.Attributes, i int) {
				a.Verb, a.Resource, a.Name = "update", "secrets", fmt.Sprintf("named-%d", i%100)
			}},
			{"path", false, func(a *rbacindex.Attributes, i int) {
				a.ResourceRequest, a.Verb, a.Path = false, "get", "/healthz/etcd"
			}},
		} {
			b.Run(fmt.Sprintf("bindings=%s/case=%s", size.name, c.name), func(b *testing.B) {
				a := rbacindex.Attributes{ResourceRequest: true, Verb: "create", Resource: "persistentvolumeclaims"}
				c.set(&a, 0)
				s.WhoCan(&a, c.everywhere)
				b.ReportAllocs()
				subjects, i := 0, 0
				for b.Loop() {
					c.set(&a, i)
					subjects += len(s.WhoCan(&a, c.everywhere))
					i++
				}
				b.ReportMetric(float64(subjects)/float64(b.N), "subjects/op")
			})
		}
		b.Run(fmt.Sprintf("bindings=%s/case=first", size.name), func(b *testing.B) {
			a := rbacindex.Attributes{ResourceRequest: true, Verb: "approve", APIGroup: "certificates.k8s.io",
				Resource: "certificatesigningrequests"}
			var first time.Duration
			for b.Loop() {
				s, err := rbacindex.New(w.objects...)
				if err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				s.WhoCan(&a, false)
				first += time.Since(began)
			}
			b.ReportMetric(float64(first.Nanoseconds())/float64(b.N), "first-ns/op")
		})
		b.Run(fmt.Sprintf("bindings=%s/case=after-change", size.name), func(b *testing.B) {
			a := rbacindex.Attributes{ResourceRequest: true, Verb: "approve", APIGroup: "certificates.k8s.io",
				Resource: "certificatesigningrequests"}
			edit := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "another"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"},
				APIGroups: []string{""}, Resources: []string{"pods"}}}}
			cur := s
			cur.WhoCan(&a, false)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				ch := rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "another"}}
				if i%2 == 0 {
					ch.Object = edit
				}
				var err error
				if cur, err = cur.Apply(ch); err != nil {
					b.Fatal(err)
				}
				cur.WhoCan(&a, false)
			}
		})
	}
}

// BenchmarkWhoCanOwnRoles asks where every one of 100,000 bindings has a role of its own, in
// one namespace, all of which are about the resource asked for and few give the verb.
func BenchmarkWhoCanOwnRoles(b *testing.B) {
	var objects []any
	for i := range 100_000 {
		verb := "get"
		if i%1000 == 0 {
			verb = "delete"
		}
		name := fmt.Sprint("r-", i)
		meta := metav1.ObjectMeta{Namespace: "ns", Name: name}
		objects = append(objects, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{""},
			Resources: []string{"pods"}}}},
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name},
				Subjects: []rbacv1.Subject{{Kind: "User", Name: fmt.Sprint("user-", i)}}})
	}
	s, err := rbacindex.New(objects...)
	if err != nil {
		b.Fatal(err)
	}
	a := rbacindex.Attributes{ResourceRequest: true, Verb: "delete", Resource: "pods", Namespace: "ns"}
	s.WhoCan(&a, false)
	b.ReportAllocs()
	subjects := 0
	for b.Loop() {
		subjects += len(s.WhoCan(&a, false))
	}
	b.ReportMetric(float64(subjects)/float64(b.N), "subjects/op")
}

// BenchmarkCan lists everything a subject may do.
func BenchmarkCan(b *testing.B) {
	for _, size := range benchSizes {
		w := newWorkload(b, size.n)
		s, err := rbacindex.New(w.objects...)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			name, user string
			groups     []string
		}{
			{"user", "user-3", []string{"system:authenticated"}},
			{"groups200", "member", w.requests("groups200", 1)[0].Groups},
			{"tenant", "x", []string{"tenant-2"}},
		} {
			b.Run(fmt.Sprintf("bindings=%s/subject=%s", size.name, c.name), func(b *testing.B) {
				b.ReportAllocs()
				scopes := 0
				for b.Loop() {
					scopes += len(s.Can(c.user, c.groups))
				}
				b.ReportMetric(float64(scopes)/float64(b.N), "scopes/op")
			})
		}
	}
}

// BenchmarkHygiene goes through a whole policy, BenchmarkNearestMiss looks for what would have
// allowed one request.
func BenchmarkHygiene(b *testing.B) {
	for _, size := range benchSizes {
		w := newWorkload(b, size.n)
		s, err := rbacindex.New(w.objects...)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("bindings="+size.name, func(b *testing.B) {
			flaws := 0
			for b.Loop() {
				flaws = len(s.Hygiene())
			}
			b.ReportMetric(float64(flaws), "flaws")
		})
	}
}

func BenchmarkNearestMiss(b *testing.B) {
	for _, size := range benchSizes {
		w := newWorkload(b, size.n)
		s, err := rbacindex.New(w.objects...)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("bindings="+size.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				a := rbacindex.Attributes{User: "user-6", Groups: []string{"system:authenticated"}, ResourceRequest: true, Verb: "approve",
					APIGroup: "certificates.k8s.io", Resource: "certificatesigningrequests", Name: fmt.Sprint("x", i)}
				s.NearestMiss(&a, 10)
			}
		})
	}
}
