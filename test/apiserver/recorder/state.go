package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// kinds are those that a listing holds, in kubectl's order of asking.
var kinds = []struct {
	group, version, resource, kind string
	namespaced                     bool
}{
	{"", "v1", "namespaces", "Namespace", false},
	{"", "v1", "serviceaccounts", "ServiceAccount", true},
	{"", "v1", "pods", "Pod", true},
	{"", "v1", "nodes", "Node", false},
	{"", "v1", "secrets", "Secret", true},
	{"", "v1", "configmaps", "ConfigMap", true},
	{"", "v1", "persistentvolumes", "PersistentVolume", false},
	{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true},
	{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false},
	{"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false},
	{"rbac.authorization.k8s.io", "v1", "roles", "Role", true},
	{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true},
	{"storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", false},
	{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false},
	{"certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", false},
	{"certificates.k8s.io", "v1", "podcertificaterequests", "PodCertificateRequest", true}, // since 1.37
}

// State takes what `kubectl get KINDS -A -o json` prints, once; the log of a Late recording
// begins then. Values in Secrets and
// ConfigMaps are taken out, but for those by which a bootstrap token is judged.
func (r *Recorder) State(t testing.TB) {
	t.Helper()
	if r.state != nil {
		t.Fatal("the state was taken before")
	}
	items := []any{}
	for _, k := range kinds {
		answer, err := r.dynamic.Resource(schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.resource}).List(
			t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range answer.Items {
			item.SetManagedFields(nil)
			if k.resource == "secrets" {
				emptied(item)
			}
			if k.resource == "configmaps" {
				unstructured.RemoveNestedField(item.Object, "data")
			}
			items = append(items, item.Object)
		}
	}
	text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
		"items": items}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	r.state = r.redact(text)
	if !r.config.Late {
		return
	}
	// Objects say the second in which they came. A log that begins in that same second
	// would leave open which came first.
	began := time.Now()
	controlplane.Poll(t, "the next second", func(context.Context) (bool, string) { return time.Since(began) > 1500*time.Millisecond, "" })
	r.from = len(r.Log(t))
}

// emptied takes the values out of a Secret: what is left is that there were some.
func emptied(item unstructured.Unstructured) {
	data, _, _ := unstructured.NestedMap(item.Object, "data")
	for k := range data {
		if item.Object["type"] != "bootstrap.kubernetes.io/token" || k == "token-secret" {
			data[k] = "cmVkYWN0ZWQ="
		}
	}
	if data != nil {
		item.Object["data"] = data
	}
}

// Apply makes objects, or replaces those there are: YAML documents.
func (r *Recorder) Apply(t testing.TB, text string) {
	t.Helper()
	for docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096); ; {
		var o unstructured.Unstructured
		err := docs.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in:\n%.500s", err, text)
		}
		if len(o.Object) == 0 {
			continue
		}
		client := r.of(t, &o)
		_, err = client.Create(t.Context(), &o, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = client.Update(t.Context(), &o, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatalf("%s %s/%s: %v", o.GetKind(), o.GetNamespace(), o.GetName(), err)
		}
	}
}

// UID is that of an object.
func (r *Recorder) UID(t testing.TB, kind, namespace, name string) string {
	t.Helper()
	var o unstructured.Unstructured
	o.SetKind(kind)
	o.SetNamespace(namespace)
	got, err := r.of(t, &o).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(got.GetUID())
}

// Remove deletes an object at once.
func (r *Recorder) Remove(t testing.TB, kind, namespace, name string) {
	t.Helper()
	var o unstructured.Unstructured
	o.SetKind(kind)
	o.SetNamespace(namespace)
	if err := r.of(t, &o).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatalf("delete %s %s/%s: %v", kind, namespace, name, err)
	}
}

func (r *Recorder) of(t testing.TB, o *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	for _, k := range kinds {
		if k.kind != o.GetKind() {
			continue
		}
		c := r.dynamic.Resource(schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.resource})
		if k.namespaced {
			return c.Namespace(o.GetNamespace())
		}
		return c
	}
	gv, err := schema.ParseGroupVersion(o.GetAPIVersion())
	if err != nil {
		t.Fatal(err)
	}
	c := r.dynamic.Resource(gv.WithResource(strings.ToLower(o.GetKind()) + "s"))
	if o.GetNamespace() != "" {
		return c.Namespace(o.GetNamespace())
	}
	return c
}

// Decided waits until the apiserver's authorizers answer a question as wanted: a change of
// policy takes a moment to reach them.
func (r *Recorder) Decided(t testing.TB, want bool, user string, groups []string, a authorizationv1.ResourceAttributes) {
	t.Helper()
	controlplane.Poll(t, "the authorizer to notice", func(ctx context.Context) (bool, string) {
		answer, err := r.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &a}}, metav1.CreateOptions{})
		if err != nil {
			return false, err.Error()
		}
		return answer.Status.Allowed == want, answer.Status.Reason
	})
}
