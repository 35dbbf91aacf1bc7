package authorizertest

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"go.uber.org/goleak"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	realrbac "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/rbacindex/authorizer"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// klog flushes forever, and so do the apiserver's own parts.
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/util/wait.BackoffUntilWithContext"))
}

// world is a cluster's RBAC objects behind a fake client, the informers that follow them, and
// two apiservers: one with the real authorizer over those informers, one with ours.
type world struct {
	t        testing.TB
	client   *fake.Clientset
	stores   map[rbacindex.Kind]cache.Store
	resolver *validation.DefaultRuleResolver
	rbac     *authorizer.Authorizer
	real     *apiserver
	ours     *apiserver
	seen     chan struct{} // an informer told of something
	sent     int           // requests
	version  int           // the last that was written
}

func newWorld(t testing.TB, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{t: t, client: fake.NewClientset(objects...), seen: make(chan struct{}, 1)}
	factory := kubeinformers.NewSharedInformerFactory(w.client, 0)
	in := factory.Rbac().V1()
	informers := map[rbacindex.Kind]cache.SharedIndexInformer{
		rbacindex.KindRole: in.Roles().Informer(), rbacindex.KindClusterRole: in.ClusterRoles().Informer(),
		rbacindex.KindRoleBinding: in.RoleBindings().Informer(), rbacindex.KindClusterRoleBinding: in.ClusterRoleBindings().Informer(),
	}
	roles, roleBindings := &realrbac.RoleGetter{Lister: in.Roles().Lister()},
		&realrbac.RoleBindingLister{Lister: in.RoleBindings().Lister()}
	clusterRoles, clusterRoleBindings := &realrbac.ClusterRoleGetter{Lister: in.ClusterRoles().Lister()},
		&realrbac.ClusterRoleBindingLister{Lister: in.ClusterRoleBindings().Lister()}
	w.resolver = validation.NewDefaultRuleResolver(roles, roleBindings, clusterRoles, clusterRoleBindings)
	var err error
	if w.rbac, err = authorizer.New(authorizer.Config{Informers: in}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.rbac.Close)
	tell := func(any) {
		select {
		case w.seen <- struct{}{}:
		default:
		}
	}
	w.stores = map[rbacindex.Kind]cache.Store{}
	for kind, informer := range informers {
		w.stores[kind] = informer.GetStore()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, _ any) { tell(nil) },
			DeleteFunc: tell}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(t.Context().Done(), w.rbac.HasSynced) {
		t.Fatal("the informers did not sync")
	}
	w.real = newAPIServer(t, realrbac.New(roles, roleBindings, clusterRoles, clusterRoleBindings))
	w.ours = newAPIServer(t, w.rbac)
	return w
}

// write makes writes to the cluster, and returns when both authorizers know of all of them.
func (w *world) write(changes ...rbacindex.Change) {
	w.t.Helper()
	versions := map[rbacindex.Key]string{}
	for _, c := range changes {
		versions[c.Key] = w.put(c)
	}
	for k, version := range versions {
		for !w.stored(k, version) {
			select {
			case <-w.seen:
			case <-w.t.Context().Done():
				w.t.Fatalf("the informer does not see the write to %s", k)
			}
		}
	}
	for k := range versions {
		for {
			s, replaced := w.rbac.Snapshot()
			object, _ := s.Get(k)
			if apiequality.Semantic.DeepEqual(content(object), content(w.object(k))) {
				break
			}
			select {
			case <-replaced:
			case <-w.t.Context().Done():
				w.t.Fatalf("the authorizer does not see the write to %s", k)
			}
		}
	}
}

// object returns what the informer has, nil if nothing.
func (w *world) object(k rbacindex.Key) any {
	name := k.Name
	if k.Namespace != "" {
		name = k.Namespace + "/" + k.Name
	}
	object, _, err := w.stores[k.Kind].GetByKey(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return object
}

// stored reports whether the informer has that version, "" for none.
func (w *world) stored(k rbacindex.Key, version string) bool {
	object := w.object(k)
	if object == nil || version == "" {
		return object == nil && version == ""
	}
	m, err := meta.Accessor(object)
	return err == nil && m.GetResourceVersion() == version
}

// put makes one write and returns the version it made.
func (w *world) put(c rbacindex.Change) string {
	w.t.Helper()
	ctx, api := w.t.Context(), w.client.RbacV1()
	var made metav1.Object
	var err error
	if c.Object == nil {
		switch none := (metav1.DeleteOptions{}); c.Key.Kind {
		case rbacindex.KindRole:
			err = api.Roles(c.Key.Namespace).Delete(ctx, c.Key.Name, none)
		case rbacindex.KindClusterRole:
			err = api.ClusterRoles().Delete(ctx, c.Key.Name, none)
		case rbacindex.KindRoleBinding:
			err = api.RoleBindings(c.Key.Namespace).Delete(ctx, c.Key.Name, none)
		default:
			err = api.ClusterRoleBindings().Delete(ctx, c.Key.Name, none)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			w.t.Fatalf("delete %s: %v", c.Key, err)
		}
		return ""
	}
	w.version++ // the fake client gives none
	c.Object.(metav1.Object).SetResourceVersion(strconv.Itoa(w.version))
	create, update := metav1.CreateOptions{}, metav1.UpdateOptions{}
	switch o := c.Object.(type) {
	case *rbacv1.Role:
		if made, err = api.Roles(o.Namespace).Create(ctx, o, create); apierrors.IsAlreadyExists(err) {
			made, err = api.Roles(o.Namespace).Update(ctx, o, update)
		}
	case *rbacv1.ClusterRole:
		if made, err = api.ClusterRoles().Create(ctx, o, create); apierrors.IsAlreadyExists(err) {
			made, err = api.ClusterRoles().Update(ctx, o, update)
		}
	case *rbacv1.RoleBinding:
		if made, err = api.RoleBindings(o.Namespace).Create(ctx, o, create); apierrors.IsAlreadyExists(err) {
			made, err = api.RoleBindings(o.Namespace).Update(ctx, o, update)
		}
	case *rbacv1.ClusterRoleBinding:
		if made, err = api.ClusterRoleBindings().Create(ctx, o, create); apierrors.IsAlreadyExists(err) {
			made, err = api.ClusterRoleBindings().Update(ctx, o, update)
		}
	default:
		err = fmt.Errorf("%T is not an RBAC object", o)
	}
	if err != nil {
		w.t.Fatalf("write %s: %v", c.Key, err)
	}
	return made.GetResourceVersion()
}

// content returns what decisions depend on.
func content(object any) any {
	switch o := object.(type) {
	case *rbacv1.Role:
		return [2]any{o.Rules, nil}
	case *rbacv1.ClusterRole:
		return [2]any{o.Rules, o.AggregationRule}
	case *rbacv1.RoleBinding:
		return [2]any{o.Subjects, o.RoleRef}
	case *rbacv1.ClusterRoleBinding:
		return [2]any{o.Subjects, o.RoleRef}
	}
	return nil
}
