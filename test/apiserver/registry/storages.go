package registry

import (
	"context"
	"fmt"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install" // registers the types, as those below do
	core "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
	certificatestore "k8s.io/kubernetes/pkg/registry/certificates/certificates/storage"
	namespacestore "k8s.io/kubernetes/pkg/registry/core/namespace/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	volumestore "k8s.io/kubernetes/pkg/registry/core/persistentvolume/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	secretstore "k8s.io/kubernetes/pkg/registry/core/secret/storage"
	accountstore "k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage"
	clusterrolestore "k8s.io/kubernetes/pkg/registry/rbac/clusterrole/storage"
	clusterbindingstore "k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding/storage"
	rolestore "k8s.io/kubernetes/pkg/registry/rbac/role/storage"
	bindingstore "k8s.io/kubernetes/pkg/registry/rbac/rolebinding/storage"
	slicestore "k8s.io/kubernetes/pkg/registry/resource/resourceslice/storage"
	attachmentstore "k8s.io/kubernetes/pkg/registry/storage/volumeattachment/storage"
)

// groups returns the registry's storages of every kind that is kept, by API group and by resource
// and subresource.
func (s *server) groups() (map[string]map[string]rest.Storage, error) {
	core, err := s.core()
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]rest.Storage{"": core}
	add := func(group, resource string, storage rest.Storage, bad error) {
		if bad != nil && err == nil {
			err = fmt.Errorf("make the storage of %s: %w", resource, bad)
		}
		if out[group] == nil {
			out[group] = map[string]rest.Storage{}
		}
		out[group][resource] = storage
	}
	const rbac = "rbac.authorization.k8s.io"
	roles, bad := rolestore.NewREST(s)
	add(rbac, "roles", roles, bad)
	clusterRoles, bad := clusterrolestore.NewREST(s)
	add(rbac, "clusterroles", clusterRoles, bad)
	bindings, bad := bindingstore.NewREST(s)
	add(rbac, "rolebindings", bindings, bad)
	clusterBindings, bad := clusterbindingstore.NewREST(s)
	add(rbac, "clusterrolebindings", clusterBindings, bad)
	attachments, bad := attachmentstore.NewStorage(s)
	if bad != nil {
		return nil, bad
	}
	add("storage.k8s.io", "volumeattachments", attachments.VolumeAttachment, nil)
	add("storage.k8s.io", "volumeattachments/status", attachments.Status, nil)
	slices, bad := slicestore.NewREST(s)
	add("resource.k8s.io", "resourceslices", slices, bad)
	requests, status, approval, bad := certificatestore.NewREST(s)
	const certificates = "certificates.k8s.io"
	add(certificates, "certificatesigningrequests", requests, bad)
	add(certificates, "certificatesigningrequests/status", status, nil)
	add(certificates, "certificatesigningrequests/approval", approval, nil)
	return out, err
}

// core returns the storages of the core group.
func (s *server) core() (map[string]rest.Storage, error) {
	pods, err := podstore.NewStorage(s, nil, nil, budgets{}, nil)
	if err != nil {
		return nil, fmt.Errorf("make the storage of pods: %w", err)
	}
	namespaces, namespaceStatus, finalize, err := namespacestore.NewREST(s)
	if err != nil {
		return nil, fmt.Errorf("make the storage of namespaces: %w", err)
	}
	nodes, err := nodestore.NewStorage(s, kubeletclient.KubeletClientConfig{}, nil)
	if err != nil {
		return nil, fmt.Errorf("make the storage of nodes: %w", err)
	}
	secrets, err := secretstore.NewREST(s)
	if err != nil {
		return nil, fmt.Errorf("make the storage of secrets: %w", err)
	}
	accounts, err := accountstore.NewREST(s, nil, nil, 0, nil, nil, nil, false, 0)
	if err != nil {
		return nil, fmt.Errorf("make the storage of service accounts: %w", err)
	}
	volumes, volumeStatus, err := volumestore.NewREST(s)
	if err != nil {
		return nil, fmt.Errorf("make the storage of volumes: %w", err)
	}
	return map[string]rest.Storage{
		"pods": pods.Pod, "pods/status": podStatuses{pods.Status}, "pods/binding": pods.Binding, "bindings": pods.LegacyBinding,
		"pods/eviction": pods.Eviction, "pods/ephemeralcontainers": pods.EphemeralContainers,
		"namespaces": namespaces, "namespaces/status": namespaceStatus, "namespaces/finalize": finalize,
		"nodes": nodes.Node, "nodes/status": nodes.Status,
		"secrets": secrets, "serviceaccounts": accounts,
		"persistentvolumes": volumes, "persistentvolumes/status": volumeStatus,
	}, nil
}

// podStatuses is the status of pods. Whose containers have ended has no other phase again by nodes and
// Kubernetes' own components, which the state takes for granted.
type podStatuses struct{ *podstore.StatusREST }

// Update implements rest.Updater.
func (p podStatuses) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc,
	force bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	info = rest.WrapUpdatedObjectInfo(info, func(ctx context.Context, is, was runtime.Object) (runtime.Object, error) {
		u, _ := genericrequest.UserFrom(ctx)
		pod, before := is.(*core.Pod), was.(*core.Pod)
		if over := before.Status.Phase; strings.HasPrefix(u.GetName(), "system:") && (over == core.PodSucceeded || over == core.PodFailed) {
			pod.Status.Phase = over
		}
		return is, nil
	})
	return p.StatusREST.Update(ctx, name, info, create, update, force, options)
}

// budgets says that there are no disruption budgets.
type budgets struct {
	policyclient.PodDisruptionBudgetInterface
}

// PodDisruptionBudgets implements policyclient.PodDisruptionBudgetsGetter.
func (b budgets) PodDisruptionBudgets(string) policyclient.PodDisruptionBudgetInterface { return b }

// List returns none.
func (budgets) List(context.Context, metav1.ListOptions) (*policyv1.PodDisruptionBudgetList, error) {
	return &policyv1.PodDisruptionBudgetList{}, nil
}
