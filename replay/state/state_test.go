package state_test

import (
	"encoding/json"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
)

// fingerprint renders what an RBAC object means, with its uid.
func fingerprint(obj any) string {
	var uid string
	var body any
	switch o := obj.(type) {
	case *rbacv1.Role:
		uid, body = string(o.UID), o.Rules
	case *rbacv1.ClusterRole:
		uid, body = string(o.UID), o.Rules
	case *rbacv1.RoleBinding:
		uid, body = string(o.UID), []any{o.RoleRef, o.Subjects}
	case *rbacv1.ClusterRoleBinding:
		uid, body = string(o.UID), []any{o.RoleRef, o.Subjects}
	}
	b, err := json.Marshal(body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s", uid, b)
}
