package rbacindex_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// bootstrap returns the RBAC objects of a freshly started kube-apiserver.
func bootstrap(tb testing.TB) []any {
	tb.Helper()
	raw, err := os.ReadFile("testdata/bootstrap.json")
	if err != nil {
		tb.Fatal(err)
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(raw, &list); err != nil {
		tb.Fatal(err)
	}
	var out []any
	for _, item := range list.Items {
		var kind metav1.TypeMeta
		if err := json.Unmarshal(item, &kind); err != nil {
			tb.Fatal(err)
		}
		o, _, err := rbacindex.FromJSON(kind.Kind, item)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// workload is a large policy around the bootstrap one: n ClusterRoleBindings, n RoleBindings
// in up to 5,000 namespaces, roles as people write them.
type workload struct {
	n, namespaces int
	objects       []any
}

var workloadResources = []struct{ group, resource string }{
	{"", "pods"}, {"", "pods/log"}, {"", "services"}, {"", "configmaps"}, {"", "secrets"}, {"", "endpoints"}, {"", "events"},
	{"", "persistentvolumeclaims"}, {"apps", "deployments"}, {"apps", "deployments/scale"}, {"apps", "statefulsets"},
	{"apps", "daemonsets"}, {"apps", "replicasets"}, {"batch", "jobs"}, {"batch", "cronjobs"}, {"networking.k8s.io", "ingresses"},
	{"networking.k8s.io", "networkpolicies"}, {"autoscaling", "horizontalpodautoscalers"}, {"policy", "poddisruptionbudgets"},
	{"coordination.k8s.io", "leases"},
}

var workloadVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

const (
	workloadRoles  = 500 // distinct ClusterRoles that bindings share
	workloadGroups = 200
)

func newWorkload(tb testing.TB, n int) *workload {
	w := &workload{n: n, namespaces: max(1, min(5000, n/10)), objects: bootstrap(tb)}
	if n == 0 {
		return w
	}
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	for i := range workloadRoles {
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-role-%d", i)}}
		for range 1 + rng.IntN(4) {
			res := workloadResources[rng.IntN(len(workloadResources))]
			rule := rbacv1.PolicyRule{APIGroups: []string{res.group}, Resources: []string{res.resource}}
			for _, v := range rng.Perm(len(workloadVerbs))[:1+rng.IntN(4)] {
				rule.Verbs = append(rule.Verbs, workloadVerbs[v])
			}
			r.Rules = append(r.Rules, rule)
		}
		w.objects = append(w.objects, r)
	}
	names := rbacv1.PolicyRule{Verbs: []string{"get", "update"}, APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}}
	for i := range 50 {
		names.ResourceNames = append(names.ResourceNames, fmt.Sprintf("named-%d", i))
	}
	w.objects = append(w.objects, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "names"}, Rules: []rbacv1.PolicyRule{names}})
	for i := range n {
		w.objects = append(w.objects, w.clusterBinding(i), w.roleBinding(i))
	}
	return w
}

func (w *workload) clusterBinding(i int) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("crb-%06d", i)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprintf("team-role-%d", i%workloadRoles)},
	}
	switch {
	case i%5 == 0 && i/5 < workloadGroups:
		b.Subjects = []rbacv1.Subject{{Kind: "Group", Name: fmt.Sprintf("group-%d", i/5)}}
	case i == 1:
		b.RoleRef.Name = "names"
		b.Subjects = []rbacv1.Subject{{Kind: "User", Name: "named"}}
	default:
		b.Subjects = []rbacv1.Subject{{Kind: "User", Name: fmt.Sprintf("user-%d", i)}}
	}
	return b
}

func (w *workload) roleBinding(i int) *rbacv1.RoleBinding {
	ns := fmt.Sprintf("ns-%d", i%w.namespaces)
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("rb-%06d", i)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}
	switch i % 3 {
	case 0:
		b.Subjects = []rbacv1.Subject{{Kind: "User", Name: fmt.Sprintf("user-%d", i)}}
	case 1:
		b.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Name: "runner", Namespace: ns}}
	default:
		b.Subjects = []rbacv1.Subject{{Kind: "Group", Name: fmt.Sprintf("tenant-%d", i%97)},
			{Kind: "User", Name: fmt.Sprintf("lead-%d", i)}}
	}
	return b
}

// workloadCases are the kinds of requests that are measured.
var workloadCases = []string{"allow-first", "allow-last", "deny", "groups200", "namespaced", "resourceNames"}

// requests makes count distinct requests of one kind, by a few known subjects.
func (w *workload) requests(kind string, count int) []rbacindex.Attributes {
	rng := rand.New(rand.NewPCG(99, 1))
	authenticated := []string{"system:authenticated"}
	var many []string
	for i := range workloadGroups {
		many = append(many, fmt.Sprintf("group-%d", i))
	}
	many = append(many, "system:authenticated")
	out := make([]rbacindex.Attributes, count)
	for i := range out {
		res := workloadResources[rng.IntN(len(workloadResources))]
		a := rbacindex.Attributes{
			ResourceRequest: true, Verb: workloadVerbs[rng.IntN(len(workloadVerbs))], APIGroup: res.group,
			Resource: res.resource, Namespace: fmt.Sprintf("ns-%d", rng.IntN(w.namespaces)), Name: fmt.Sprintf("object-%d", i),
			Groups: authenticated,
		}
		if head, tail, ok := cut(res.resource); ok {
			a.Resource, a.Subresource = head, tail
		}
		switch kind {
		case "allow-first":
			a.User, a.Groups = "admin", []string{"system:masters", "system:authenticated"}
		case "allow-last":
			// What the last binding's user may do, cycling through names.
			a.User = fmt.Sprintf("user-%d", w.n-1)
			if w.n == 0 {
				a.User = "system:kube-scheduler"
				a.APIGroup, a.Resource, a.Subresource, a.Verb = "", "pods", "", "list"
			} else {
				role := w.lastRole()
				rule := role.Rules[rng.IntN(len(role.Rules))]
				a.APIGroup, a.Verb = rule.APIGroups[0], rule.Verbs[rng.IntN(len(rule.Verbs))]
				a.Resource, a.Subresource = rule.Resources[0], ""
				if head, tail, ok := cut(rule.Resources[0]); ok {
					a.Resource, a.Subresource = head, tail
				}
			}
		case "deny":
			a.User = fmt.Sprintf("stranger-%d", rng.IntN(64))
		case "groups200":
			a.User, a.Groups = "member", many
		case "namespaced":
			j := 3 * rng.IntN(max(1, w.n/3))
			a.User, a.Namespace = fmt.Sprintf("user-%d", j), fmt.Sprintf("ns-%d", j%w.namespaces)
			a.Verb = "get"
		case "resourceNames":
			a.User, a.APIGroup, a.Resource, a.Subresource = "named", "", "secrets", ""
			a.Name = fmt.Sprintf("named-%d", rng.IntN(100))
		}
		out[i] = a
	}
	return out
}

func (w *workload) lastRole() *rbacv1.ClusterRole {
	name := fmt.Sprintf("team-role-%d", (w.n-1)%workloadRoles)
	for _, o := range w.objects {
		if r, ok := o.(*rbacv1.ClusterRole); ok && r.Name == name {
			return r
		}
	}
	return nil
}

func cut(resource string) (head, tail string, ok bool) {
	for i := range len(resource) {
		if resource[i] == '/' {
			return resource[:i], resource[i+1:], true
		}
	}
	return resource, "", false
}
