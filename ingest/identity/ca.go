package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"
)

const (
	caCertFile     = "ca.crt"
	caKeyFile      = "ca.key"
	serverCertFile = "server.crt"
	serverKeyFile  = "server.key"
	clustersDir    = "clusters"

	// clockSkew is how far certificates reach back, so that an apiserver whose clock is
	// somewhat behind accepts them.
	clockSkew = time.Hour
)

// ensureCA makes the authority unless it exists. A key without certificate is an error: a new one would silently cut off who trusts the
// old.
func (a *Authority) ensureCA() error {
	_, certErr := os.Stat(a.path(caCertFile))
	_, keyErr := os.Stat(a.path(caKeyFile))
	switch {
	case certErr == nil && (keyErr == nil || errors.Is(keyErr, fs.ErrNotExist)):
		// Without its key the authority still verifies; only issuing needs the key, and
		// says so.
		cert, err := readCert(a.path(caCertFile))
		if err != nil {
			return err
		}
		if now := a.cfg.Now(); now.After(cert.NotAfter) {
			return fmt.Errorf(
				"certificate authority %s expired %s: move the directory away and add the clusters again",
				a.path(caCertFile),
				cert.NotAfter.Format(time.RFC3339),
			)
		}
		return nil
	case errors.Is(certErr, fs.ErrNotExist) && keyErr == nil:
		return fmt.Errorf(
			"%s exists but %s is missing: restore it, or move the key away to start a new authority",
			a.path(caKeyFile),
			a.path(caCertFile),
		)
	case certErr != nil && !errors.Is(certErr, fs.ErrNotExist):
		return certErr
	}

	keyPEM, certPEM, expires, err := a.makeCA()
	if err != nil {
		return err
	}
	// The key first: a certificate without its key could issue nothing, and the next start
	// could not tell that it never could.
	if err := writeFile(a.path(caKeyFile), keyPEM, 0o600); err != nil {
		return err
	}
	if err := writeFile(a.path(caCertFile), certPEM, 0o644); err != nil {
		return err
	}
	a.log.Info("certificate authority made", zap.String("dir", a.cfg.Dir), zap.Time("expires", expires))
	return nil
}

func (a *Authority) makeCA() (keyPEM, certPEM []byte, expires time.Time, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, expires, fmt.Errorf("make authority key: %w", err)
	}
	now := a.cfg.Now()
	template := &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               pkix.Name{CommonName: "Retrial receiver authority", Organization: []string{"retrial"}},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(a.cfg.CALife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, expires, fmt.Errorf("make authority certificate: %w", err)
	}
	if keyPEM, err = encodeKey(key); err != nil {
		return nil, nil, expires, err
	}
	return keyPEM, encodeCert(der), template.NotAfter, nil
}

