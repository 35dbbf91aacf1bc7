package whatif

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

const twoDocuments = `# a comment
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader, labels: {team: shop}}
rules:
- {verbs: [get], apiGroups: [""], resources: [pods]}
---
---
apiVersion: v1
kind: List
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: readers, namespace: shop}
  subjects: [{kind: User, name: alice}, {kind: ServiceAccount, name: web}]
  roleRef: {kind: ClusterRole, name: reader}
`

func TestParse(t *testing.T) {
	list, err := Parse("draft.yaml", []byte(twoDocuments))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range list {
		got = append(got, fmt.Sprint(o.Key, " ", o.Line, o.Labels))
	}
	if want := "ClusterRole/reader 2 map[team:shop], RoleBinding/shop/readers 12 map[]"; strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
	b := list[1].Object.(*rbacv1.RoleBinding)
	if b.RoleRef.APIGroup != rbacv1.GroupName || b.Subjects[0].APIGroup != rbacv1.GroupName {
		t.Errorf("what an apiserver fills in is missing: %+v", b)
	}
	const object = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a","namespace":"b"}}`
	if list, err = Parse("x.json", []byte(object)); err != nil || list[0].Key.String() != "Role/b/a" {
		t.Errorf("%v, %v", list, err)
	}
}

func TestParseRefuses(t *testing.T) {
	const head = "apiVersion: rbac.authorization.k8s.io/v1\n"
	const cluster, bound = head + "kind: ClusterRole\nmetadata: {name: a}\n", head + "kind: ClusterRoleBinding\nmetadata: {name: a}\n"
	for text, want := range map[string]string{
		"":                                       "f: it holds no object",
		"a: [":                                   "f: line 1: did not find",
		"- a":                                    "f:1: it is not a Kubernetes object",
		"a: 1":                                   "f:1: kind is missing",
		"\nkind: ClusterRoles":                   `f:2: kind "ClusterRoles" is none of Role, `,
		"kind: ClusterRoles":                     "did you mean ClusterRole?",
		"kind: Role":                             `f:1: Role has apiVersion ""`,
		head + "kind: Role":                      "f:1: Role: metadata.name is missing",
		head + "kind: ClusterRole":               "metadata.name is missing",
		cluster + "rule: []":                     `ClusterRole a: unknown field "rule"`,
		cluster + "rules: [{verbs: get}]":        "cannot unmarshal",
		cluster + "---\n" + cluster:              "f:5: ClusterRole/a is in the draft twice, first at f:1",
		bound:                                    "roleRef.name is missing",
		bound + "roleRef: {kind: Role, name: a}": `roleRef.kind is "Role": want ClusterRole`,
		bound + "roleRef: {kind: ClusterRole, name: a}\nsubjects: [{kind: Robot, name: x}]": `subjects[0].kind is "Robot"`,
		head + "kind: Role\nmetadata: {name: a}":                                            "Role a: metadata.namespace is missing",
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestParseDelete(t *testing.T) {
	for text, want := range map[string]string{
		"ClusterRole/a:b": "ClusterRole/a:b", "rolebinding/shop/x": "RoleBinding/shop/x", "roles/shop/x": "Role/shop/x",
		"Role/x": "names no namespace", "x": "is not an object", "ClusterRol/x": "did you mean ClusterRole?",
	} {
		o, err := ParseDelete(text)
		if got := fmt.Sprint(o.Key, err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestSimulate: what a draft does to each object, aggregated roles and what an apiserver would refuse.
func TestSimulate(t *testing.T) {
	role := func(name, verb string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
	}
	all := role("all", "get")
	toAll := map[string]string{"to": "all"}
	all.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: toAll}}}
	bound := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
		Kind: "ClusterRole", Name: "all"}}
	policy, err := rbacindex.New(all, role("part", "get"), role("same", "get"), bound)
	if err != nil {
		t.Fatal(err)
	}
	other := bound.DeepCopy()
	other.RoleRef.Name = "prt"
	draft := []Object{
		{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "part"}, Object: role("part", "list"), Labels: toAll},
		{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "same"}, Object: role("same", "get")},
		{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "new"}, Object: role("new", "watch"), Labels: toAll},
		{Key: rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "b"}, Object: other},
	}
	labelled := func(k rbacindex.Key) (map[string]string, bool) { return map[string]string{"to": k.Name}, true }
	sim, err := Simulate(state.View{RBAC: policy}, draft, labelled)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(sim.Changed), "[ClusterRole/all ClusterRole/new ClusterRole/part ClusterRoleBinding/b]"; got != want {
		t.Errorf("changed are %s, want %s", got, want)
	}
	o, _ := sim.After.RBAC.Get(rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "all"})
	rules, _ := rbacindex.RulesOf(o)
	if len(rules) != 2 || rules[0].Verbs[0] != "watch" || rules[1].Verbs[0] != "list" {
		t.Errorf("the aggregated role holds %v", rules)
	}
	notes := strings.Join(sim.Notes, "\n")
	for _, want := range []string{"an apiserver refuses to change that",
		"names ClusterRole/prt, which does not exist; did you mean ClusterRole/part"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes are %q, want %s", notes, want)
		}
	}
	unlabelled := func(rbacindex.Key) (map[string]string, bool) { return nil, false }
	if sim, err = Simulate(state.View{RBAC: policy}, draft, unlabelled); err != nil ||
		!sim.After.IsUnknown(rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "all"}) {
		t.Errorf("without labels the aggregated role is known: %v", err)
	}
	_, err = Simulate(state.View{RBAC: policy}, []Object{{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "prt"}}}, labelled)
	if err == nil || !strings.Contains(err.Error(), "there is no ClusterRole/prt to delete; did you mean ClusterRole/part") {
		t.Errorf("deleting what is not there: %v", err)
	}
}

// TestReads: only requests of holders are read, unless a draft concerns groups, or a role that anybody may bind.
func TestReads(t *testing.T) {
	bind := func(kind string) *Simulation {
		o := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: kind, Name: "x"},
			{Kind: "User", Name: "alice"}}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "r"}}
		k := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "b"}
		sim, err := Simulate(state.View{RBAC: rbacindex.Empty()}, []Object{{Key: k, Object: o}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return sim
	}
	for _, of := range []struct {
		kind, want string
		subjects   []string
	}{{"User", "[alice x]", nil}, {"Group", "[]", nil}, {"Group", "[bob]", []string{"bob"}}} {
		if got := fmt.Sprint(New(bind(of.kind), Options{Subjects: of.subjects}).Reads()); got != of.want {
			t.Errorf("of a %s and %v: %s, want %s", of.kind, of.subjects, got, of.want)
		}
	}
}

func TestRead(t *testing.T) {
	list, err := Read(map[string]string{"b.yaml": twoDocuments}, []string{"ClusterRole/old", "clusterroles/old"})
	if err != nil || len(list) != 3 || list[0].File != "b.yaml" || list[2].Object != nil {
		t.Errorf("%+v, %v", list, err)
	}
	for says, deletes := range map[string][]string{
		"ClusterRole/reader is in the draft twice, first at a.yaml:2":          {},
		"ClusterRole/reader is to be deleted, and is in the draft at a.yaml:2": {"ClusterRole/reader"},
	} {
		files := map[string]string{"a.yaml": twoDocuments, "b.yaml": twoDocuments}
		if len(deletes) > 0 {
			delete(files, "b.yaml")
		}
		if _, err := Read(files, deletes); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
