package webhook

import (
	"crypto/x509"
	"errors"
	"slices"
)

// known are registered clusters without credentials.
type known []string

func (k known) Certificate(*x509.Certificate) (string, error) { return "", errors.New("none") }
func (k known) Token(string, string) error                    { return errors.New("none") }
func (k known) Known(cluster string) bool                     { return slices.Contains(k, cluster) }
