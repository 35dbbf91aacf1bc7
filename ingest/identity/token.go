package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	// minToken is the shortest token accepted. A fast hash is enough for tokens that
	// cannot be guessed; shorter ones are refused instead of hashed slowly.
	minToken = 32
	maxToken = 4096
	// hashScheme begins every stored hash: sha256(salt, token), salt and sum in hex.
	hashScheme = "sha256"
	saltLen    = 16
)

// NewToken makes a bearer token for a registered cluster and returns it. It cannot be had
// again: the registry keeps a hash. Earlier tokens stay accepted.
func (r *Registry) NewToken(name string) (string, error) {
	var b [32]byte
	rand.Read(b[:]) // never returns an error
	token := base64.RawURLEncoding.EncodeToString(b[:])
	if err := r.AddToken(name, token); err != nil {
		return "", err
	}
	return token, nil
}

// AddToken accepts token for a registered cluster. Adding it again changes nothing.
func (r *Registry) AddToken(name, token string) error {
	if err := checkToken(token); err != nil {
		return fmt.Errorf("add token of cluster %s: %w", name, err)
	}
	_, err := r.change(name, "add token of", func(old *Cluster) (*Cluster, bool, error) {
		if old == nil {
			return nil, false, ErrUnknown
		}
		if old.Revoked != nil {
			return nil, false, ErrRevoked
		}
		c := old.clone()
		if !c.accepts(token) {
			c.Tokens = append(c.Tokens, Token{Hash: hashToken(token), Added: r.now().UTC()})
		}
		return c, false, nil
	})
	return err
}

// Token returns nil if token is one of the cluster's, by the registry or by
// Config.TokenFile. It takes the same time for any token of a given length.
func (r *Registry) Token(name, token string) error {
	c, err := r.lookup(name)
	if errors.Is(err, ErrUnknown) && r.tokens.of(name) != nil {
		c, err = &Cluster{Name: name}, nil // the file registers the cluster
	}
	if err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	ok := c.accepts(token)
	ok = r.tokens.accepts(name, token) || ok
	switch {
	case !ok:
		return fmt.Errorf("cluster %s: token: %w", name, ErrCredential)
	case c.Revoked != nil:
		return fmt.Errorf("cluster %s: token: %w", name, ErrRevoked)
	}
	return nil
}

// accepts compares token with every stored hash, whether or not one matched before.
func (c *Cluster) accepts(token string) bool {
	if len(token) > maxToken {
		return false
	}
	match := 0
	for _, t := range c.Tokens {
		scheme, rest, _ := strings.Cut(t.Hash, ":")
		saltHex, want, ok := strings.Cut(rest, ":")
		salt, err := hex.DecodeString(saltHex)
		if scheme != hashScheme || !ok || err != nil {
			continue
		}
		match |= subtle.ConstantTimeCompare([]byte(sumToken(salt, token)), []byte(want))
	}
	return match == 1
}

func hashToken(token string) string {
	salt := make([]byte, saltLen)
	rand.Read(salt) // never returns an error
	return hashScheme + ":" + hex.EncodeToString(salt) + ":" + sumToken(salt, token)
}

func sumToken(salt []byte, token string) string {
	h := sha256.New()
	h.Write(salt)
	h.Write([]byte(token))
	return hex.EncodeToString(h.Sum(nil))
}

func checkToken(token string) error {
	if len(token) < minToken || len(token) > maxToken {
		return fmt.Errorf("invalid token of %d characters: want %d to %d; `openssl rand -hex 32` makes one", len(token), minToken, maxToken)
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' {
			return errors.New("invalid token: want printable ASCII characters without spaces")
		}
	}
	return nil
}
