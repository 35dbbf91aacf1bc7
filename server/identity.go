package server

import (
	"net"
	"path/filepath"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/config"
)

// OpenIdentity opens the certificates and the registry of the configured data directory.
func OpenIdentity(cfg config.Config) (*identity.Authority, error) {
	return identity.Open(IdentityConfig(cfg), nil, nil)
}

// IdentityConfig returns where they lie.
func IdentityConfig(cfg config.Config) identity.Config {
	return identity.Config{Dir: filepath.Join(cfg.DataDir, "pki"), Names: cfg.Webhook.Advertise, TokenFile: cfg.Webhook.TokenFile}
}

// ReceiverURL is where apiservers reach the receiver: the first advertised name, else the
// listener's own address.
func ReceiverURL(cfg config.Config) string {
	host, port, err := net.SplitHostPort(cfg.Webhook.Listen)
	if err != nil {
		return "https://" + cfg.Webhook.Listen
	}
	if len(cfg.Webhook.Advertise) > 0 {
		host = cfg.Webhook.Advertise[0]
	}
	return "https://" + net.JoinHostPort(host, port)
}
