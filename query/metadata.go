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

// Metadata keeps labels and annotations of RBAC objects, which the state does not, so that
// a rollback brings objects back as they were.
type Metadata map[rbacindex.Key]metav1.ObjectMeta

// Of returns the labels and annotations of an object.
func (m Metadata) Of(k rbacindex.Key) metav1.ObjectMeta { return m[k] }

// resources are those it keeps something of.
func (Metadata) resources() []string {
	return []string{kept.Roles, kept.ClusterRoles, kept.RoleBindings, kept.ClusterRoleBindings}
}

// Add takes them from observations; newer says that they go over what is there.
func (m Metadata) Add(obs []observe.Observation, newer bool) {
	kinds := map[string]rbacindex.Kind{kept.Roles: rbacindex.KindRole, kept.ClusterRoles: rbacindex.KindClusterRole,
		kept.RoleBindings: rbacindex.KindRoleBinding, kept.ClusterRoleBindings: rbacindex.KindClusterRoleBinding}
	for i := range obs {
		kind, ok := kinds[obs[i].Resource]
		if !ok || len(obs[i].Object) == 0 {
			continue
		}
		k := rbacindex.Key{Kind: kind, Namespace: obs[i].Namespace, Name: strings.Clone(obs[i].Name)}
		if _, have := m[k]; have && !newer {
			continue
		}
		var object struct {
			Metadata struct {
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		if json.Unmarshal(obs[i].Object, &object) == nil {
			k.Namespace = strings.Clone(k.Namespace)
			m[k] = metav1.ObjectMeta{Labels: object.Metadata.Labels, Annotations: object.Metadata.Annotations}
		}
	}
}
