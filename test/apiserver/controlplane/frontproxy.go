package controlplane

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"path/filepath"
	"testing"
)

// FrontProxyFlags make an apiserver send requests on to aggregated API servers, and say on
// whose behalf: with the authority, certificate and key of the front proxy in a folder.
func FrontProxyFlags(dir string) []string {
	return []string{"--requestheader-client-ca-file=" + dir + "/front-proxy-ca.crt", "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--proxy-client-cert-file=" + dir + "/front-proxy-client.crt",
		"--proxy-client-key-file=" + dir + "/front-proxy-client.key"}
}

// FrontProxy makes an authority and a certificate in a folder and returns the flags for them.
func FrontProxy(t testing.TB, dir string) []string {
	t.Helper()
	authority := NewAuthority(t)
	cert, key := authority.Issue(t, pkix.Name{CommonName: "front-proxy-client"}, x509.ExtKeyUsageClientAuth)
	for name, text := range map[string][]byte{"front-proxy-ca.crt": authority.PEM(), "front-proxy-client.crt": cert,
		"front-proxy-client.key": key} {
		write(t, filepath.Join(dir, name), text)
	}
	return FrontProxyFlags(dir)
}
