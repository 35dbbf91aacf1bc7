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

// AggregatedAccount are the account "apiserver" of a sample-apiserver in the namespace wardle and
// its rights: those of a delegated authenticator and authorizer, and to read what it admits by.
const AggregatedAccount = `
{apiVersion: v1, kind: Namespace, metadata: {name: wardle}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: apiserver, namespace: wardle}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "wardle:system:auth-delegator"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:auth-delegator"}
subjects: [{kind: ServiceAccount, name: apiserver, namespace: wardle}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: wardle-auth-reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: apiserver, namespace: wardle}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: aggregated-apiserver}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get, watch, list]}
- {apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations, validatingadmissionpolicies, validatingadmissionpolicybindings, mutatingadmissionpolicies, mutatingadmissionpolicybindings], verbs: [get, watch, list]}
- {apiGroups: [flowcontrol.apiserver.k8s.io], resources: [prioritylevelconfigurations, flowschemas], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: aggregated-apiserver}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: aggregated-apiserver}
subjects: [{kind: ServiceAccount, name: apiserver, namespace: wardle}]
`

// Aggregated is a running sample-apiserver, an API server behind the aggregator: it lets in
// whom the kube-apiserver sends or vouches for, and asks the kube-apiserver who may what.
type Aggregated struct {
	*Process
	// APIService registers it, at the Port of the Service "api" in the namespace wardle.
	APIService string
	Port       int
	url        string
	ca         []byte
}

// ExternalName is a Service that leads a kube-apiserver here which routes to addresses of
// Services.
const ExternalName = `
apiVersion: v1
kind: Service
metadata: {name: api, namespace: wardle}
spec: {type: ExternalName, externalName: "127.0.0.1"}
---`

// Aggregated runs a sample-apiserver until the test ends. as is its account at the
// kube-apiserver, which needs the rights of AggregatedAccount; extra are flags for what a test
// wants of auditing.
func (c *Cluster) Aggregated(t testing.TB, as *rest.Config, extra ...string) *Aggregated {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	Kubeconfig(t, file("wardle.kubeconfig"), as)
	port := Port(t)
	cert, key := c.ca.Issue(t, pkix.Name{CommonName: "wardle"}, x509.ExtKeyUsageServerAuth, "127.0.0.1", "api.wardle.svc")
	a := &Aggregated{Port: port, url: fmt.Sprintf("https://127.0.0.1:%d", port), ca: c.ca.pem}
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
	a.APIService = fmt.Sprintf(`
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

// Direct returns a client that goes to the aggregated server past the kube-apiserver.
func (a *Aggregated) Direct(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Host = a.url
	return cfg
}
