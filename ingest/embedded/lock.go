package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrLocked is matched by the error for a directory another process holds.
var ErrLocked = errors.New("data directory is in use")

// errHeld is what the platform's lock returns when another process has it.
var errHeld = errors.New("lock is held")

// LockedError tells who holds the data directory. It matches ErrLocked.
type LockedError struct {
	Dir   string
	Owner string // what the holder wrote about itself: "pid 123 (retrial serve)"; "" when unreadable
}

func (e *LockedError) Error() string {
	owner := e.Owner
	if owner == "" {
		owner = "another process"
	}
	return fmt.Sprintf("data directory %s is in use by %s: stop it, or choose another directory", e.Dir, owner)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// dirLock is an exclusive lock on a directory. The operating system releases it when the
// process ends, however it ends; the file itself stays.
type dirLock struct{ file *os.File }

// lockDir takes the lock of dir and writes into the lock file who holds it.
func lockDir(dir string) (*dirLock, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w (the directory must be writable by this user)", err)
	}
	if err := tryLock(f); err != nil {
		defer f.Close()
		if errors.Is(err, errHeld) {
			owner, _ := os.ReadFile(path)
			return nil, &LockedError{Dir: dir, Owner: strings.TrimSpace(string(owner))}
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	owner := fmt.Sprintf("pid %d (%s)\n", os.Getpid(), filepath.Base(os.Args[0]))
	if err := errors.Join(f.Truncate(0), writeAt(f, owner), f.Sync()); err != nil {
		f.Close()
		return nil, fmt.Errorf("write lock file: %w", err)
	}
	return &dirLock{f}, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

func (l *dirLock) release() { l.file.Close() }