// issueServer issues the server certificate if there is none, if it lacks a configured
// name, or if a third or less of its life is left; with always set, in any case. The new one keeps
// the names of the old: another process, configured with fewer names, must not take away those that
// apiservers use. To get a certificate with the configured names alone, move the old one away.
func (a *Authority) issueServer(always bool) error {
	names := serverNames(a.cfg.Names)
	cert, err := readCert(a.path(serverCertFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !always && !a.renewable(cert) && coversNames(cert, names):
		return nil
	default:
		kept := slices.Clone(cert.DNSNames)
		for _, ip := range cert.IPAddresses {
			kept = append(kept, ip.String())
		}
		names = serverNames(append(slices.Clone(a.cfg.Names), kept...))
	}
	certPEM, keyPEM, issued, err := a.issue(caKeyFile, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "retrial", Organization: []string{"retrial"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, names, nil)
	if err != nil {
		return fmt.Errorf("issue server certificate: %w", err)
	}
	if err := writePair(a.path(serverCertFile), a.path(serverKeyFile), certPEM, keyPEM); err != nil {
		return err
	}
	a.log.Info("server certificate issued", zap.Strings("names", names), zap.Time("expires", issued.NotAfter))
	return nil
}

// renewable reports whether a third or less of cert's life is left.
func (a *Authority) renewable(cert *x509.Certificate) bool {
	life := cert.NotAfter.Sub(cert.NotBefore)
	return cert.NotAfter.Sub(a.cfg.Now()) <= life/3
}

// issue makes a leaf from template with a fresh key, signed with that in keyFile. names become alternative names. It does not outlive that.
func (a *Authority) issue(
	keyFile string,
	template *x509.Certificate,
	names []string,
	uri *url.URL,
) (certPEM, keyPEM []byte, cert *x509.Certificate, err error) {
	caCert, caKey, err := a.loadCA(keyFile)
	if err != nil {
		return nil, nil, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make key: %w", err)
	}
	now := a.cfg.Now()
	template.SerialNumber = newSerial()
	template.NotBefore = now.Add(-clockSkew)
	template.NotAfter = now.Add(a.cfg.LeafLife)
	if template.NotAfter.After(caCert.NotAfter) {
		template.NotAfter = caCert.NotAfter
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.BasicConstraintsValid = true
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	if uri != nil {
		template.URIs = []*url.URL{uri}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, caCert, key.Public(), caKey)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("sign certificate: %w", err)
	}
	if keyPEM, err = encodeKey(key); err != nil {
		return nil, nil, nil, err
	}
	cert, err = x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("parse own certificate: %w", err)
	}
	return encodeCert(der), keyPEM, cert, nil
}

// loadCA reads the signing pair. Of several in ca.crt the key's own signs; the others are only trusted, as a change of authority needs.
func (a *Authority) loadCA(keyFile string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	keyPEM, err := os.ReadFile(a.path(keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s is missing: without it no certificate can be issued here", a.path(keyFile))
	}
	if err != nil {
		return nil, nil, err
	}
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, nil, fmt.Errorf("read %s: no PEM block", a.path(keyFile))
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", a.path(keyFile), err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("read %s: want an ECDSA key, have %T", a.path(keyFile), parsed)
	}
	certs, err := readCerts(a.path(caCertFile))
	if err != nil {
		return nil, nil, err
	}
	for _, cert := range certs {
		if key.PublicKey.Equal(cert.PublicKey) {
			return cert, key, nil
		}
	}
	return nil, nil, fmt.Errorf("%s holds no certificate for the key in %s", a.path(caCertFile), a.path(keyFile))
}

// serverNames returns the names of the server certificate: loopback always, then what is
// configured, without duplicates.
func serverNames(configured []string) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	for _, name := range configured {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func coversNames(cert *x509.Certificate, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return cert.VerifyHostname(name) != nil })
}

// ServerCovers reports whether the server certificate names host.
func (a *Authority) ServerCovers(host string) (bool, error) {
	cert, err := readCert(a.path(serverCertFile))
	if err != nil {
		return false, fmt.Errorf("read server certificate: %w", err)
	}
	return cert.VerifyHostname(host) == nil, nil
}

// Certificates returns the authority's certificate and the server's, as they are on disk.
func (a *Authority) Certificates() (authority, server *x509.Certificate, err error) {
	if authority, err = readCert(a.path(caCertFile)); err != nil {
		return nil, nil, fmt.Errorf("read certificate authority: %w", err)
	}
	if server, err = readCert(a.path(serverCertFile)); err != nil {
		return nil, nil, fmt.Errorf("read server certificate: %w", err)
	}
	return authority, server, nil
}

// newSerial returns a positive random number of up to 127 bits.
func newSerial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never returns an error
	b[0] &= 0x7f
	b[15] |= 1 // never zero
	return new(big.Int).SetBytes(b[:])
}

// serialText returns a serial as the registry and messages write it.
func serialText(serial *big.Int) string { return hex.EncodeToString(serial.Bytes()) }

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// writePair writes a key, then its certificate: who sees it with the old one gets an error and reads again, see [Authority.serverPair].
func writePair(certPath, keyPath string, certPEM, keyPEM []byte) error {
	if err := writeFile(keyPath, keyPEM, 0o600); err != nil {
		return err
	}
	return writeFile(certPath, certPEM, 0o644)
}

// readCerts returns every certificate of a PEM file, at least one.
func readCerts(path string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	for rest := bytes.TrimSpace(data); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, fmt.Errorf("read %s: it holds no certificate", path)
	}
	return certs, nil
}

func readCert(path string) (*x509.Certificate, error) {
	certs, err := readCerts(path)
	if err != nil {
		return nil, err
	}
	return certs[0], nil
}
