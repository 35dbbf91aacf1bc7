package controlplane

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Cluster is a running control plane.
type Cluster struct {
	dir       string
	url       string
	etcd      string // URL
	ca        *Authority
	apiserver *Process
	base      []string // the apiserver's flags that Start chose
}

// Start runs etcd and kube-apiserver until the test ends. extra are flags for kube-apiserver
// beside those that any control plane has: what a test wants of auditing, or of whatever else;
// a flag that they set is not set for any control plane.
func Start(t testing.TB, extra ...string) *Cluster {
	t.Helper()
	etcd := Binary(t, "etcd")
	c := &Cluster{dir: t.TempDir(), ca: NewAuthority(t)}
	port := Port(t)
	c.url = fmt.Sprintf("https://127.0.0.1:%d", port)
	file := func(name string) string { return filepath.Join(c.dir, name) }
	cert, key := c.ca.Issue(t, pkix.Name{CommonName: "kube-apiserver"}, x509.ExtKeyUsageServerAuth, "127.0.0.1", "localhost",
		"kubernetes.default.svc")
	kubeletCert, kubeletKey := c.ca.Issue(t, pkix.Name{CommonName: "kube-apiserver-kubelet-client",
		Organization: []string{"system:masters"}}, x509.ExtKeyUsageClientAuth)
	c.etcd = startEtcd(t, c.dir, etcd)
	c.base = []string{
		"--etcd-servers=" + c.etcd,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--permit-port-sharing=true", // see Port
		"--service-cluster-ip-range=10.96.0.0/16",
		"--endpoint-reconciler-type=none", // it would refuse a loopback address
		"--client-ca-file=" + write(t, file("ca.crt"), c.ca.pem),
		"--tls-cert-file=" + write(t, file("apiserver.crt"), cert),
		"--tls-private-key-file=" + write(t, file("apiserver.key"), key),
		"--kubelet-client-certificate=" + write(t, file("kubelet-client.crt"), kubeletCert),
		"--kubelet-client-key=" + write(t, file("kubelet-client.key"), kubeletKey),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + write(t, file("sa.key"), keyPEM(t, newKey(t))),
		"--service-account-signing-key-file=" + file("sa.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
	}
	c.base = without(c.base, extra)
	c.Again(t, extra...)
	return c
}

// Again starts the apiserver, once more after it was ended, with Start's flags and extra.
func (c *Cluster) Again(t testing.TB, extra ...string) {
	t.Helper()
	c.apiserver = Run(t, c.dir, nil, Binary(t, "kube-apiserver"), append(without(c.base, extra), extra...)...)
	c.ready(t)
}

// Another starts a second apiserver of the same cluster, as Start did the first, at another
// port; Again starts such a one again.
func (c *Cluster) Another(t testing.TB, extra ...string) *Cluster {
	t.Helper()
	port := Port(t)
	other := &Cluster{dir: c.dir, url: fmt.Sprintf("https://127.0.0.1:%d", port), etcd: c.etcd, ca: c.ca}
	own := fmt.Sprintf("--secure-port=%d", port)
	other.base = append(without(c.base, []string{own}), own)
	other.Again(t, extra...)
	return other
}

// ready waits until the apiserver is.
func (c *Cluster) ready(t testing.TB) {
	t.Helper()
	client, err := rest.HTTPClientFor(c.Admin(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	Poll(t, "kube-apiserver to be ready", func(ctx context.Context) (bool, string) {
		if c.apiserver.Ended() {
			t.Fatal("kube-apiserver ended before it was ready")
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/readyz", nil)
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
}

// without returns the flags whose names others do not hold. A file of authorizers takes the
// place of their names.
func without(flags, others []string) []string {
	name := func(flag string) string {
		n, _, _ := strings.Cut(flag, "=")
		return n
	}
	set := map[string]bool{}
	for _, f := range others {
		set[name(f)] = true
	}
	set["--authorization-mode"] = set["--authorization-mode"] || set["--authorization-config"]
	return slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return set[name(f)] })
}

var etcdServes = regexp.MustCompile(`"serving client traffic insecurely[^"]*".*"address":"([^"]+)"`)

// startEtcd runs etcd on a port of its choice and returns its URL.
func startEtcd(t testing.TB, dir, binary string) string {
	t.Helper()
	const any = "http://127.0.0.1:0"
	p := Run(t, dir, nil, binary, "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-format=json",
		"--enable-grpc-gateway=false",
		"--listen-client-urls="+any, "--advertise-client-urls="+any,
		"--listen-peer-urls="+any, "--initial-advertise-peer-urls="+any, "--initial-cluster=default="+any)
	var url string
	Poll(t, "etcd to serve", func(context.Context) (bool, string) {
		if p.Ended() {
			t.Fatal("etcd ended before it served")
		}
		m := etcdServes.FindStringSubmatch(p.Output())
		if m == nil {
			return false, "it does not say where yet"
		}
		url = "http://" + m[1]
		return true, ""
	})
	return url
}

// Port returns a port of the loopback address that nobody else gets until the test ends:
// a socket is bound to it that never listens, and lets another one of this user listen beside
// it (--permit-port-sharing; a kubelet as it is). kube-apiserver takes no port 0.
func Port(t testing.TB) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	const reusePort = 15 // SO_REUSEPORT
	for _, option := range []int{reusePort, syscall.SO_REUSEADDR} {
		if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, option, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	a, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return a.(*syscall.SockaddrInet4).Port
}

// Etcd returns the URL of the store behind the apiserver.
func (c *Cluster) Etcd() string { return c.etcd }

// Folder returns the one of what the cluster was started with: certificates and keys.
func (c *Cluster) Folder() string { return c.dir }

// Authority returns the one of the apiserver's certificate and its clients'.
func (c *Cluster) Authority() *Authority { return c.ca }

// URL returns the apiserver's address.
func (c *Cluster) URL() string { return c.url }

// Apiserver returns the running kube-apiserver.
func (c *Cluster) Apiserver() *Process { return c.apiserver }

// Base returns the flags Start gave the apiserver by itself. None of them is about auditing.
func (c *Cluster) Base() []string { return c.base }

// config returns a client without credentials. Nothing holds it back but the server.
func (c *Cluster) config() *rest.Config {
	return &rest.Config{Host: c.url, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem}}
}

// Anonymous returns a client that says nothing about who it is.
func (c *Cluster) Anonymous() *rest.Config { return c.config() }

// User returns a client with a certificate of its own.
func (c *Cluster) User(t testing.TB, name string, groups ...string) *rest.Config {
	t.Helper()
	cfg := c.config()
	cfg.CertData, cfg.KeyData = c.ca.Issue(t, pkix.Name{CommonName: name, Organization: groups}, x509.ExtKeyUsageClientAuth)
	return cfg
}

// Admin returns a member of system:masters, which RBAC is not asked about.
func (c *Cluster) Admin(t testing.TB) *rest.Config {
	t.Helper()
	return c.User(t, "kubernetes-super-admin", "system:masters")
}

// Bearer returns a client with a token, whatever it is worth.
func (c *Cluster) Bearer(token string) *rest.Config {
	cfg := c.config()
	cfg.BearerToken = token
	return cfg
}

// ServiceAccount returns a client with a token that the apiserver issued for a service account.
func (c *Cluster) ServiceAccount(t testing.TB, admin kubernetes.Interface, namespace, name string) *rest.Config {
	t.Helper()
	seconds := int64(7200)
	answer, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Bearer(answer.Status.Token)
}

// Kubeconfig writes a file with a client's address and credentials.
func Kubeconfig(t testing.TB, path string, cfg *rest.Config) {
	t.Helper()
	file := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Token: cfg.BearerToken,
			ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}
	if err := clientcmd.WriteToFile(file, path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Version returns the apiserver's, as its module names it.
func (c *Cluster) Version(t testing.TB) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Admin(t))
	if err != nil {
		t.Fatal(err)
	}
	v, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(v.GitVersion)
}

// Metric sums the series of a metric in Prometheus' text format.
func Metric(text, name string) (sum float64) {
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, name)
		if !found || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64); err == nil {
			sum += v
		}
	}
	return sum
}
