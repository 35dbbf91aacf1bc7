package configurations

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// frontProxy is the authority whose certificates may say on whose behalf they ask.
type frontProxy struct {
	*controlplane.Authority
	flags []string
	files map[string][]byte
	// recorded takes the key out of what is kept.
	recorded map[string][]byte
}

// newFrontProxy makes one, with the flags and files of an apiserver that knows it.
func newFrontProxy(t *testing.T) *frontProxy {
	t.Helper()
	p := &frontProxy{Authority: controlplane.NewAuthority(t)}
	cert, key := p.Issue(t, pkix.Name{CommonName: "front-proxy-client"}, x509.ExtKeyUsageClientAuth)
	p.flags = append(controlplane.FrontProxyFlags("DIR"), "--requestheader-uid-headers=X-Remote-Uid")
	p.files = map[string][]byte{"front-proxy-ca.crt": p.PEM(), "front-proxy-client.crt": cert, "front-proxy-client.key": key}
	p.recorded = map[string][]byte{"front-proxy-client.key": nil}
	return p
}

// client returns one with a certificate of the front proxy's authority.
func (p *frontProxy) client(t *testing.T, base *rest.Config, name string) *rest.Config {
	t.Helper()
	cfg := rest.CopyConfig(base)
	cfg.CertData, cfg.KeyData = p.Issue(t, pkix.Name{CommonName: name}, x509.ExtKeyUsageClientAuth)
	return cfg
}
