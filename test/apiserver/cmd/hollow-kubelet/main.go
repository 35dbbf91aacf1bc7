// Command hollow-kubelet is the Kubernetes kubelet built from its Go module, for the tests
// beside it, with a container runtime that runs nothing: pods are bound, mounted, started and
// ended as on any node, but there is no process behind a container. It joins by TLS bootstrap
// and rotates both its certificates. kubemark's own command knows neither rotation nor a
// server with authorization, and names itself by another user agent.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // the client's metrics
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/cri-client/pkg/fake"
	"k8s.io/klog/v2"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
)

// node is what the flags say.
type node struct {
	name, root, kubeconfig, bootstrap, authority string
	port                                         int
}

func main() {
	n := &node{}
	c := &cobra.Command{Use: "hollow-kubelet", RunE: func(c *cobra.Command, _ []string) error { return n.run(c.Context()) }}
	f := c.Flags()
	f.StringVar(&n.name, "name", "", "name of the node")
	f.StringVar(&n.root, "root-dir", "", "folder of everything the kubelet writes")
	f.StringVar(&n.kubeconfig, "kubeconfig", "", "credentials, written when the node has joined")
	f.StringVar(&n.bootstrap, "bootstrap-kubeconfig", "", "credentials to join with")
	f.StringVar(&n.authority, "client-ca-file", "", "authority of the certificates that the kubelet's clients show")
	f.IntVar(&n.port, "port", 0, "port of the kubelet's server")
	f.AddGoFlagSet(flag.CommandLine)
	os.Exit(cli.Run(c))
}

// run returns the kubelet until ctx ends.
func (n *node) run(ctx context.Context) error {
	flags, config := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{NodeName: n.name, KubeletPort: n.port, MaxPods: 110})
	flags.RootDirectory = n.root
	flags.CertDirectory = filepath.Join(n.root, "pki")
	flags.KubeConfig, flags.BootstrapKubeconfig = n.kubeconfig, n.bootstrap
	config.Address = "127.0.0.1"
	config.HealthzPort = 0
	config.EnforceNodeAllocatable = nil
	config.RotateCertificates, config.ServerTLSBootstrap = true, true
	config.Authentication.X509.ClientCAFile = n.authority
	config.Authentication.Anonymous.Enabled = false
	config.Authentication.Webhook.Enabled, config.Authorization.Mode = true, "Webhook"
	// Releases differ in whether there is such a field.
	if err := json.Unmarshal([]byte(`{"FailCgroupV1": false}`), config); err != nil {
		return err
	}
	config.FeatureGates = map[string]bool{"KubeletInUserNamespace": true} // no /dev/kmsg, no matter

	endpoint, err := fake.GenerateEndpoint()
	if err != nil {
		return err
	}
	runtime := fake.NewFakeRemoteRuntime()
	runtime.ImageService.SetFakeImageSize(1 << 20)
	if err := runtime.Start(endpoint); err != nil {
		return err
	}
	defer runtime.Stop()
	config.ContainerRuntimeEndpoint, config.ImageServiceEndpoint = endpoint, endpoint

	dependencies := kubemark.NewHollowKubelet(flags, config, nil, nil, &cadvisortest.Fake{NodeName: n.name},
		runtime.ImageService, runtime.RuntimeService, cm.NewStubContainerManager()).KubeletDeps
	// What Run makes itself: clients with the certificate it manages, a recorder that writes events.
	dependencies.KubeClient, dependencies.HeartbeatClient, dependencies.Recorder = nil, nil, nil
	if dependencies.TLSOptions, err = kubeletapp.InitializeTLS(ctx, flags, config); err != nil {
		return err
	}

	go end(ctx, runtime.RuntimeService)
	return n.start(ctx, &options.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *config}, dependencies)
}

func (n *node) start(ctx context.Context, s *options.KubeletServer, d *kubelet.Dependencies) error {
	klog.FromContext(ctx).Info("Starting", "node", n.name)
	return kubeletapp.Run(ctx, s, d, utilfeature.DefaultFeatureGate)
}

// end ends containers that have run for two seconds: those whose names begin with ends, with
// the exit code 0, with fails, with 1, and of a Job's pods all whose names do not begin with
// runs. All others run until the kubelet stops them.
func end(ctx context.Context, runtime *apitest.FakeRuntimeService) {
	for ctx.Err() == nil {
		runtime.Lock()
		for _, c := range runtime.Containers {
			fails := strings.HasPrefix(c.Metadata.Name, "fails")
			ends := fails || strings.HasPrefix(c.Metadata.Name, "ends")
			if pod := runtime.Sandboxes[c.SandboxID]; pod != nil && pod.Labels["batch.kubernetes.io/job-name"] != "" &&
				!strings.HasPrefix(c.Metadata.Name, "runs") {
				ends = true
			}
			if !ends || c.State != runtimeapi.ContainerState_CONTAINER_RUNNING || time.Since(time.Unix(0, c.CreatedAt)) < 2*time.Second {
				continue
			}
			c.State, c.FinishedAt, c.Reason = runtimeapi.ContainerState_CONTAINER_EXITED, time.Now().UnixNano(), "Completed"
			if fails {
				c.ExitCode, c.Reason = 1, "Error"
			}
		}
		runtime.Unlock()
		time.Sleep(500 * time.Millisecond)
	}
}
