package authorizer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	ours "github.com/retrial-io/retrial/rbacindex/authorizer"
)

func TestDecisionsAndReasons(t *testing.T) {
	paths := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "paths"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics/*"}}}}
	runner := bind("shop", "runner", "ClusterRole", "view", "")
	runner.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Name: "ci"}}
	odd := bindCluster("odd", "view", "odd")
	odd.RoleRef.Kind = "Rolle"
	named := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "named"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"},
			ResourceNames: []string{"web"}}}}
	c := newCluster(t, ours.Config{})
	c.list(clusterRole("view", "get"), role("shop", "edit", "update"), paths, named, runner, odd,
		bindCluster("all-view", "view", "alice"), bind("shop", "edit", "Role", "edit", "alice"), bind("shop", "view", "ClusterRole", "view",
			"alice"),
		bindCluster("gone", "gone", "bob"), bind("shop", "b1", "Role", "edit", "bob"),
		bindCluster("gone1", "gone", "carl"), bind("shop", "c1", "Role", "lost", "carl"), bind("shop", "c2", "ClusterRole", "gone", "carl"),
		bind("shop", "o", "Role", "lost", "odd"), bindCluster("paths", "paths", "prometheus"), bindCluster("named", "named", "scaler"))
	record := func(who, verb, namespace, resource string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{User: &user.DefaultInfo{Name: who}, Verb: verb, Namespace: namespace, Resource: resource,
			APIVersion: "v1", ResourceRequest: true}
	}
	scale := record("scaler", "get", "shop", "deployments")
	scale.APIGroup, scale.Subresource, scale.Name = "apps", "scale", "web"
	other := scale
	other.Name = "db"
	path := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "prometheus"}, Verb: "get", Path: "/metrics/cadvisor"}
	allow, none := authorizer.DecisionAllow, authorizer.DecisionNoOpinion
	for _, tt := range []struct {
		name    string
		request authorizer.AttributesRecord
		want    authorizer.Decision
		reason  string
	}{
		{"cluster-wide before the namespace", record("alice", "get", "shop", "pods"), allow,
			`RBAC: allowed by ClusterRoleBinding "all-view" of ClusterRole "view" to User "alice"`},
		{"in a namespace", record("alice", "update", "shop", "pods"), allow, `RBAC: allowed by RoleBinding "edit/shop" of Role ` +
			`"edit" to User "alice"`},
		{"not in another", record("alice", "update", "bank", "pods"), none, ""},
		{"service account of the binding's namespace", record("system:serviceaccount:shop:ci", "get", "shop", "pods"), allow,
			`RBAC: allowed by RoleBinding "runner/shop" of ClusterRole "view" to ServiceAccount "ci/shop"`},
		{"allowed in spite of a missing role", record("bob", "update", "shop", "pods"), allow,
			`RBAC: allowed by RoleBinding "b1/shop" of Role "edit" to User "bob"`},
		{"one missing role", record("bob", "get", "shop", "pods"), none, `RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`},
		{"several missing roles, each once", record("carl", "get", "shop", "pods"), none, `RBAC: [clusterrole.rbac.authorization.k8s.io ` +
			`"gone" not found, role.rbac.authorization.k8s.io "lost" not found]`},
		{"errors of ClusterRoleBindings first", record("odd", "get", "shop", "pods"), none,
			`RBAC: [unsupported role reference kind: "Rolle", role.rbac.authorization.k8s.io "lost" not found]`},
		{"nobody", record("nobody", "get", "shop", "pods"), none, ""},
		{"subresource by name", scale, allow, `RBAC: allowed by ClusterRoleBinding "named" of ClusterRole "named" to User "scaler"`},
		{"subresource of another name", other, none, ""},
		{"path", path, allow, `RBAC: allowed by ClusterRoleBinding "paths" of ClusterRole "paths" to User "prometheus"`},
		{"without a user", authorizer.AttributesRecord{Verb: "get", Path: "/metrics/cadvisor"}, none, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, reason, err := c.Authorize(t.Context(), tt.request)
			if got != tt.want || reason != tt.reason || err != nil {
				t.Errorf("got %v, %q, %v; want %v, %q, no error", got, reason, err, tt.want, tt.reason)
			}
		})
	}
}

func TestRulesFor(t *testing.T) {
	both := clusterRole("both", "get")
	both.Rules[0].NonResourceURLs, both.Rules[0].ResourceNames = []string{"/healthz"}, []string{"a"}
	c := newCluster(t, ours.Config{})
	c.list(both, role("shop", "edit", "update"), bindCluster("all", "both", "alice"), bind("shop", "again", "ClusterRole", "both", "alice"),
		bind("shop", "edit", "Role", "edit", "alice"), bind("shop", "lost", "Role", "lost", "alice"), bind("shop", "lost2", "Role", "lost",
			"alice"))
	for _, tt := range []struct {
		namespace        string
		resources, paths []string
		err              string
	}{
		{"", []string{"get pods a"}, []string{"get /healthz"}, ""},
		{"bank", []string{"get pods a"}, []string{"get /healthz"}, ""},
		{"shop", []string{"get pods a", "get pods a", "update pods "}, []string{"get /healthz", "get /healthz"},
			`role.rbac.authorization.k8s.io "lost" not found`},
	} {
		resources, paths, incomplete, err := c.RulesFor(t.Context(), &user.DefaultInfo{Name: "alice"}, tt.namespace)
		var gotResources, gotPaths []string
		for _, r := range resources {
			gotResources = append(gotResources, strings.Join([]string{r.GetVerbs()[0], r.GetResources()[0],
				strings.Join(r.GetResourceNames(), ",")}, " "))
			if !slices.Equal(r.GetAPIGroups(), []string{""}) {
				t.Errorf("%s: API groups %q", tt.namespace, r.GetAPIGroups())
			}
		}
		for _, r := range paths {
			gotPaths = append(gotPaths, r.GetVerbs()[0]+" "+r.GetNonResourceURLs()[0])
		}
		if !slices.Equal(gotResources, tt.resources) || !slices.Equal(gotPaths, tt.paths) || incomplete {
			t.Errorf("%s: got %q, %q, incomplete %v", tt.namespace, gotResources, gotPaths, incomplete)
		}
		if text := fmt.Sprint(err); err != nil && text != tt.err || err == nil && tt.err != "" {
			t.Errorf("%s: error %q, want %q", tt.namespace, text, tt.err)
		}
		if err != nil {
			list, ok := err.(interface{ Errors() []error })
			if !ok || len(list.Errors()) != 2 || !apierrors.IsNotFound(list.Errors()[0]) {
				t.Errorf("%s: the error is not a list of two that say not found: %#v", tt.namespace, err)
			}
		}
	}
	if resources, paths, incomplete, err := c.RulesFor(t.Context(), nil, "shop"); resources != nil || paths != nil || incomplete ||
		err != nil {
		t.Errorf("without a user: %v, %v, %v, %v", resources, paths, incomplete, err)
	}
}

func TestBeforeTheFirstListsAreComplete(t *testing.T) {
	c := newCluster(t, ours.Config{})
	c.clusterRoles.handler.OnAdd(clusterRole("view", "get"), true)
	c.clusterRoleBindings.handler.OnAdd(bindCluster("alice", "view", "alice"), true)
	for _, s := range []*script{c.clusterRoles, c.roles, c.clusterRoleBindings} {
		close(s.synced)
	}
	if c.HasSynced() {
		t.Error("synced with one of four lists missing")
	}
	if s, _ := c.Snapshot(); s != nil {
		t.Error("there is a snapshot before the lists are complete")
	}
	if d, reason := c.ask("alice", "get", "", "pods"); d != authorizer.DecisionNoOpinion || reason != ours.ErrNotSynced.Error() {
		t.Errorf("got %v, %q", d, reason)
	}
	if resources, paths, incomplete, err := c.RulesFor(t.Context(), &user.DefaultInfo{Name: "alice"}, ""); len(resources)+len(paths) > 0 ||
		!incomplete || !errors.Is(err, ours.ErrNotSynced) {
		t.Errorf("got %v, %v, %v, %v", resources, paths, incomplete, err)
	}
	close(c.roleBindings.synced)
	c.until(c.HasSynced)
	if !c.allowed("alice", "get", "", "pods") {
		t.Error("refused after the lists were complete")
	}
}

// TestReadersAgainstUpdates is for the race detector: decisions and rules while bindings come
// and go.
func TestReadersAgainstUpdates(t *testing.T) {
	c := newCluster(t, ours.Config{})
	c.list(clusterRole("view", "get"), bindCluster("steady", "view", "alice"))
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !c.allowed("alice", "get", "", "pods") {
					t.Error("refused what is allowed all the time")
					return
				}
				c.ask("bob", "get", "shop", "pods")
				if _, _, _, err := c.RulesFor(t.Context(), &user.DefaultInfo{Name: "bob"}, "shop"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	b := bind("shop", "b", "ClusterRole", "view", "bob")
	for i := range 300 {
		c.roleBindings.handler.OnAdd(b, false)
		c.clusterRoleBindings.handler.OnAdd(bindCluster(fmt.Sprint("b", i), "view", fmt.Sprint("user", i)), false)
		c.roleBindings.handler.OnDelete(b)
	}
	c.until(func() bool {
		return c.allowed("user299", "get", "", "pods") && !c.allowed("bob", "get", "shop", "pods")
	})
	close(stop)
	readers.Wait()
}
