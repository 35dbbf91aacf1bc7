package controlplane

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// Aggregated is a running sample-apiserver, an API server behind the aggregator: it lets in
// whom the kube-apiserver sends or vouches for, and asks the kube-apiserver who may what.
type Aggregated struct {
	*Process
	// Manifest registers it: an APIService and the Service it names, which leads here.
	Manifest string
	url      string
	ca       []byte
}

// Aggregated runs a sample-apiserver until the test ends. as is its account at the
// kube-apiserver, which needs the rights of a delegated authenticator and authorizer; extra
// are flags for what a test wants of auditing.
func (c *Cluster) Aggregated(t testing.TB, as *rest.Config, extra ...string) *Aggregated {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	Kubeconfig(t, file("wardle.kubeconfig"), as)
	port := Port(t)
	cert, key := c.ca.Issue(t, pkix.Name{CommonName: "wardle"}, x509.ExtKeyUsageServerAuth, "127.0.0.1", "api.wardle.svc")
	a := &Aggregated{url: fmt.Sprintf("https://127.0.0.1:%d", port), ca: c.ca.pem}
	a.Process = Run(t, dir, nil, Binary(t, "sample-apiserver"), append([]string{
		"--etcd-servers=" + c.etcd,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--permit-port-sharing=true", // see Port
		"--tls-cert-file=" + write(t, file("wardle.crt"), cert),
		"--tls-private-key-file=" + write(t, file("wardle.key"), key),
		"--kubeconfig=" + file("wardle.kubeconfig"),
		"--authentication-kubeconfig=" + file("wardle.kubeconfig"),
		"--authorization-kubeconfig=" + file("wardle.kubeconfig"),
	}, extra...)...)
	a.Manifest = fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: api, namespace: wardle}
spec: {type: ExternalName, externalName: "127.0.0.1"}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.wardle.example.com}
spec:
  group: wardle.example.com
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  caBundle: %s
  service: {name: api, namespace: wardle, port: %d}
`, base64.StdEncoding.EncodeToString(a.ca), port)
	client, err := rest.HTTPClientFor(a.Direct(c.Admin(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	Poll(t, "sample-apiserver to be ready", func(ctx context.Context) (bool, string) {
		if a.Ended() {
			t.Fatal("sample-apiserver ended before it was ready")
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			return false, err.Error()
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK, res.Status
	})
	return a
}

// Direct is a client that goes to the aggregated server past the kube-apiserver.
func (a *Aggregated) Direct(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Host = a.url
	return cfg
}
