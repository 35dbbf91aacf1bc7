package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

const (
	// minToken is the shortest token taken. A fast hash suffices for what cannot be guessed; shorter ones are refused, not hashed slowly.
	minToken = 32
	maxToken = 4096
	// hashScheme begins every stored hash: sha256(salt, token), salt and sum in hex.
	hashScheme = "sha256"
	saltLen    = 16
)

// NewToken makes a bearer token for a registered cluster and returns it. Only a hash is kept. Earlier tokens stay accepted.
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
		if !old.accepts(token) {
			old.Tokens = append(old.Tokens, Token{Hash: hashToken(token), Added: r.now().UTC()})
		}
		return old, false, nil
	})
	return err
}

// Token returns nil if token is one of the cluster's, by the registry or by Config.TokenFile. It takes the same time for any of a length.
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
	sum := sha256.Sum256(slices.Concat(salt, []byte(token)))
	return hex.EncodeToString(sum[:])
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

// tokenFile is an operator's file of bearer tokens, one `cluster token` pair a line;
// blank lines and lines that begin with # are skipped. It is reread when it changes; while it
// cannot be read, what was last read stays in force.
type tokenFile struct {
	path string

	mu    sync.Mutex
	stamp fileStamp
	sums  map[string][][sha256.Size]byte // by cluster
}

// reread reads the file if it is not the one that was read.
func (t *tokenFile) reread() error {
	stamp, err := stampOf(t.path)
	if err != nil {
		return fmt.Errorf("read token file: %w", err)
	}
	if t.sums != nil && stamp.same(t.stamp) {
		return nil
	}
	sums, err := readTokenFile(t.path)
	if err == nil {
		t.stamp, t.sums = stamp, sums
	}
	return err
}

func readTokenFile(path string) (map[string][][sha256.Size]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read token file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return nil, fmt.Errorf("read token file: %s has mode %04o, so that everyone on this machine can read it: chmod 600 it", path, mode)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read token file: %w", err)
	}
	sums := map[string][][sha256.Size]byte{}
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		fail := func(err error) error { return fmt.Errorf("read token file: %s line %d: %w", path, i+1, err) }
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fail(errors.New("want a cluster and a token"))
		}
		if !ValidName(fields[0]) {
			return nil, fail(ErrName)
		}
		if err := checkToken(fields[1]); err != nil {
			return nil, fail(err)
		}
		sums[fields[0]] = append(sums[fields[0]], sha256.Sum256([]byte(fields[1])))
	}
	return sums, nil
}

// of returns the hashed tokens of a cluster.
func (t *tokenFile) of(cluster string) [][sha256.Size]byte {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.reread() // what was last read stays in force
	return t.sums[cluster]
}

// accepts compares token with every token of the cluster.
func (t *tokenFile) accepts(cluster, token string) bool {
	sums := t.of(cluster)
	if len(sums) == 0 || len(token) > maxToken {
		return false
	}
	have := sha256.Sum256([]byte(token))
	match := 0
	for _, want := range sums {
		match |= subtle.ConstantTimeCompare(have[:], want[:])
	}
	return match == 1
}
