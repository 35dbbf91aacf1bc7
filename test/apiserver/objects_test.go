package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// decode reads objects from YAML documents or JSON; a List is taken apart.
func decode(t testing.TB, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var o unstructured.Unstructured
		err := docs.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in:\n%.2000s", err, text)
		}
		switch {
		case len(o.Object) == 0:
		case o.IsList():
			err := o.EachListItem(func(item runtime.Object) error {
				out = append(out, item.(*unstructured.Unstructured))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		default:
			out = append(out, &o)
		}
	}
}

// decodeFile is decode of a file.
func decodeFile(t testing.TB, path string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

// raw objects as unstructured ones.
func raw(t testing.TB, objects []json.RawMessage) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, o := range objects {
		out = append(out, decode(t, o)...)
	}
	return out
}

// writerOf changes objects of any kind as the apiserver's discovery says.
type writerOf struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func newWriter(t testing.TB, cfg *rest.Config) *writerOf {
	t.Helper()
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &writerOf{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))}
}

// of returns the client of an object's resource.
func (w *writerOf) of(t testing.TB, o *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	kind := o.GroupVersionKind()
	m, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatal(err)
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return w.client.Resource(m.Resource).Namespace(o.GetNamespace())
	}
	return w.client.Resource(m.Resource)
}

// put makes an object, or replaces the one there is. Unknown and doubled fields are errors.
// With dry set, the apiserver does everything but keep it.
func (w *writerOf) put(t testing.TB, o *unstructured.Unstructured, dry ...string) error {
	t.Helper()
	_, err := w.of(t, o).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dry})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = w.of(t, o).Update(t.Context(), o, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dry})
	return err
}

// mustPut is put of objects that are in order.
func (w *writerOf) mustPut(t testing.TB, objects []*unstructured.Unstructured, dry ...string) {
	t.Helper()
	for _, o := range objects {
		if err := w.put(t, o, dry...); err != nil {
			t.Errorf("%s %s/%s: %v", o.GetKind(), o.GetNamespace(), o.GetName(), err)
		}
	}
}

func (w *writerOf) delete(t testing.TB, o *unstructured.Unstructured, dry ...string) {
	t.Helper()
	if err := w.of(t, o).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{DryRun: dry}); err != nil {
		t.Errorf("delete %s %s/%s: %v", o.GetKind(), o.GetNamespace(), o.GetName(), err)
	}
}

// apply makes the objects of a manifest.
func (l *live) apply(t testing.TB, file string) {
	t.Helper()
	l.objects.mustPut(t, decodeFile(t, file))
}

// listing returns what `kubectl get KINDS -A -o json` prints of what requests are judged by.
func (l *live) listing(t testing.TB) []byte {
	t.Helper()
	list := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}
	var items []any
	for _, kind := range [][2]string{{"v1", "Namespace"}, {"v1", "ServiceAccount"}, {"rbac.authorization.k8s.io/v1", "ClusterRole"},
		{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding"}, {"rbac.authorization.k8s.io/v1", "Role"}, {"rbac.authorization.k8s.io/v1",
			"RoleBinding"}} {
		var o unstructured.Unstructured
		o.SetAPIVersion(kind[0])
		o.SetKind(kind[1])
		answer, err := l.objects.of(t, &o).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range answer.Items {
			items = append(items, item.Object)
		}
	}
	list["items"] = items
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func readLines(t testing.TB, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}
