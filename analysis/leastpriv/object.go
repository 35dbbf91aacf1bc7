package leastpriv

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/retrial-io/retrial/rbacindex"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object is an rbac.authorization.k8s.io/v1 object with its type set: *rbacv1.Role,
// *rbacv1.ClusterRole, *rbacv1.RoleBinding or *rbacv1.ClusterRoleBinding.
type Object any

// Objects are decoded from JSON into their own types.
type Objects []Object

// UnmarshalJSON decodes a list of objects, each by its kind.
func (l *Objects) UnmarshalJSON(text []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("read objects: %w", err)
	}
	*l = make(Objects, 0, len(list))
	for _, raw := range list {
		o, err := objectOf(raw)
		if err != nil {
			return err
		}
		*l = append(*l, o)
	}
	return nil
}

// objectOf decodes one object.
func objectOf(raw []byte) (Object, error) {
	var t metav1.TypeMeta
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	o, _, err := rbacindex.FromJSON(t.Kind, raw)
	return o, err
}

// UnmarshalJSON decodes a removal with its replacement object.
func (r *Remove) UnmarshalJSON(text []byte) error {
	type plain Remove
	v := struct {
		*plain
		Object json.RawMessage `json:"object"`
	}{plain: (*plain)(r)}
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("read removal: %w", err)
	}
	r.Object = nil
	if len(v.Object) == 0 || bytes.Equal(v.Object, []byte("null")) {
		return nil
	}
	var err error
	r.Object, err = objectOf(v.Object)
	return err
}
