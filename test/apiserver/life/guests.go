package life

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// guest is a controller that the cluster does not bring along. It acts as the service account
// and with the roles that it publishes.
type guest struct {
	program            string
	namespace, account string
	credentials        []string // flags that take the name of a kubeconfig
	flags, environment []string
	scenes             []scene // that it has a part in
}

// Guests runs the controllers until the test ends; scenes with them are played by Churn. A
// Deployment is there for the descheduler to evict the pods of.
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
	metrics := controlplane.Port(t)
	var running []*controlplane.Process
	for _, g := range c.published(t, metrics) {
		manifest, err := os.ReadFile(filepath.Join(folder, g.program+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		c.apply(t, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n---\n%s", g.namespace, manifest), g.namespace)
		kubeconfig := c.kubeconfig(g.program)
		controlplane.Kubeconfig(t, kubeconfig, c.ServiceAccount(t, c.Admin, g.namespace, g.account))
		flags := g.flags
		for _, name := range g.credentials {
			flags = append(flags, name+"="+kubeconfig)
		}
		running = append(running, controlplane.Run(t, c.Folder(), g.environment, filepath.Join(folder, g.program), flags...))
		c.scenes = append(c.scenes[:len(c.scenes):len(c.scenes)], g.scenes...)
	}
	c.lead(t, metav1.NamespaceSystem, "metrics-server", metrics)
	c.available(t, podMetrics.GroupVersion())
	return running
}

// published returns the controllers. metrics is the port of metrics-server.
func (c *Cluster) published(t testing.TB, metrics int) []guest {
	t.Helper()
	file := filepath.Join(c.Folder(), "descheduler-policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	port := func() string { return fmt.Sprint(controlplane.Port(t)) }
	return []guest{
		{program: "kube-state-metrics", namespace: metav1.NamespaceSystem, account: "kube-state-metrics",
			credentials: []string{"--kubeconfig"},
			flags:       []string{"--host=127.0.0.1", "--telemetry-host=127.0.0.1", "--port=" + port(), "--telemetry-port=" + port()}},
		{program: "descheduler", namespace: metav1.NamespaceSystem, account: "descheduler-sa",
			credentials: []string{"--client-connection-kubeconfig"},
			flags: []string{"--policy-config-file=" + file, "--descheduling-interval=20s", "--disable-metrics", "--leader-elect",
				"--bind-address=127.0.0.1", "--secure-port=" + port()}},
		{program: "cert-manager", namespace: "cert-manager", account: "cert-manager", credentials: []string{"--kubeconfig"},
			flags:  []string{"--cluster-resource-namespace=cert-manager"},
			scenes: []scene{{"certificates", (*stage).certificates}}},
		{program: "prometheus-operator", namespace: metav1.NamespaceDefault, account: "prometheus-operator",
			flags:       []string{"--web.listen-address=127.0.0.1:0"},
			environment: []string{"KUBECONFIG=" + c.kubeconfig("prometheus-operator")},
			scenes:      []scene{{"monitoring", (*stage).monitoring}}},
		{program: "metrics-server", namespace: metav1.NamespaceSystem, account: "metrics-server",
			credentials: []string{"--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig"},
			flags: []string{fmt.Sprintf("--secure-port=%d", metrics), "--bind-address=127.0.0.1", "--permit-port-sharing",
				"--cert-dir=" + t.TempDir(), "--metric-resolution=15s",
				"--kubelet-use-node-status-port", "--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority=" +
					filepath.Join(c.Folder(), "ca.crt")},
			environment: []string{"HTTPS_PROXY=" + controlplane.Proxy(t)},
			scenes:      []scene{{"metrics", (*stage).metrics}}},
	}
}

// kubeconfig returns the path of a guest's credentials.
func (c *Cluster) kubeconfig(program string) string {
	return filepath.Join(c.Folder(), program+".kubeconfig")
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
