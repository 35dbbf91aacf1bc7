package authorizertest

import (
	"fmt"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	kubeauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"
	rbacinformers "k8s.io/client-go/informers/rbac/v1"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"
	framework "k8s.io/client-go/tools/cache/testing"
	realrbac "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/retrial-io/retrial/rbacindex/authorizer"
)

// BenchmarkAuthorizer holds both authorizers against each other over the same informers, by
// the number of ClusterRoleBindings:
//
//	allow, deny  one decision of a known subject, 16,384 request shapes in turn
//	update       from a write in the cluster until decisions see it; the real authorizer sees it
//	             as soon as the informer stored it, which here is told by a handler
func BenchmarkAuthorizer(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 50_000} {
		b.Run(fmt.Sprint("bindings=", n), func(b *testing.B) {
			l := newLarge(b, n)
			for _, kind := range []string{"allow", "deny"} {
				requests := l.requests(kind)
				for _, who := range []struct {
					name string
					kubeauthorizer.Authorizer
				}{{"real", l.real}, {"ours", l.ours}} {
					b.Run(kind+"/"+who.name, func(b *testing.B) { decide(b, who.Authorizer, requests, kind) })
				}
			}
			b.Run("update/real", func(b *testing.B) { l.update(b, func() <-chan struct{} { return l.told }) })
			b.Run("update/ours", func(b *testing.B) {
				l.update(b, func() <-chan struct{} {
					_, replaced := l.ours.Snapshot()
					return replaced
				})
			})
		})
	}
}

func decide(b *testing.B, who kubeauthorizer.Authorizer, requests []kubeauthorizer.Attributes, kind string) {
	ctx := b.Context()
	want := kubeauthorizer.DecisionAllow
	if kind == "deny" {
		want = kubeauthorizer.DecisionNoOpinion
	}
	for i := range requests[:min(len(requests), 16)] {
		if d, reason, err := who.Authorize(ctx, requests[i]); d != want || err != nil {
			b.Fatalf("%+v: %v %q %v", requests[i], d, reason, err)
		}
	}
	b.ReportAllocs()
	i, before := 0, cpu(b)
	for b.Loop() {
		if _, _, err := who.Authorize(ctx, requests[i%len(requests)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

// cpu returns what the process has used, collecting garbage included: others may be busy on the
// same machine.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// large is a cluster of n ClusterRoleBindings, a user each, to 500 ClusterRoles.
type large struct {
	n        int
	bindings *framework.FakeControllerSource
	told     chan struct{}
	real     *realrbac.RBACAuthorizer
	ours     *authorizer.Authorizer
	written  int
}

const largeRoles = 500

func newLarge(b *testing.B, n int) *large {
	l := &large{n: n, told: make(chan struct{}, 1), bindings: framework.NewFakeControllerSource()}
	roles := framework.NewFakeControllerSource()
	for i := range largeRoles {
		roles.Add(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("role-", i)}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods", "services", "configmaps"}},
			{Verbs: []string{"*"}, APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets"}}}})
	}
	for i := range n {
		l.bindings.Add(l.binding(i))
	}
	stop := make(chan struct{})
	var stopped []chan struct{}
	run := func(source *framework.FakeControllerSource, example runtime.Object) cache.SharedIndexInformer {
		i := cache.NewSharedIndexInformer(source, example, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		done := make(chan struct{})
		stopped = append(stopped, done)
		go func() { defer close(done); i.Run(stop) }()
		b.Cleanup(source.Shutdown)
		return i
	}
	in := informers{
		clusterRoles: run(roles, &rbacv1.ClusterRole{}), clusterRoleBindings: run(l.bindings, &rbacv1.ClusterRoleBinding{}),
		roles: run(framework.NewFakeControllerSource(), &rbacv1.Role{}), roleBindings: run(framework.NewFakeControllerSource(),
			&rbacv1.RoleBinding{}),
	}
	b.Cleanup(func() {
		close(stop)
		for _, done := range stopped {
			<-done
		}
	})
	l.real = realrbac.New(&realrbac.RoleGetter{Lister: in.Roles().Lister()},
		&realrbac.RoleBindingLister{Lister: in.RoleBindings().Lister()},
		&realrbac.ClusterRoleGetter{Lister: in.ClusterRoles().Lister()},
		&realrbac.ClusterRoleBindingLister{Lister: in.ClusterRoleBindings().Lister()})
	var err error
	if l.ours, err = authorizer.New(authorizer.Config{Informers: in}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.ours.Close)
	if !cache.WaitForCacheSync(b.Context().Done(), l.ours.HasSynced) {
		b.Fatal("the informers did not sync")
	}
	if _, err := in.clusterRoleBindings.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) {
		select {
		case l.told <- struct{}{}:
		default:
		}
	}}); err != nil {
		b.Fatal(err)
	}
	return l
}

func (l *large) binding(i int) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("binding-", i)},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprint("role-", i%largeRoles)},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: fmt.Sprint("user-", i)}}}
}

