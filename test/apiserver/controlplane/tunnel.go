package controlplane

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
)

// tunnelled is the address of nodes behind a tunnel: kube-apiserver refuses to proxy to one of
// the loopback device.
const tunnelled = "10.0.0.1"

// Tunnel serves the way from kube-apiserver to its nodes, as a cluster has it whose control
// plane lies in another network. Whatever the address, it leads to the port on loopback. It
// returns the flag that makes kube-apiserver take it; what Node makes needs it.
func Tunnel(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	tunnel(t, listener)
	return "--egress-selector-config-file=" + write(t, filepath.Join(dir, "egress.yaml"), []byte(`
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: `+socket+`}}
`))
}

// Proxy serves the same way to whoever else reaches nodes and Services, and returns its URL for
// HTTPS_PROXY: clients go past it to addresses on loopback.
func Proxy(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tunnel(t, listener)
	return "http://" + listener.Addr().String()
}

// tunnel answers on a listener until the test ends.
func tunnel(t testing.TB, listener net.Listener) {
	server := &http.Server{Handler: http.HandlerFunc(carry)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// carry answers a CONNECT and copies both ways until either side ends.
func carry(w http.ResponseWriter, r *http.Request) {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil || r.Method != http.MethodConnect {
		http.Error(w, "CONNECT alone is served", http.StatusBadRequest)
		return
	}
	var d net.Dialer
	there, err := d.DialContext(r.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(there, buffered); _ = there.Close() })
	both.Go(func() { _, _ = io.Copy(here, there); _ = here.Close() })
	both.Wait()
}
