package kept

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"time"
)

// Prefixes of credential ids, as apiservers write them.
const (
	PrefixJTI  = "JTI="
	prefixX509 = "X509SHA256="
)

// certificate is what identity needs of a client certificate.
type certificate struct {
	ID            string    `json:"id"` // X509SHA256=<digest of the DER>
	CommonName    string    `json:"commonName,omitempty"`
	Organizations []string  `json:"organizations,omitempty"`
	NotBefore     time.Time `json:"notBefore"`
	NotAfter      time.Time `json:"notAfter"`
}

// readCertificate reads the first certificate of status.certificate, base64 of PEM; nil if none can be read.
func readCertificate(status string) *certificate {
	if status == "" {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(status)
	if err != nil {
		return nil
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		sum := sha256.Sum256(c.Raw)
		return &certificate{
			ID: prefixX509 + hex.EncodeToString(sum[:]), CommonName: c.Subject.CommonName, Organizations: c.Subject.Organization,
			NotBefore: c.NotBefore.UTC(), NotAfter: c.NotAfter.UTC(),
		}
	}
	return nil
}
