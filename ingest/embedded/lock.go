package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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

// lockDir locks dir, by a file in it that stays, and writes into it which process holds the lock.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w: the directory must be writable by this user", err)
	}
	owner, err := flock.Own(f)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, flock.ErrHeld):
		err = &LockedError{Dir: dir, Owner: owner}
	case errors.Is(err, flock.ErrUnsupported): // two processes could write one log
		err = fmt.Errorf("lock %s: the embedded broker needs flock: %w: use a Kafka server", path, err)
	default:
		err = fmt.Errorf("lock %s: %w", path, err)
	}
	f.Close()
	return nil, err
}
