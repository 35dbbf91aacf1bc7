package escalation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/escalation"
	"github.com/retrial-io/retrial/rbacindex"
)

// bootstrap returns the RBAC objects of a freshly started kube-apiserver.
func bootstrap(tb testing.TB) []any {
	tb.Helper()
	raw, err := os.ReadFile("../../rbacindex/testdata/bootstrap.json")
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

func snapshot(tb testing.TB, objects ...any) *rbacindex.Snapshot {
	tb.Helper()
	s, err := rbacindex.New(objects...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// line formats a path as a person reads it.
func line(p *escalation.Path) string {
	var b strings.Builder
	b.WriteString(p.From.String())
	for _, s := range p.Steps {
		fmt.Fprintf(&b, " —%s", s.Edge)
		if s.Namespace != "" {
			fmt.Fprintf(&b, " in %s", s.Namespace)
		}
		if len(s.Presumes) > 0 {
			b.WriteString("?")
		}
		fmt.Fprintf(&b, "→ %s", s.To)
	}
	for _, r := range p.Holds {
		for _, g := range r.Grants {
			fmt.Fprintf(&b, " (%s)", g.BindingKey())
		}
	}
	return b.String()
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

// right is one rule of somebody, everywhere or in a namespace.
type right struct {
	in, verb, group, resource, name string
}

func (r right) String() string {
	return strings.TrimSpace(strings.Join([]string{r.verb, r.resource, r.name, r.in}, " "))
}

// give creates a role and a binding for each right of a user.
func give(user string, rights ...right) []any {
	var out []any
	subject := []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}}
	for i, r := range rights {
		name := fmt.Sprintf("%s-%d", user, i+1)
		rule := rbacv1.PolicyRule{Verbs: []string{r.verb}, APIGroups: []string{r.group}, Resources: []string{r.resource}}
		if r.name != "" {
			rule.ResourceNames = []string{r.name}
		}
		meta := metav1.ObjectMeta{Name: name, Namespace: r.in}
		if r.in != "" {
			out = append(out, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}},
				&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subject, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name}})
			continue
		}
		out = append(out, clusterRole(name, rule), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subject,
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}})
	}
	return out
}

// ground returns a policy with somebody to become: the service account n/robot, the user boss and
// the group bosses are cluster administrators.
func ground() []any {
	return []any{
		clusterRole("cluster-admin", rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}),
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "admins"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole",
			Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "n", Name: "robot"}, {Kind: "User", Name: "boss"},
				{Kind: "Group", Name: "bosses"}}},
	}
}

// shortest returns the one path of a user to a goal, "" if there is none.
func shortest(t *testing.T, c *escalation.Closure, user string) string {
	t.Helper()
	paths, _ := c.Reaching(func(n escalation.Node) bool { return n.Kind == escalation.User && n.Name == user }, 0)
	reached := c.Reach(user, nil, 0)
	if len(paths) == 0 {
		if len(reached.Goals) > 0 {
			t.Errorf("asked by itself %s reaches %s", user, line(&reached.Goals[0]))
		}
		return ""
	}
	if len(reached.Goals) == 0 || len(reached.Goals[0].Steps) != len(paths[0].Steps) ||
		reached.Goals[0].Presumptions() != paths[0].Presumptions() {
		t.Errorf("asked by itself %s reaches %d goals; with all others %s", user, len(reached.Goals), line(&paths[0]))
	}
	valid(t, &paths[0])
	return line(&paths[0])
}
