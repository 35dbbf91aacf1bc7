package escalation

import (
	"encoding/json"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func encode(o any) []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err) // API types always encode
	}
	return raw
}

func clone(o any) any { return o.(runtime.Object).DeepCopyObject() }

func metaOf(o any) *metav1.ObjectMeta {
	switch o := o.(type) {
	case *rbacv1.Role:
		return &o.ObjectMeta
	case *rbacv1.ClusterRole:
		return &o.ObjectMeta
	case *rbacv1.RoleBinding:
		return &o.ObjectMeta
	case *rbacv1.ClusterRoleBinding:
		return &o.ObjectMeta
	}
	panic(fmt.Sprintf("%T", o))
}

func isRole(o any) bool {
	switch o.(type) {
	case *rbacv1.Role, *rbacv1.ClusterRole:
		return true
	}
	return false
}

func rulesOf(o any) []rbacv1.PolicyRule {
	switch o := o.(type) {
	case *rbacv1.Role:
		return o.Rules
	case *rbacv1.ClusterRole:
		return o.Rules
	}
	return nil
}

func setRules(o any, rules []rbacv1.PolicyRule) {
	switch o := o.(type) {
	case *rbacv1.Role:
		o.Rules = rules
	case *rbacv1.ClusterRole:
		o.Rules = rules
	}
}

func subjectsOf(o any) []rbacv1.Subject {
	switch o := o.(type) {
	case *rbacv1.RoleBinding:
		return o.Subjects
	case *rbacv1.ClusterRoleBinding:
		return o.Subjects
	}
	return nil
}

func setSubjects(o any, s []rbacv1.Subject) {
	switch o := o.(type) {
	case *rbacv1.RoleBinding:
		o.Subjects = s
	case *rbacv1.ClusterRoleBinding:
		o.Subjects = s
	}
}
