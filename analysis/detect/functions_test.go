package detect

import (
	"testing"

	"github.com/google/cel-go/cel"
)

func TestBindingText(t *testing.T) {
	l, err := newEnv()
	if err != nil {
		t.Fatal(err)
	}
	const seven = `{"kind":"User","name":"a"},{"kind":"ServiceAccount","namespace":"ns","name":"b"},{"kind":"Group","name":"c"},` +
		`{"name":"d"},{"kind":7},{"kind":"User","name":"f"},{"kind":"User","name":"g"}`
	for _, c := range []struct{ expr, want string }{
		{`bindingText({"metadata": {"name": "own"}, "roleRef": {"name": "edit"}, "subjects": [{"kind": "User", "name": "eve"}]}, ` +
			`"rolebindings", "shop", "asked")`,
			"it gives edit to User eve by RoleBinding shop/own"},
		{`bindingText({"roleRef": {"name": "view"}, "subjects": []}, "clusterrolebindings", "", "asked")`,
			"it gives view to no recorded subject by ClusterRoleBinding asked"},
		{`bindingText({}, "clusterrolebindings", "", "asked")`,
			"it gives a role that is not recorded to no recorded subject by ClusterRoleBinding asked"},
		{`bindingText({"roleRef": 3, "subjects": "all", "metadata": []}, "clusterrolebindings", "", "asked")`,
			"it gives a role that is not recorded to no recorded subject by ClusterRoleBinding asked"},
		{`bindingText({"roleRef": {"name": "r"}, "subjects": [` + seven + `]}, "clusterrolebindings", "", "n")`,
			"it gives r to User a, ServiceAccount ns/b, Group c,  d,   and 2 more by ClusterRoleBinding n"},
	} {
		e, err := l.compile("test", c.expr, cel.StringType)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		if got, err := e.string(&input{}); got != c.want || err != nil {
			t.Errorf("%s\ngot  %q, %v\nwant %q", c.expr, got, err, c.want)
		}
	}
}
