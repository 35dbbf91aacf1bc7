package state_test

import (
	"encoding/json"

	rbacv1 "k8s.io/api/rbac/v1"
)

// fingerprint renders what an RBAC object means.
func fingerprint(obj any) string {
	var body any
	switch o := obj.(type) {
	case *rbacv1.Role:
		body = o.Rules
	case *rbacv1.ClusterRole:
		body = o.Rules
	case *rbacv1.RoleBinding:
		body = []any{o.RoleRef, o.Subjects}
	case *rbacv1.ClusterRoleBinding:
		body = []any{o.RoleRef, o.Subjects}
	}
	b, err := json.Marshal(body)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
