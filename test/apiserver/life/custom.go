package life

import (
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// object returns what a JSON text holds.
func object(text string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	return o, json.Unmarshal([]byte(text), &o.Object)
}

// have makes an object in the namespace, as the developer; apiVersion and kind are added.
func (s *stage) have(of schema.GroupVersionResource, kind, name, spec string) error {
	o, err := object(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":%s}`, of.GroupVersion(), kind, name, spec))
	if err != nil {
		return err
	}
	_, err = s.custom.Resource(of).Namespace(s.ns).Create(s.ctx, o, create)
	return err
}

// customResources come with a definition and go with it.
func (s *stage) customResources() error {
	plural := fmt.Sprintf("things%d", s.n)
	name := plural + ".life.example.com"
	text := fmt.Sprintf(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q},"spec":{"group":"life.example.com","scope":"Namespaced",
"names":{"plural":%q,"singular":"thing%d","kind":"Thing%d"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, name, plural, s.n, s.n)
	o, err := object(text)
	if err != nil {
		return err
	}
	definitions := s.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"})
	if _, err := definitions.Create(s.ctx, o, create); err != nil {
		return err
	}
	things := s.dynamic.Resource(schema.GroupVersionResource{Group: "life.example.com", Version: "v1", Resource: plural}).Namespace(s.ns)
	thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "life.example.com/v1", "kind": fmt.Sprintf("Thing%d", s.n),
		"metadata": map[string]any{"name": "one"}}}
	if err := s.until("the definition to be served", func() (bool, error) {
		_, err := things.Create(s.ctx, thing, create)
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return false, nil
		}
		return err == nil, err
	}); err != nil {
		return err
	}
	if _, err := things.List(s.ctx, metav1.ListOptions{}); err != nil {
		return err
	}
	if s.rng.IntN(2) == 0 {
		if err := things.Delete(s.ctx, "one", metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
			return err
		}
	}
	return definitions.Delete(s.ctx, name, metav1.DeleteOptions{})
}

// flunderAPI is that of sample-apiserver.
var flunderAPI = schema.GroupVersionResource{Group: "wardle.example.com", Version: "v1alpha1", Resource: "flunders"}

// flunders are kept by an API server of their own, behind the aggregator; some are left to the
// end of the namespace.
func (s *stage) flunders() error {
	flunders := s.custom.Resource(flunderAPI).Namespace(s.ns)
	for i := range 3 + s.rng.IntN(3) {
		if err := s.have(flunderAPI, "Flunder", fmt.Sprintf("flunder-%d", i), "{}"); err != nil {
			return err
		}
	}
	if _, err := flunders.Patch(s.ctx, "flunder-0", types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`),
		metav1.PatchOptions{}); err != nil {
		return err
	}
	reads := s.visitor.CoreV1().RESTClient().Get().AbsPath("/apis", flunderAPI.Group, flunderAPI.Version)
	if err := reads.Namespace(s.ns).Resource(flunderAPI.Resource).Do(s.ctx).Error(); err != nil {
		return err
	}
	everywhere, err := s.custom.Resource(flunderAPI).List(s.ctx, metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("list of all flunders, %v: %w", everywhere, errors.Join(err, errUnexpected))
	}
	if err := flunders.Delete(s.ctx, "flunder-1", metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
		return err
	}
	if s.rng.IntN(2) == 0 {
		return flunders.DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "seen=yes"})
	}
	return nil
}
