// Package atomicfile replaces files so that a reader, even after a crash or a power failure, finds
// the whole old file or the whole new one. It is renameio, plus what that leaves to its caller: the
// folder is synced, too, without which a power failure may undo a rename.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write replaces the file at path with one that holds data and has the given mode, regardless of
// the process's umask. Once it returns nil, file and folder are on disk.
func Write(path string, data []byte, mode fs.FileMode) error {
	f, err := Create(path, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Commit()
	}
	return errors.Join(err, f.Cleanup())
}

// File is a file that is not yet at its path.
type File struct {
	*renameio.PendingFile
	folder string
}

// Create opens a new file beside path, with the given mode regardless of the process's umask. The
// file at path stays as it is until Commit; the caller must call Cleanup in any case.
func Create(path string, mode fs.FileMode) (*File, error) {
	folder := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(folder), renameio.WithStaticPermissions(mode))
	if err != nil {
		return nil, err
	}
	return &File{f, folder}, nil
}

// Commit moves the file to its path and waits until file and folder are on disk.
func (f *File) Commit() error {
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return syncFolder(f.folder)
}

// Rename moves a file within its folder, replacing what is there, and waits until the folder is on
// disk.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
