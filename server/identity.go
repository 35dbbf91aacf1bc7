package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/atomicfile"
	"github.com/retrial-io/retrial/internal/config"
)

// OpenIdentity opens the certificates and the registry of the configured data directory.
func OpenIdentity(cfg config.Config) (*identity.Authority, error) {
	return identity.Open(IdentityConfig(cfg), nil, nil)
}

// IdentityConfig returns where they are stored.
func IdentityConfig(cfg config.Config) identity.Config {
	return identity.Config{Dir: filepath.Join(cfg.DataDir, "pki"), Names: cfg.Webhook.Advertise, TokenFile: cfg.Webhook.TokenFile}
}

// ReceiverURL returns the URL at which apiservers reach the receiver: by the first advertised name, else by the listener's own address.
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

// redactionKey returns the installation's key. It refuses a data directory of another key: events sent again would not equal those stored.
func redactionKey(cfg config.Config, log *zap.Logger) ([]byte, error) {
	if err := identity.CheckKeyPath(cfg.KeyFile, cfg.DataDir); err != nil {
		return nil, fmt.Errorf("%w (--key-file)", err)
	}
	file := cfg.KeyIDFile()
	known, knownErr := os.ReadFile(file)
	if _, err := os.Stat(cfg.KeyFile); knownErr == nil && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("redaction key %s is missing, and %s was filled under one: restore it, or name it with --key-file",
			cfg.KeyFile, cfg.DataDir)
	}
	key, created, err := identity.KeyFile(cfg.KeyFile, cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("%w (--key-file)", err)
	}
	if created {
		log.Info("made the redaction key; back it up", zap.String("file", config.Absolute(cfg.KeyFile)))
	}
	switch err := knownErr; {
	case errors.Is(err, os.ErrNotExist):
		if err := atomicfile.Write(file, []byte(identity.KeyID(key)+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("data directory: %w", err)
	case strings.TrimSpace(string(known)) != identity.KeyID(key):
		return nil, fmt.Errorf("redaction key %s is not the one %s was filled under: name that one with --key-file, or use another "+
			"--data-dir", cfg.KeyFile, cfg.DataDir)
	}
	return key, nil
}

// KnownKey returns the installation's redaction key, nil if none was made yet.
func KnownKey(cfg config.Config) ([]byte, error) {
	if _, err := os.Stat(cfg.KeyFile); err != nil {
		return nil, nil //nolint:nilerr // what is not there is not known
	}
	key, _, err := identity.KeyFile(cfg.KeyFile, cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("%w (--key-file)", err)
	}
	return key, nil
}
