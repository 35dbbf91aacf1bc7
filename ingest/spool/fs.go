package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/retrial-io/retrial/internal/flock"
)

// FS is the folder a spool lives in, reduced to what the spool needs. Names are those of files
// in the folder, without a path. Errors wrap the operating system's, so that errors.Is finds
// fs.ErrNotExist and syscall.ENOSPC. It is safe for concurrent use.
//
// The spool relies on this alone: bytes are durable once Sync of their file has returned nil;
// creating, removing and renaming a file once Sync of the folder has. Until then any part may
// be lost, in any order.
type FS interface {
	// Open opens a file with the flags of os.OpenFile (os.O_RDONLY, os.O_RDWR|os.O_CREATE
	// and the like).
	Open(name string, flag int) (File, error)
	Remove(name string) error
	Rename(from, to string) error
	// List returns the names in the folder, in no order.
	List() ([]string, error)
	// Sync makes names durable.
	Sync() error
	// Free returns the bytes that can still be written by this user.
	Free() (int64, error)
}

// File is one open file. Reads and writes take an offset: the spool keeps its own.
type File interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Truncate(size int64) error
	Size() (int64, error)
	io.Closer
}

// ErrLocked is matched by the error for a folder that another process uses.
var ErrLocked = errors.New("spool folder is in use")

// lockName is the file in the folder that is locked; it names the process that holds it.
const lockName = "lock"

// Dir is a folder of the operating system, held by this process alone.
type Dir struct {
	path string
	lock *os.File
}

// OpenDir creates the folder if it is missing (mode 0700), checks that it can be written and
// locks it. The lock ends with Close or with the process, however that ends. The error for a
// folder that another process holds matches ErrLocked.
func OpenDir(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("spool folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("spool folder: %w: this user must be able to write there", err)
	}
	owner, err := flock.Own(f)
	switch {
	case err == nil:
		return &Dir{path: path, lock: f}, nil
	case errors.Is(err, flock.ErrHeld):
		err = fmt.Errorf("%w: %s is held by %s: stop it first", ErrLocked, path, cmp.Or(owner, "another process"))
	case errors.Is(err, flock.ErrUnsupported): // without a lock, two processes could spool into one folder
		err = fmt.Errorf("lock spool folder %s: %w: use --spool off", path, err)
	default:
		err = fmt.Errorf("lock spool folder %s: %w", path, err)
	}
	return nil, errors.Join(err, f.Close())
}

// Close releases the lock. Further calls do nothing.
func (d *Dir) Close() error {
	if err := d.lock.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Open implements FS.
func (d *Dir) Open(name string, flag int) (File, error) {
	f, err := os.OpenFile(filepath.Join(d.path, name), flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Remove implements FS.
func (d *Dir) Remove(name string) error { return os.Remove(filepath.Join(d.path, name)) }

// Rename implements FS.
func (d *Dir) Rename(from, to string) error {
	return os.Rename(filepath.Join(d.path, from), filepath.Join(d.path, to))
}

// List implements FS.
func (d *Dir) List() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// Sync implements FS.
func (d *Dir) Sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// osFile adds the size to an os.File.
type osFile struct{ *os.File }

// Size implements File.
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
