package authorizer_test

import (
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	rbacinformers "k8s.io/client-go/informers/rbac/v1"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"

	ours "github.com/retrial-io/retrial/rbacindex/authorizer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// informers are the four informers of a cluster.
type informers struct {
	clusterRoles, roles, clusterRoleBindings, roleBindings cache.SharedIndexInformer
}

type clusterRoles struct{ cache.SharedIndexInformer }
type roles struct{ cache.SharedIndexInformer }
type clusterRoleBindings struct{ cache.SharedIndexInformer }
type roleBindings struct{ cache.SharedIndexInformer }

func (i clusterRoles) Informer() cache.SharedIndexInformer        { return i.SharedIndexInformer }
func (i roles) Informer() cache.SharedIndexInformer               { return i.SharedIndexInformer }
func (i clusterRoleBindings) Informer() cache.SharedIndexInformer { return i.SharedIndexInformer }
func (i roleBindings) Informer() cache.SharedIndexInformer        { return i.SharedIndexInformer }

func (i clusterRoles) Lister() rbaclisters.ClusterRoleLister {
	return rbaclisters.NewClusterRoleLister(i.GetIndexer())
}
func (i roles) Lister() rbaclisters.RoleLister { return rbaclisters.NewRoleLister(i.GetIndexer()) }
func (i clusterRoleBindings) Lister() rbaclisters.ClusterRoleBindingLister {
	return rbaclisters.NewClusterRoleBindingLister(i.GetIndexer())
}
func (i roleBindings) Lister() rbaclisters.RoleBindingLister {
	return rbaclisters.NewRoleBindingLister(i.GetIndexer())
}

func (i informers) ClusterRoles() rbacinformers.ClusterRoleInformer {
	return clusterRoles{i.clusterRoles}
}
func (i informers) Roles() rbacinformers.RoleInformer { return roles{i.roles} }
func (i informers) ClusterRoleBindings() rbacinformers.ClusterRoleBindingInformer {
	return clusterRoleBindings{i.clusterRoleBindings}
}
func (i informers) RoleBindings() rbacinformers.RoleBindingInformer {
	return roleBindings{i.roleBindings}
}

// script is an informer that delivers what a test says, when it says so. What is not
// implemented here is not called.
type script struct {
	cache.SharedIndexInformer
	refuse error // what adding a handler returns

	mu      sync.Mutex
	handler cache.ResourceEventHandler
	removed int
	synced  chan struct{}
}

func (s *script) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler,
	_ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.handler = h
	return s, nil
}

func (s *script) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed++
	return nil
}

func (s *script) HasSyncedChecker() cache.DoneChecker { return s }
func (s *script) Name() string                        { return "script" }
func (s *script) Done() <-chan struct{}               { return s.synced }

// cluster is an Authorizer on four scripts.
type cluster struct {
	*ours.Authorizer
	t                                                      testing.TB
	clusterRoles, roles, clusterRoleBindings, roleBindings *script
}

func newScript() *script { return &script{synced: make(chan struct{})} }

// newCluster returns a cluster before its first lists. cfg's informers are filled in.
func newCluster(t testing.TB, cfg ours.Config) *cluster {
	t.Helper()
	c := &cluster{t: t, clusterRoles: newScript(), roles: newScript(), clusterRoleBindings: newScript(), roleBindings: newScript()}
	cfg.Informers = c.informers()
	a, err := ours.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	c.Authorizer = a
	return c
}

func (c *cluster) informers() informers {
	return informers{clusterRoles: c.clusterRoles, roles: c.roles, clusterRoleBindings: c.clusterRoleBindings, roleBindings: c.roleBindings}
}

func (c *cluster) scripts() []*script {
	return []*script{c.clusterRoles, c.roles, c.clusterRoleBindings, c.roleBindings}
}

// of returns the informer of an object's kind.
func (c *cluster) of(object any) *script {
	switch object.(type) {
	case *rbacv1.ClusterRole:
		return c.clusterRoles
	case *rbacv1.Role:
		return c.roles
	case *rbacv1.ClusterRoleBinding:
		return c.clusterRoleBindings
	case *rbacv1.RoleBinding:
		return c.roleBindings
	}
	c.t.Fatalf("no informer delivers %T", object)
	return nil
}

// list delivers objects as first lists, and completes them.
func (c *cluster) list(objects ...any) {
	c.t.Helper()
	for _, o := range objects {
		c.of(o).handler.OnAdd(o, true)
	}
	for _, s := range c.scripts() {
		close(s.synced)
	}
	c.until(c.HasSynced)
}

// until waits for something to become true with one of the next Snapshots.
func (c *cluster) until(ok func() bool) {
	c.t.Helper()
	for {
		_, replaced := c.Snapshot()
		if ok() {
			return
		}
		select {
		case <-replaced:
		case <-c.t.Context().Done():
			c.t.Fatal("it did not come true")
		}
	}
}

// ask returns the decision on one of requests, as text.
func (c *cluster) ask(who, verb, namespace, resource string) (authorizer.Decision, string) {
	c.t.Helper()
	d, reason, err := c.Authorize(c.t.Context(), authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: who, Groups: []string{"system:authenticated"}}, Verb: verb, Namespace: namespace, Resource: resource,
		ResourceRequest: true})
	if err != nil {
		c.t.Errorf("Authorize returns the error %v; the RBAC authorizer never has one", err)
	}
	return d, reason
}

func (c *cluster) allowed(who, verb, namespace, resource string) bool {
	d, _ := c.ask(who, verb, namespace, resource)
	return d == authorizer.DecisionAllow
}

func clusterRole(name string, verbs ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"pods"}}}}
}

func role(namespace, name string, verbs ...string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Rules: []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"pods"}}}}
}

// bindCluster returns a ClusterRoleBinding of a user to a ClusterRole.
func bindCluster(name, clusterRole, who string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: who}}}
}

// bind returns a RoleBinding of a user.
func bind(namespace, name, kind, role, who string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}, Subjects: []rbacv1.Subject{{Kind: "User", Name: who}}}
}
