package identity

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// tokenFile is an operator's file of bearer tokens, one `cluster token` pair a line;
// blank lines and lines that begin with # are skipped. It is reread when it changes; while it
// cannot be read, what was last read stays in force.
type tokenFile struct {
	path string

	mu    sync.Mutex
	stamp fileStamp
	sums  map[string][][sha256.Size]byte // by cluster
}

// openTokenFile reads the file for the first time: then every mistake in it is an error.
func openTokenFile(path string) (*tokenFile, error) {
	t := &tokenFile{path: path}
	stamp, err := stampOf(path)
	if err != nil {
		return nil, fmt.Errorf("read token file: %w", err)
	}
	sums, err := readTokenFile(path)
	if err != nil {
		return nil, err
	}
	t.stamp, t.sums = stamp, sums
	return t, nil
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
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fail := func(err error) error { return fmt.Errorf("read token file: %s line %d: %w", path, n, err) }
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
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read token file: %s: %w", path, err)
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
	if stamp, err := stampOf(t.path); err == nil && !stamp.same(t.stamp) {
		if sums, err := readTokenFile(t.path); err == nil {
			t.stamp, t.sums = stamp, sums
		}
	}
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
