package reason

import "testing"

func TestParse(t *testing.T) {
	cases := []struct {
		reason string
		want   Named
		ok     bool
	}{
		{`RBAC: allowed by RoleBinding "a/ns" of ClusterRole "r" to User "u"`, Named{"RoleBinding", "ns", "a", "ClusterRole", "r"}, true},
		{`RBAC: allowed by ClusterRoleBinding "system:x" of ClusterRole "quo\"te of \\" to ServiceAccount "s/ns"`,
			Named{"ClusterRoleBinding", "", "system:x", "ClusterRole", `quo"te of \`}, true},
		{`RBAC: allowed by RoleBinding "a" of Role "r" to User "u"`, Named{}, false},
		{`RBAC: allowed by RoleBinding "a/ns" of Role r to User "u"`, Named{}, false},
		{`RBAC: allowed by `, Named{}, false},
		{``, Named{}, false},
	}
	for _, tc := range cases {
		got, ok := Parse(tc.reason)
		if ok != tc.ok || (ok && got != tc.want) {
			t.Errorf("%q: got %+v %v, want %+v %v", tc.reason, got, ok, tc.want, tc.ok)
		}
	}
}
