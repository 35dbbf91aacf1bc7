package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/retrial-io/retrial/internal/flock"
)

// ErrLocked is matched by the error for a directory that another process holds.
var ErrLocked = errors.New("data directory is in use")

// LockedError names the process that holds the data directory. It matches ErrLocked.
type LockedError struct {
	Dir   string
	Owner string // as the holder wrote: "pid 123 (retrial serve)"; "" if unreadable
}

func (e *LockedError) Error() string {
	owner := cmp.Or(e.Owner, "another process")
	return fmt.Sprintf("data directory %s is in use by %s: stop it, or choose another directory", e.Dir, owner)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// dirLock is an exclusive lock on a directory. The operating system releases it when the
// process ends, however it ends; the file itself stays.
type dirLock struct{ file *os.File }

// lockDir locks dir and writes into the lock file which process holds it.
func lockDir(dir string) (*dirLock, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w: the directory must be writable by this user", err)
	}
	if err := flock.Try(f); err != nil {
		defer f.Close()
		switch {
		case errors.Is(err, flock.ErrHeld):
			owner, _ := os.ReadFile(path)
			return nil, &LockedError{Dir: dir, Owner: strings.TrimSpace(string(owner))}
		case errors.Is(err, flock.ErrUnsupported): // two processes could write one log
			err = fmt.Errorf("the embedded broker needs flock: %w: use a Kafka server", err)
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
