package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/retrial-io/retrial/ingest/identity"
)

// Register returns the cluster's credentials: those it has, or, for a new cluster, its
// first. What no longer works is named, never replaced in silence: apiservers that use it
// would be cut off one day without anybody having decided so.
func Register(a *identity.Authority, cluster string) (cred identity.Credentials, fresh bool, err error) {
	entry, err := a.Registry().Get(cluster)
	if errors.Is(err, identity.ErrUnknown) {
		cred, err = a.Registry().Add(cluster)
		return cred, true, err
	}
	if err != nil {
		return cred, false, err
	}
	again := func(err error) error {
		return fmt.Errorf("cluster %s is registered, but its certificate cannot be used: %w; `retrial cluster rotate %s --output FILE` "+
			"issues another, then run this again", cluster, err, cluster)
	}
	if entry.Revoked != nil {
		return cred, false, again(fmt.Errorf("%w on %s", identity.ErrRevoked, entry.Revoked.Format(time.DateOnly)))
	}
	if cred, err = a.Registry().Credentials(cluster); err != nil {
		return cred, false, again(err)
	}
	block, _ := pem.Decode(cred.Cert)
	if block == nil {
		return cred, false, again(errors.New("it holds no PEM block"))
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return cred, false, again(err)
	}
	if _, err := a.Registry().Certificate(cert); err != nil {
		return cred, false, again(err)
	}
	return cred, false, nil
}