// requests are different ones of a thousand users.
func (l *large) requests(kind string) []kubeauthorizer.Attributes {
	out := make([]kubeauthorizer.Attributes, 1<<14)
	for i := range out {
		r := &kubeauthorizer.AttributesRecord{User: &user.DefaultInfo{Name: fmt.Sprint("user-", i*7919%min(1000, l.n)),
			Groups: []string{"system:authenticated"}},
			Verb: "get", Namespace: fmt.Sprint("ns-", i%50), Resource: []string{"pods", "services", "configmaps"}[i%3],
			Name: fmt.Sprint("name-", i), APIVersion: "v1", ResourceRequest: true}
		if kind == "deny" {
			r.Resource = "secrets"
		}
		out[i] = r
	}
	return out
}

func (l *large) update(b *testing.B, next func() <-chan struct{}) {
	before := cpu(b)
	for b.Loop() {
		l.written++
		changed := l.binding(l.n / 2)
		changed.Subjects[0].Name = fmt.Sprint("other-", l.written)
		select {
		case <-l.told: // of the write before
		default:
		}
		seen := next()
		l.bindings.Modify(changed)
		<-seen
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

// informers are the four informers of a cluster.
type informers struct {
	clusterRoles, roles, clusterRoleBindings, roleBindings cache.SharedIndexInformer
}

type clusterRoleInformer struct{ cache.SharedIndexInformer }
type roleInformer struct{ cache.SharedIndexInformer }
type clusterRoleBindingInformer struct{ cache.SharedIndexInformer }
type roleBindingInformer struct{ cache.SharedIndexInformer }

func (i clusterRoleInformer) Informer() cache.SharedIndexInformer { return i.SharedIndexInformer }
func (i roleInformer) Informer() cache.SharedIndexInformer        { return i.SharedIndexInformer }
func (i clusterRoleBindingInformer) Informer() cache.SharedIndexInformer {
	return i.SharedIndexInformer
}
func (i roleBindingInformer) Informer() cache.SharedIndexInformer { return i.SharedIndexInformer }

func (i clusterRoleInformer) Lister() rbaclisters.ClusterRoleLister {
	return rbaclisters.NewClusterRoleLister(i.GetIndexer())
}
func (i roleInformer) Lister() rbaclisters.RoleLister {
	return rbaclisters.NewRoleLister(i.GetIndexer())
}
func (i clusterRoleBindingInformer) Lister() rbaclisters.ClusterRoleBindingLister {
	return rbaclisters.NewClusterRoleBindingLister(i.GetIndexer())
}
func (i roleBindingInformer) Lister() rbaclisters.RoleBindingLister {
	return rbaclisters.NewRoleBindingLister(i.GetIndexer())
}

func (i informers) ClusterRoles() rbacinformers.ClusterRoleInformer {
	return clusterRoleInformer{i.clusterRoles}
}
func (i informers) Roles() rbacinformers.RoleInformer { return roleInformer{i.roles} }
func (i informers) ClusterRoleBindings() rbacinformers.ClusterRoleBindingInformer {
	return clusterRoleBindingInformer{i.clusterRoleBindings}
}
func (i informers) RoleBindings() rbacinformers.RoleBindingInformer {
	return roleBindingInformer{i.roleBindings}
}
