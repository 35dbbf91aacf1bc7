package query

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// Latest is later than anything recorded: the policy as it is last known.
var Latest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// metadata keeps labels and annotations of RBAC objects, which the state does not, so that
// a rollback brings objects back as they were.
type metadata map[rbacindex.Key]metav1.ObjectMeta

// of returns the labels and annotations of an object.
func (m metadata) of(k rbacindex.Key) metav1.ObjectMeta { return m[k] }

// resources are those it keeps something of.
func (metadata) resources() []string {
	return []string{kept.Roles, kept.ClusterRoles, kept.RoleBindings, kept.ClusterRoleBindings}
}

// add takes them from an observation, over what is there.
func (m metadata) add(o *observe.Observation) {
	kinds := map[string]rbacindex.Kind{kept.Roles: rbacindex.KindRole, kept.ClusterRoles: rbacindex.KindClusterRole,
		kept.RoleBindings: rbacindex.KindRoleBinding, kept.ClusterRoleBindings: rbacindex.KindClusterRoleBinding}
	kind, ok := kinds[o.Resource]
	if !ok || len(o.Object) == 0 {
		return
	}
	var object struct {
		Metadata struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(o.Object, &object) == nil {
		m[rbacindex.Key{Kind: kind, Namespace: strings.Clone(o.Namespace), Name: strings.Clone(o.Name)}] =
			metav1.ObjectMeta{Labels: object.Metadata.Labels, Annotations: object.Metadata.Annotations}
	}
}
