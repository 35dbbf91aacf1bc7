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

// line writes a path as a person reads it.
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
