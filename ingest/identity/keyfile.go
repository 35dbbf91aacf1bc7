package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	keyLen    = 32 // bytes of a new key
	minKeyLen = 16 // bytes, the fewest the redactor accepts
)

// KeyFile returns the installation's redaction key from the file at path, which holds it in hex. If there is no file, it makes a key, with
// mode 0600, and reports created. The key makes redacted values correlatable: anyone who has the key and the data can test guesses against
// them, so the file must not lie inside dataDir, which gets backed up and shared, and not be readable by everyone. dataDir may be empty.
//
// With another key the same secret gets another mark, and events sent again no longer equal
// those stored: a caller that finds created set on old data should refuse or warn
// (compare [KeyID]).
func KeyFile(path, dataDir string) (key []byte, created bool, err error) {
	if err := CheckKeyPath(path, dataDir); err != nil {
		return nil, false, err
	}
	key, err = readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, false, fmt.Errorf("make redaction key: %w", err)
	}
	unlock, err := lockDir(filepath.Dir(path))
	if err != nil {
		return nil, false, fmt.Errorf("make redaction key: %w", err)
	}
	defer unlock()
	if key, err = readKey(path); !errors.Is(err, fs.ErrNotExist) {
		return key, false, err // another process was first
	}
	key = make([]byte, keyLen)
	rand.Read(key) // never returns an error
	if err := writeFile(path, []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
		return nil, false, fmt.Errorf("make redaction key: %w", err)
	}
	return key, true, nil
}

// CheckKeyPath returns an error for a path that [KeyFile] would refuse.
func CheckKeyPath(path, dataDir string) error {
	if path == "" {
		return errors.New("open redaction key: no file configured")
	}
	if dataDir == "" {
		return nil
	}
	inside, err := within(dataDir, path)
	if err != nil {
		return fmt.Errorf("open redaction key: %w", err)
	}
	if inside {
		return fmt.Errorf("open redaction key: %s lies inside the data directory %s: "+
			"a copy of the data would carry the key; choose a file elsewhere", path, dataDir)
	}
	return nil
}

// KeyID returns a name for a key that does not reveal it: the same key has the same name.
func KeyID(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("retrial redaction key id"))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open redaction key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open redaction key: %s is not a regular file", path)
	}
	// A group may read it: that is how a mounted secret arrives.
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return nil, fmt.Errorf(
			"open redaction key: %s has mode %04o, so that everyone on this machine can read it: chmod 600 it",
			path,
			mode,
		)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("open redaction key: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(data)))
	if err != nil {
		return nil, fmt.Errorf("open redaction key: %s does not hold a key in hex: "+
			"restore it from a backup; to give up correlation with stored events, move it away", path)
	}
	if len(key) < minKeyLen {
		return nil, fmt.Errorf("open redaction key: %s holds %d bytes, at least %d are needed", path, len(key), minKeyLen)
	}
	return key, nil
}

// within reports whether path lies in dir once symbolic links are followed.
func within(dir, path string) (bool, error) {
	d, err := resolve(dir)
	if err != nil {
		return false, err
	}
	p, err := resolve(path)
	if err != nil {
		return false, err
	}
	rel, err := filepath.Rel(d, p)
	if err != nil {
		return false, err
	}
	return rel == "." || rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)), nil
}

// resolve returns path as an absolute path, with the symbolic links of its longest existing
// prefix followed.
func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for p := abs; ; p = filepath.Dir(p) {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || p == filepath.Dir(p) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}
