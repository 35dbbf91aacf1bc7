package life

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// guests is the environment variable that names the folder of scripts/build-controllers.sh.
const guests = "RETRIAL_LIFE_CONTROLLERS"

// policy makes the descheduler evict what is older than its interval in one namespace.
const policy = `apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: restless
  pluginConfig:
  - name: DefaultEvictor
    args: {podProtections: {defaultDisabled: [PodsWithLocalStorage]}}
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 20, namespaces: {include: [restless]}}
  plugins:
    deschedule: {enabled: [PodLifeTime]}
`

// Guests runs controllers that the cluster does not bring along, each as the service account
// and with the roles that it publishes, until the test ends. A Deployment is there for the
// descheduler to evict the pods of.
func (c *Cluster) Guests(t testing.TB) []*controlplane.Process {
	t.Helper()
	folder := os.Getenv(guests)
	if folder == "" {
		t.Log("NOT RUN: " + guests + " names no folder of controllers")
		return nil
	}
	s := &stage{Cluster: c, ctx: t.Context(), t: t, rng: rand.New(rand.NewPCG(0, 0)), ns: "restless"}
	if err := errors.Join(s.furnish(), func() error {
		_, err := c.Admin.AppsV1().Deployments(s.ns).Create(t.Context(), deployment("restless", 3), create)
		return err
	}()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.Folder(), "descheduler-policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	var running []*controlplane.Process
	for name, guest := range map[string]struct {
		account, kubeconfig string // the name of its flag
		flags               []string
	}{
		"kube-state-metrics": {"kube-state-metrics", "kubeconfig", []string{"--host=127.0.0.1", "--telemetry-host=127.0.0.1",
			"--port=" + strconv.Itoa(controlplane.Port(t)), "--telemetry-port=" + strconv.Itoa(controlplane.Port(t))}},
		"descheduler": {"descheduler-sa", "client-connection-kubeconfig", []string{"--policy-config-file=" + file, "--descheduling-interval=20s",
			"--disable-metrics", "--leader-elect", "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(controlplane.Port(t))}},
	} {
		c.apply(t, filepath.Join(folder, name+".yaml"))
		kubeconfig := filepath.Join(c.Folder(), name+".kubeconfig")
		controlplane.Kubeconfig(t, kubeconfig, c.ServiceAccount(t, c.Admin, metav1.NamespaceSystem, guest.account))
		running = append(running, controlplane.Run(t, c.Folder(), nil, filepath.Join(folder, name), append(guest.flags, "--"+guest.kubeconfig+"="+kubeconfig)...))
	}
	return running
}

// apply makes the objects of a file; those without a namespace go into kube-system.
func (c *Cluster) apply(t testing.TB, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var o unstructured.Unstructured
		err := docs.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) == 0 {
			continue
		}
		gv, err := schema.ParseGroupVersion(o.GetAPIVersion())
		if err != nil {
			t.Fatal(err)
		}
		client := c.dynamic.Resource(gv.WithResource(strings.ToLower(o.GetKind()) + "s"))
		if strings.HasPrefix(o.GetKind(), "Cluster") {
			_, err = client.Create(t.Context(), &o, create)
		} else {
			_, err = client.Namespace(metav1.NamespaceSystem).Create(t.Context(), &o, create)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err))
		}
	}
}

// evicted counts the pods of the restless Deployment that are gone again.
func (c *Cluster) evicted(t testing.TB) int {
	t.Helper()
	events, err := c.Admin.CoreV1().Events("restless").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Killing"})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]bool{}
	for _, e := range events.Items {
		pods[e.InvolvedObject.Name] = true
	}
	return len(pods)
}
