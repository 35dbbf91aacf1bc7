package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/product"
)

// TestDryRun: what the product writes is what an apiserver takes. Everything it suggests for
// the bundled recording, and every manifest it ships, passes a strict decoder and the
// apiserver's own dry run: admission and validation with nothing kept.
func TestDryRun(t *testing.T) {
	in := product.New(t)
	w := newWriter(t, controlplane.Start(t).Admin(t))
	for _, f := range forms {
		t.Run("suggestions, "+f.name, func(t *testing.T) { drySuggestions(t, in, w, f.flags, f.exact) })
	}
	t.Run("manifests", func(t *testing.T) { dryManifests(t, w) })
	t.Run("a wrong object is refused", func(t *testing.T) { dryWrong(t, w) })
}

// recording writes the bundled recording into files and returns the flags that name them.
func recording(t testing.TB, in *product.Install) []string {
	t.Helper()
	state, log := filepath.Join(in.Dir, sample.StateName), filepath.Join(in.Dir, sample.AuditLogName)
	for path, text := range map[string][]byte{state: sample.StateZstd(), log: sample.AuditLogZstd()} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--state", state, "--events", log}
}

func drySuggestions(t *testing.T, in *product.Install, w *writerOf, form []string, exact bool) {
	files := append(recording(t, in), form...)
	text := in.Offline(t, append([]string{"suggest", "--all", "--include-system", "-o", "json"}, files...)...).Out
	all := product.Items[suggestion](t, text)
	// The cluster as it was: what is changed has to be there.
	made := map[string]bool{}
	for _, s := range all {
		for _, o := range append(raw(t, s.Apply), raw(t, s.Rollback)...) {
			if ns := o.GetNamespace(); ns != "" && !made[ns] {
				made[ns] = true
				w.mustPut(t, []*unstructured.Unstructured{namespace(ns)})
			}
		}
	}
	for _, s := range all {
		w.mustPut(t, raw(t, s.Rollback))
	}
	apply, remove, back := 0, 0, 0
	for _, s := range all {
		for _, o := range s.Apply {
			apply++
			strict(t, o)
			w.mustPut(t, decode(t, o), metav1.DryRunAll)
		}
		for _, r := range s.Remove {
			remove++
			switch r.Action {
			case "delete":
				w.delete(t, named(r.Kind, r.Namespace, r.Name), metav1.DryRunAll)
			case "replace":
				strict(t, r.Object)
				w.mustPut(t, decode(t, r.Object), metav1.DryRunAll)
			default:
				t.Errorf("%s: unknown action %q", s.Subject, r.Action)
			}
		}
		for _, o := range s.Rollback {
			back++
			strict(t, o)
			w.mustPut(t, decode(t, o), metav1.DryRunAll)
		}
	}
	if apply < 20 || remove < 20 || back < 20 {
		t.Errorf("too little to say anything: %d objects to apply, %d removals, %d to roll back", apply, remove, back)
	}

	// The YAML is a stream of the same objects, as kubectl apply -f reads it.
	text = in.Offline(t, append([]string{"suggest", "--all", "--include-system", "--force", "-o", "yaml"}, files...)...).Out
	stream := decode(t, []byte(text))
	for _, o := range stream {
		strict(t, mustJSON(t, o))
	}
	w.mustPut(t, stream, metav1.DryRunAll)
	final := decode(t, []byte(in.Offline(t, append([]string{"suggest", "--all", "--include-system", "--final", "-o", "json"},
		files...)...).Out))
	for _, o := range final {
		strict(t, mustJSON(t, o))
	}
	w.mustPut(t, final, metav1.DryRunAll)
	t.Logf("%d subjects: %d objects to apply (%d in the YAML), %d removals, %d to roll back, %d final: all taken by the apiserver",
		len(all), apply, len(stream), remove, back, len(final))
	// Narrowed roles of several subjects are one object of the plan for all.
	if exact && len(stream) != apply || len(stream) > apply || len(stream) == 0 {
		t.Errorf("the YAML holds %d objects, the JSON %d", len(stream), apply)
	}
}

// dryManifests: what deploy/ ships, and pods as its workloads would make them, which must
// pass the pod security level their namespace asks for.
func dryManifests(t *testing.T, w *writerOf) {
	files, err := filepath.Glob(filepath.Join("..", "..", "deploy", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no manifests", err)
	}
	objects, pods := 0, 0
	for _, file := range files {
		for _, o := range decodeFile(t, file) {
			if strings.HasPrefix(o.GetAPIVersion(), "audit.k8s.io/") {
				continue // a file for kube-apiserver, no object of it
			}
			objects++
			strict(t, mustJSON(t, o))
			w.mustPut(t, []*unstructured.Unstructured{o}, metav1.DryRunAll)
			switch o.GetKind() {
			case "Namespace", "ServiceAccount":
				w.mustPut(t, []*unstructured.Unstructured{o}) // others need them
			case "StatefulSet", "Deployment":
				pods++
				w.mustPut(t, []*unstructured.Unstructured{podOf(t, o)}, metav1.DryRunAll)
			}
		}
	}
	t.Logf("%d objects and %d pods of %d files", objects, pods, len(files))
	if pods == 0 {
		t.Error("no workload among the manifests")
	}
}

// dryWrong: the dry run and the decoder are strict.
func dryWrong(t *testing.T, w *writerOf) {
	o := decode(t, []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"wrong"},`+
		`"rules":[{"verbs":["get"],"apiGroups":[""],"resource":["pods"]}]}`))[0]
	if err := w.put(t, o, metav1.DryRunAll); err == nil || !strings.Contains(err.Error(), "unknown field") {
		t.Errorf("a misspelt field: %v", err)
	}
	if _, _, err := decoder().Decode(mustJSON(t, o), nil, nil); err == nil {
		t.Error("the decoder takes a misspelt field")
	}
}

// podOf returns a pod as the controller of a workload makes it.
func podOf(t *testing.T, workload *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	template, _, err := unstructured.NestedMap(workload.Object, "spec", "template")
	if err != nil || template == nil {
		t.Fatalf("%s has no pod template: %v", key(workload), err)
	}
	pod := &unstructured.Unstructured{Object: template}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetNamespace(workload.GetNamespace())
	pod.SetName(workload.GetName() + "-0")
	claims, _, err := unstructured.NestedSlice(workload.Object, "spec", "volumeClaimTemplates")
	if err != nil {
		t.Fatal(err)
	}
	volumes, _, err := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		name, _, _ := unstructured.NestedString(c.(map[string]any), "metadata", "name")
		volumes = append(volumes, map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": fmt.Sprintf("%s-%s",
			name, pod.GetName())}})
	}
	if err := unstructured.SetNestedSlice(pod.Object, volumes, "spec", "volumes"); err != nil {
		t.Fatal(err)
	}
	return pod
}

func namespace(name string) *unstructured.Unstructured {
	var o unstructured.Unstructured
	o.SetAPIVersion("v1")
	o.SetKind("Namespace")
	o.SetName(name)
	return &o
}

// decoder knows every kind of Kubernetes, and refuses fields that are unknown or doubled.
func decoder() runtime.Decoder {
	return serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
}

// strict decodes one object.
func strict(t *testing.T, text []byte) {
	t.Helper()
	if _, _, err := decoder().Decode(text, nil, nil); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
}
