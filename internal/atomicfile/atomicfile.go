// Package atomicfile replaces files so that a reader, even after a crash or a power failure, finds
// the whole old file or the whole new one. It is renameio, plus what that leaves to its caller: the
// folder is synced, too, without which a power failure may undo a rename.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

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

// Folder writes files, by their paths, into a folder that is made, or that is there and holds nothing, unless replace allows its entries
// to go. They come into it together, the one called last as the last; if that fails, the folder is as it was.
func Folder(path string, files map[string][]byte, last string, replace func(entries []string) error) (err error) {
	entries, err := os.ReadDir(path)
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		err = os.Mkdir(path, 0o755)
	}
	if err != nil {
		return err
	}
	defer func() {
		if made && err != nil {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}()
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if len(names) > 0 {
		if err := replace(names); err != nil {
			return err
		}
	}
	fresh, err := os.MkdirTemp(path, ".new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	old, err := os.MkdirTemp(path, ".old-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(old)) }()
	if err := fill(fresh, files); err != nil {
		return err
	}
	come, err := os.ReadDir(fresh)
	if err != nil {
		return err
	}
	slices.SortStableFunc(come, func(a, b fs.DirEntry) int {
		return map[bool]int{true: 1}[a.Name() == last] - map[bool]int{true: 1}[b.Name() == last]
	})
	var moves [][2]string
	for _, name := range names {
		moves = append(moves, [2]string{filepath.Join(path, name), filepath.Join(old, name)})
	}
	for _, e := range come {
		moves = append(moves, [2]string{filepath.Join(fresh, e.Name()), filepath.Join(path, e.Name())})
	}
	for i, m := range moves {
		if err := os.Rename(m[0], m[1]); err != nil {
			for _, back := range slices.Backward(moves[:i]) {
				err = errors.Join(err, os.Rename(back[1], back[0]))
			}
			return err
		}
	}
	return errors.Join(syncFolder(path), syncFolder(filepath.Dir(path)))
}

// fill writes files below a folder, and waits until they are on disk. Scripts may be run.
func fill(folder string, files map[string][]byte) error {
	for name, text := range files {
		to := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if filepath.Ext(name) == ".sh" {
			mode = 0o755
		}
		if err := Write(to, text, mode); err != nil {
			return err
		}
	}
	return nil
}

func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
