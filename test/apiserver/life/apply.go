package life

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// apply makes the objects of a manifest; those of a namespace that name none go into the given
// one. Definitions of resources are served when it returns.
func (c *Cluster) apply(t testing.TB, manifest, namespace string) {
	t.Helper()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Admin.Discovery()))
	var definitions []string
	for docs := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		var o unstructured.Unstructured
		err := docs.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) == 0 {
			continue
		}
		kind := o.GroupVersionKind()
		of, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			t.Fatal(err)
		}
		if of.Scope.Name() != meta.RESTScopeNameNamespace {
			_, err = c.dynamic.Resource(of.Resource).Create(t.Context(), &o, create)
		} else {
			if o.GetNamespace() == "" {
				o.SetNamespace(namespace)
			}
			_, err = c.dynamic.Resource(of.Resource).Namespace(o.GetNamespace()).Create(t.Context(), &o, create)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(fmt.Errorf("%s %s: %w", kind.Kind, o.GetName(), err))
		}
		if kind.Kind == "CustomResourceDefinition" {
			definitions = append(definitions, o.GetName())
		}
	}
	for _, name := range definitions {
		c.condition(t, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
			name, "Established")
	}
}

// lead makes a Service, if it is not there, and leads it to a port on loopback, by way of the
// tunnel. Its port has the name https.
func (c *Cluster) lead(t testing.TB, namespace, service string, port int) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: service}
	_, err := c.Admin.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{ObjectMeta: meta,
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: int32(port)}}}}, create)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	// Older releases route by no other kind; newer ones mirror it.
	_, err = c.Admin.CoreV1().Endpoints(namespace).Create(t.Context(), &corev1.Endpoints{ObjectMeta: meta,
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: "192.0.2.10"}}, Ports: []corev1.EndpointPort{{Name: "https", Port: int32(port)}}}}},
		create)
	if err != nil {
		t.Fatal(err)
	}
}

// available waits until an aggregated API is.
func (c *Cluster) available(t testing.TB, api schema.GroupVersion) {
	t.Helper()
	c.condition(t, schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
		api.Version+"."+api.Group, "Available")
}

// condition waits until an object without a namespace has a condition.
func (c *Cluster) condition(t testing.TB, of schema.GroupVersionResource, name, condition string) {
	t.Helper()
	controlplane.Poll(t, of.Resource+" "+name+" to be "+condition, func(ctx context.Context) (bool, string) {
		o, err := c.dynamic.Resource(of).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return holds(o, condition)
	})
}

// holds reports whether an object's status has a condition, and what it says of it.
func holds(o *unstructured.Unstructured, condition string) (bool, string) {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range all {
		if m, ok := one.(map[string]any); ok && m["type"] == condition {
			return m["status"] == string(metav1.ConditionTrue), fmt.Sprint(m["message"])
		}
	}
	return false, "no such condition"
}
