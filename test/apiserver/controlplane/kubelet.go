package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Kubelet makes a node behind which something stands in for the kubelet: it takes the
// apiserver's upgrades (exec, attach, port-forward) and hangs up, and answers everything else
// with nothing. That is enough for the apiserver to record a stream that was opened.
func (c *Cluster) Kubelet(t testing.TB, admin kubernetes.Interface, node string) {
	t.Helper()
	c.serveNode(t, admin, node, "127.0.0.1", http.HandlerFunc(hangUp))
}

// serveNode makes a node, ready for pods, with a handler at its kubelet's port on loopback,
// and returns the port's address. Certificates of clients are verified, if they show one.
func (c *Cluster) serveNode(t testing.TB, admin kubernetes.Interface, node, address string, kubelet http.Handler) net.Addr {
	t.Helper()
	cert, key := c.ca.Issue(t, pkix.Name{CommonName: "system:node:" + node}, x509.ExtKeyUsageServerAuth, "127.0.0.1")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(kubelet)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: x509.NewCertPool()}
	server.TLS.ClientCAs.AddCert(c.ca.cert)
	server.StartTLS()
	t.Cleanup(server.Close)

	made, err := admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The apiserver marks a new node as not ready, and a controller takes that away.
	made.Spec.Taints = nil
	if made, err = admin.CoreV1().Nodes().Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	made.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	made.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(server.Listener.Addr().(*net.TCPAddr).Port)
	if _, err := admin.CoreV1().Nodes().UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return server.Listener.Addr()
}

func hangUp(w http.ResponseWriter, r *http.Request) {
	hijacker, ok := w.(http.Hijacker)
	if !ok || !strings.EqualFold(r.Header.Get("Connection"), "Upgrade") {
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	protocol, _, _ := strings.Cut(r.Header.Get("X-Stream-Protocol-Version"), ",")
	_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + r.Header.Get("Upgrade") +
		"\r\nX-Stream-Protocol-Version: " + protocol + "\r\n\r\n"))
}
