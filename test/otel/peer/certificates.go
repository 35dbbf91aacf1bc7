package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// certificates of a post over mutual TLS, as the product's webhook wants it.
type certificates struct {
	ca, cert, key string // files, for the collector
	pair          tls.Certificate
	roots         *x509.CertPool
}

// makeCertificates makes one key that signs itself and serves for both ends.
func makeCertificates(dir string) (c certificates, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "peer"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return c, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return c, err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	c.ca, c.cert, c.key = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.pem"), filepath.Join(dir, "key.pem")
	if err := os.WriteFile(c.cert, cert, 0o600); err != nil {
		return c, err
	}
	if err := os.WriteFile(c.key, private, 0o600); err != nil {
		return c, err
	}
	c.roots = x509.NewCertPool()
	c.roots.AppendCertsFromPEM(cert)
	c.pair, err = tls.X509KeyPair(cert, private)
	return c, err
}

// client posts as an apiserver does: HTTP/2 over mutual TLS.
func (c certificates) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots, Certificates: []tls.Certificate{c.pair}},
		ForceAttemptHTTP2: true,
	}}
}
