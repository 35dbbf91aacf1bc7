package linearscan_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/retrial-io/retrial/internal/linearscan"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/test/policyshape"
)

func TestAllows(t *testing.T) {
	role := func(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	}
	binding := func(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: subjects,
		}
	}
	s, err := linearscan.New([]any{
		role("pods", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods", "*/status"}}),
		role(
			"named",
			rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ResourceNames: []string{"one"}},
		),
		role("paths", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz/*"}}),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "local"}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"list"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}},
		}},
		binding("b1", "pods", rbacv1.Subject{Kind: "User", Name: "ann"}),
		binding("b2", "named", rbacv1.Subject{Kind: "Group", Name: "of-bob"}),
		binding("b3", "paths", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "a", Name: "probe"}),
		binding("b4", "missing", rbacv1.Subject{Kind: "User", Name: "ann"}),
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "r1"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "local"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "runner"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	of := func(user, verb, group, resource, namespace, name string) rbacindex.Attributes {
		resource, sub, _ := strings.Cut(resource, "/")
		return rbacindex.Attributes{
			User: user, Groups: []string{"of-" + user}, Verb: verb, APIGroup: group, Resource: resource, Subresource: sub,
			Namespace: namespace, Name: name, ResourceRequest: true,
		}
	}
	const probe, runner = "system:serviceaccount:a:probe", "system:serviceaccount:a:runner"
	for name, tt := range map[string]struct {
		request rbacindex.Attributes
		want    bool
	}{
		"user":                       {of("ann", "get", "", "pods", "", ""), true},
		"another verb":               {of("ann", "list", "", "pods", "", ""), false},
		"subresource of all":         {of("ann", "get", "", "nodes/status", "", ""), true},
		"subresource":                {of("ann", "get", "", "pods/log", "", ""), false},
		"group, name":                {of("bob", "delete", "x", "y", "", "one"), true},
		"group, another name":        {of("bob", "delete", "x", "y", "", "two"), false},
		"account of the namespace":   {of(runner, "list", "apps", "deployments", "a", ""), true},
		"account, another namespace": {of(runner, "list", "apps", "deployments", "b", ""), false},
		"path":                       {rbacindex.Attributes{User: probe, Verb: "get", Path: "/healthz/etcd"}, true},
		"path above":                 {rbacindex.Attributes{User: probe, Verb: "get", Path: "/healthz"}, false},
	} {
		if got, err := s.Allows(record(&tt.request)); err != nil || got != tt.want {
			t.Errorf("%s: %t, %v, want %t", name, got, err, tt.want)
		}
	}
	if _, err := linearscan.New([]any{"no object"}); err == nil {
		t.Error("a string was taken for an RBAC object")
	}
}

// TestAgreesWithIndex decides requests on generated policies of every shape twice.
func TestAgreesWithIndex(t *testing.T) {
	decisions := map[bool]int{}
	for seed := range uint64(200) {
		p := policyshape.Generate(seed, 20_000)
		scan, err := linearscan.New(p.Objects)
		if err != nil {
			t.Fatal(err)
		}
		index, err := rbacindex.New(p.Objects...)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			a := rbacindex.Attributes{
				User: fmt.Sprintf("user-%d", p.IntN(max(1, p.Users))), Groups: []string{"system:authenticated"}, ResourceRequest: true,
				Verb: p.Pick(
					p.Verbs,
					"get",
				), APIGroup: p.Pick(p.Groups, ""), Resource: p.Pick(p.Resources, "pods"), Name: p.Pick(p.Names, "x"),
			}
			if p.IntN(4) == 0 {
				a = rbacindex.Attributes{User: a.User, Groups: a.Groups, Verb: a.Verb, Path: p.Pick(p.Paths, "/healthz")}
			}
			want := index.Authorize(&a, nil).Allowed
			if got, err := scan.Allows(record(&a)); err != nil || got != want {
				t.Fatalf("seed %d: %+v: the scan says %t, %v, the index %t", seed, a, got, err, want)
			}
			decisions[want]++
		}
	}
	if decisions[true] < 50 || decisions[false] < 50 {
		t.Errorf("allowed and refused: %v: one of them is hardly tested", decisions)
	}
}

func record(a *rbacindex.Attributes) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: a.User, Groups: a.Groups}, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup,
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path,
	}
}
