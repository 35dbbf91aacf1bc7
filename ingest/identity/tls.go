package identity

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// cachedPair is the server certificate as last read, with the stamps of its files.
type cachedPair struct {
	cert, key fileStamp
	pair      *tls.Certificate
	leaf      *x509.Certificate
	retryAt   time.Time // no renewal before this, after one failed
}

type cachedPool struct {
	stamp fileStamp
	pool  *x509.CertPool
}

// renewRetry is how long to wait after a failed renewal; at the first attempt the certificate
// has a third of its life left.
const renewRetry = time.Hour

// ServerTLS returns the receiver's TLS configuration: TLS 1.2 or newer, HTTP/2 and
// HTTP/1.1, the server certificate and the trusted authorities reread whenever their files
// changed. A client certificate that is presented must verify (signature, authority, time,
// use), otherwise the handshake fails; whether one is needed at all is for the handler to
// decide, since a bearer token will do as well.
func (a *Authority) ServerTLS() *tls.Config {
	base := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		ClientAuth: tls.VerifyClientCertIfGiven,
		Time:       a.cfg.Now,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return a.serverPair()
		},
	}
	// The configuration is cloned for each handshake, and clones share no session tickets. Resumption is off: apiservers keep their
	// connections, and a session would carry a certificate verified by an authority no longer trusted.
	base.SessionTicketsDisabled = true
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := a.trusted()
		if err != nil {
			return nil, err
		}
		c := base.Clone()
		c.GetConfigForClient = nil
		c.ClientCAs = pool
		return c, nil
	}
	return base
}

// serverPair returns the server certificate. While the files cannot be read as a pair (half replaced, unreadable) the last good one serves.
func (a *Authority) serverPair() (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	certPath, keyPath := a.path(serverCertFile), a.path(serverKeyFile)

	if s := &a.server; s.leaf != nil && a.renewable(s.leaf) && !a.cfg.Now().Before(s.retryAt) {
		if err := a.reissue(false); err != nil { // it looks again: another process may have renewed it
			s.retryAt = a.cfg.Now().Add(renewRetry)
			a.log.Error("server certificate not renewed", zap.Error(err), zap.Time("expires", s.leaf.NotAfter))
		}
	}

	certStamp, err := stampOf(certPath)
	keyStamp, keyErr := stampOf(keyPath)
	if err = cmp.Or(err, keyErr); err != nil {
		return a.lastPair(err)
	}
	if a.server.pair != nil && a.server.cert.same(certStamp) && a.server.key.same(keyStamp) {
		return a.server.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(certPath, keyPath)
	if err != nil {
		return a.lastPair(err)
	}
	if a.server.pair != nil {
		a.log.Info("server certificate reloaded", zap.Time("expires", pair.Leaf.NotAfter))
	}
	a.server = cachedPair{cert: certStamp, key: keyStamp, pair: &pair, leaf: pair.Leaf}
	return &pair, nil
}

func (a *Authority) lastPair(err error) (*tls.Certificate, error) {
	if a.server.pair != nil {
		return a.server.pair, nil
	}
	return nil, fmt.Errorf("load server certificate: %w", err)
}

// trusted returns the pool of ca.crt, or the last good one while the file cannot be read.
func (a *Authority) trusted() (*x509.CertPool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stamp, err := stampOf(a.path(caCertFile))
	if err == nil && a.roots.pool != nil && a.roots.stamp.same(stamp) {
		return a.roots.pool, nil
	}
	certs, err := readCerts(a.path(caCertFile))
	if err != nil {
		if a.roots.pool != nil {
			return a.roots.pool, nil
		}
		return nil, fmt.Errorf("load certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	for _, cert := range certs {
		pool.AddCert(cert)
	}
	a.roots = cachedPool{stamp: stamp, pool: pool}
	return pool, nil
}
