package authorizer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	framework "k8s.io/client-go/tools/cache/testing"

	ours "github.com/retrial-io/retrial/rbacindex/authorizer"
)

func TestFirstListsMakeOneSnapshot(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	c := newCluster(t, ours.Config{Registerer: reg})
	objects := []any{clusterRole("view", "get")}
	for i := range 2000 {
		objects = append(objects, bindCluster(fmt.Sprint("b", i), "view", fmt.Sprint("user", i)))
	}
	// Listed, and gone again before the lists were complete.
	ghost := bindCluster("ghost", "view", "ghost")
	c.clusterRoleBindings.handler.OnAdd(ghost, true)
	c.clusterRoleBindings.handler.OnDelete(ghost)
	c.list(objects...)
	if !c.allowed("user1999", "get", "", "pods") || c.allowed("ghost", "get", "", "pods") {
		t.Error("the policy is not that of the lists")
	}
	want := `
# HELP retrial_authorizer_snapshots_total Times the policy decisions are made on was replaced.
# TYPE retrial_authorizer_snapshots_total counter
retrial_authorizer_snapshots_total 1
# HELP retrial_authorizer_changes_total Objects changed by those replacements, each once per replacement.
# TYPE retrial_authorizer_changes_total counter
retrial_authorizer_changes_total 2001
# HELP retrial_authorizer_objects RBAC objects decisions are made on, by kind; absent before the first lists are complete.
# TYPE retrial_authorizer_objects gauge
retrial_authorizer_objects{kind="ClusterRole"} 1
retrial_authorizer_objects{kind="ClusterRoleBinding"} 2000
retrial_authorizer_objects{kind="Role"} 0
retrial_authorizer_objects{kind="RoleBinding"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "retrial_authorizer_snapshots_total",
		"retrial_authorizer_changes_total", "retrial_authorizer_objects"); err != nil {
		t.Error(err)
	}
}

func TestEmptyClusterSyncs(t *testing.T) {
	c := newCluster(t, ours.Config{})
	c.list()
	if d, reason := c.ask("alice", "get", "", "pods"); reason != "" {
		t.Errorf("got %v, %q", d, reason)
	}
}

func TestEventsChangeDecisions(t *testing.T) {
	c := newCluster(t, ours.Config{})
	c.list(clusterRole("view", "get"), bindCluster("alice", "view", "alice"))
	get := func(who string) func() bool { return func() bool { return c.allowed(who, "get", "shop", "pods") } }
	not := func(f func() bool) func() bool { return func() bool { return !f() } }

	bob := bind("shop", "bob", "Role", "reader", "bob")
	c.roleBindings.handler.OnAdd(bob, false)
	c.until(func() bool {
		_, reason := c.ask("bob", "get", "shop", "pods")
		return reason == `RBAC: role.rbac.authorization.k8s.io "reader" not found`
	})
	reader := role("shop", "reader", "get")
	c.roles.handler.OnAdd(reader, false)
	c.until(get("bob"))
	lister := role("shop", "reader", "list")
	c.roles.handler.OnUpdate(reader, lister)
	c.until(not(get("bob")))
	c.roles.handler.OnUpdate(lister, reader)
	c.until(get("bob"))
	carl := bind("shop", "bob", "Role", "reader", "carl")
	c.roleBindings.handler.OnUpdate(bob, carl)
	c.until(get("carl"))
	if get("bob")() {
		t.Error("a binding still counts for whom it no longer names")
	}
	c.roleBindings.handler.OnDelete(carl)
	c.until(not(get("carl")))

	// A deletion the informer missed: the object may be old, or not an object at all.
	c.clusterRoleBindings.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "alice", Obj: nil})
	c.until(not(get("alice")))
	c.roleBindings.handler.OnAdd(carl, false)
	c.until(get("carl"))
	c.roleBindings.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/bob", Obj: bob})
	c.until(not(get("carl")))
}

func TestUpdatesOfNothingCostNothing(t *testing.T) {
	aggregate := clusterRole("sum", "get")
	aggregate.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchLabels: map[string]string{"a": "b"}}}}
	objects := []any{aggregate, role("shop", "edit", "update"), bindCluster("b", "sum", "alice"), bind("shop", "b", "Role", "edit",
		"alice")}
	reg := prometheus.NewPedanticRegistry()
	c := newCluster(t, ours.Config{Registerer: reg})
	c.list(objects...)
	before, _ := c.Snapshot()
	for _, o := range objects {
		c.of(o).handler.OnUpdate(o, o) // a resync
		touched := o.(runtime.Object).DeepCopyObject()
		touched.(metav1.Object).SetResourceVersion("7")
		touched.(metav1.Object).SetAnnotations(map[string]string{"seen": "yes"})
		c.of(o).handler.OnUpdate(o, touched)
	}
	if now, _ := c.Snapshot(); now != before {
		t.Error("the policy was replaced though nothing changed")
	}
	// Each thing that RBAC looks at makes a difference.
	for name, change := range map[string]func() (old, new any){
		"verbs":            func() (any, any) { return role("shop", "edit", "get"), role("shop", "edit", "list") },
		"aggregation rule": func() (any, any) { return aggregate, clusterRole("sum", "get") },
		"rules":            func() (any, any) { n := aggregate.DeepCopy(); n.Rules = nil; return aggregate, n },
		"resource names": func() (any, any) {
			n := aggregate.DeepCopy()
			n.Rules[0].ResourceNames = []string{"x"}
			return aggregate, n
		},
		"paths": func() (any, any) {
			n := aggregate.DeepCopy()
			n.Rules[0].NonResourceURLs = []string{"/x"}
			return aggregate, n
		},
		"subject": func() (any, any) { return bindCluster("b", "sum", "alice"), bindCluster("b", "sum", "bob") },
		"role": func() (any, any) {
			return bind("shop", "b", "Role", "edit", "alice"), bind("shop", "b", "Role", "view", "alice")
		},
	} {
		_, replaced := c.Snapshot()
		old, changed := change()
		c.of(old).handler.OnUpdate(old, changed)
		select {
		case <-replaced:
		case <-t.Context().Done():
			t.Errorf("%s: the change is not seen", name)
		}
	}
	want := `
# HELP retrial_authorizer_events_total Informer events by kind and event: added, updated, deleted, unchanged (an update of metadata), malformed.
# TYPE retrial_authorizer_events_total counter
`
	for _, line := range []string{
		`{event="added",kind="ClusterRole"} 1`, `{event="added",kind="ClusterRoleBinding"} 1`, `{event="added",kind="Role"} 1`,
		`{event="added",kind="RoleBinding"} 1`,
		`{event="deleted",kind="ClusterRole"} 0`, `{event="deleted",kind="ClusterRoleBinding"} 0`, `{event="deleted",kind="Role"} 0`,
		`{event="deleted",kind="RoleBinding"} 0`,
		`{event="malformed",kind="ClusterRole"} 0`, `{event="malformed",kind="ClusterRoleBinding"} 0`, `{event="malformed",kind="Role"} 0`,
		`{event="malformed",kind="RoleBinding"} 0`,
		`{event="unchanged",kind="ClusterRole"} 2`, `{event="unchanged",kind="ClusterRoleBinding"} 2`, `{event="unchanged",kind="Role"} 2`,
		`{event="unchanged",kind="RoleBinding"} 2`,
		`{event="updated",kind="ClusterRole"} 4`, `{event="updated",kind="ClusterRoleBinding"} 1`, `{event="updated",kind="Role"} 1`,
		`{event="updated",kind="RoleBinding"} 1`,
	} {
		want += "retrial_authorizer_events_total" + line + "\n"
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "retrial_authorizer_events_total"); err != nil {
		t.Error(err)
	}
}

// TestWhatCannotBeRead: an informer with a transform may deliver something else. It is
// reported, and what was known under that name no longer counts.
func TestWhatCannotBeRead(t *testing.T) {
	reported := 0
	kept := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) {
		if !strings.Contains(err.Error(), "ClusterRoleBinding") {
			t.Errorf("unexpected error: %v", err)
		}
		reported++
	}}
	defer func() { utilruntime.ErrorHandlers = kept }()
	c := newCluster(t, ours.Config{})
	alice := bindCluster("alice", "view", "alice")
	c.list(clusterRole("view", "get"), alice)
	h := c.clusterRoleBindings.handler
	h.OnAdd(&metav1.PartialObjectMetadata{}, false)
	h.OnAdd(clusterRole("another", "get"), false) // of another kind than the informer's
	h.OnDelete("alice")
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/b/c"})
	if !c.allowed("alice", "get", "", "pods") {
		t.Error("a binding was lost to events about something else")
	}
	h.OnUpdate(alice, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "alice"}})
	c.until(func() bool { return !c.allowed("alice", "get", "", "pods") })
	if reported != 5 {
		t.Errorf("%d events were reported, want 5", reported)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := ours.New(ours.Config{}); err == nil {
		t.Error("no informers, no error")
	}
	refused := errors.New("stopped")
	c := &cluster{t: t, clusterRoles: newScript(), roles: newScript(), clusterRoleBindings: newScript(), roleBindings: newScript()}
	c.roleBindings.refuse = refused
	if _, err := ours.New(ours.Config{Informers: c.informers()}); !errors.Is(err, refused) {
		t.Errorf("got %v, want the informer's error", err)
	}
	for i, s := range c.scripts()[:3] {
		if s.removed != 1 {
			t.Errorf("informer %d has its handler taken off %d times, want once", i, s.removed)
		}
	}
	reg := prometheus.NewRegistry()
	newCluster(t, ours.Config{Registerer: reg})
	c.roleBindings.refuse = nil
	if _, err := ours.New(ours.Config{Informers: c.informers(), Registerer: reg}); err == nil {
		t.Error("two on one registry, no error")
	}
}

func TestClose(t *testing.T) {
	unsynced := newCluster(t, ours.Config{})
	unsynced.Close()
	c := newCluster(t, ours.Config{})
	c.list(clusterRole("view", "get"), bindCluster("alice", "view", "alice"))
	before, _ := c.Snapshot()
	c.Close()
	c.Close()
	c.clusterRoleBindings.handler.OnDelete(bindCluster("alice", "view", "alice"))
	if now, _ := c.Snapshot(); now != before || !c.allowed("alice", "get", "", "pods") {
		t.Error("something changed after Close")
	}
	for i, s := range c.scripts() {
		if s.removed == 0 {
			t.Errorf("informer %d keeps its handler", i)
		}
	}
}

// TestRealInformers takes four informers through list, watch, and a watch that missed
// something.
func TestRealInformers(t *testing.T) {
	sources := map[string]*framework.FakeControllerSource{}
	stop := make(chan struct{})
	done := make(chan struct{})
	running := 0
	informer := func(name string, example runtime.Object) cache.SharedIndexInformer {
		sources[name] = framework.NewFakeControllerSource()
		i := cache.NewSharedIndexInformer(sources[name], example, 0, cache.Indexers{})
		running++
		go func() { i.Run(stop); done <- struct{}{} }()
		return i
	}
	in := informers{
		clusterRoles:        informer("clusterroles", &rbacv1.ClusterRole{}),
		roles:               informer("roles", &rbacv1.Role{}),
		clusterRoleBindings: informer("clusterrolebindings", &rbacv1.ClusterRoleBinding{}),
		roleBindings:        informer("rolebindings", &rbacv1.RoleBinding{}),
	}
	defer func() {
		close(stop)
		for range running {
			<-done
		}
		for _, s := range sources {
			s.Shutdown()
		}
	}()
	sources["clusterroles"].Add(clusterRole("view", "get"))
	sources["clusterrolebindings"].Add(bindCluster("alice", "view", "alice"))
	a, err := ours.New(ours.Config{Informers: in})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	c := &cluster{Authorizer: a, t: t}
	c.until(c.HasSynced)
	c.until(func() bool { return c.allowed("alice", "get", "", "pods") })
	sources["rolebindings"].Add(bind("shop", "bob", "ClusterRole", "view", "bob"))
	c.until(func() bool { return c.allowed("bob", "get", "shop", "pods") })
	sources["clusterroles"].Modify(clusterRole("view", "list"))
	c.until(func() bool { return c.allowed("bob", "list", "shop", "pods") })

	sources["clusterrolebindings"].DeleteDropWatch(bindCluster("alice", "view", "alice"))
	sources["clusterrolebindings"].ResetWatch()
	c.until(func() bool { return !c.allowed("alice", "list", "", "pods") })
	if !c.allowed("bob", "list", "shop", "pods") {
		t.Error("another informer's objects are gone")
	}
}
