package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Bounds of what is read from a folder: it holds configuration, nothing large.
const (
	maxFiles = 5000
	maxBytes = 16 << 20
)

// tree is a folder with copies of an apiserver's files.
type tree struct {
	fsys  fs.FS
	files []string        // all, without those of versions and of other servers
	used  map[string]bool // read as part of the configuration
	// mounts are container paths with the host paths behind them, longest first.
	mounts []mount
}

type mount struct{ container, host string }

// errAmbiguous is returned when several files could be the one a flag names.
var errAmbiguous = errors.New("several files have that name")

// newTree lists a folder. Sub-folders that hold other versions (those named by a time, and
// those in other) or other servers are not part of it.
func newTree(fsys fs.FS, other []string) (*tree, error) {
	t := &tree{fsys: fsys, used: map[string]bool{}}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return readError(p, err)
		}
		if d.IsDir() {
			if _, isVersion := folderTime(d.Name()); p != "." &&
				(isVersion || p == aggregatedFolder || p == serversFolder || slices.Contains(other, p) ||
					strings.HasPrefix(d.Name(), "..")) {
				return fs.SkipDir // ..data and the like belong to mounted volumes
			}
			return nil
		}
		if len(t.files) == maxFiles {
			return fmt.Errorf("it holds more than %d files: name a folder with nothing but the apiserver's configuration", maxFiles)
		}
		t.files = append(t.files, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// readError returns an error that says which file could not be read and why.
func readError(p string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err // its path is relative
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s cannot be read: %w: grant read access to the user that Retrial runs as", p, err)
	}
	return fmt.Errorf("%s cannot be read: %w", p, err)
}

func (t *tree) read(p string) ([]byte, error) {
	info, err := fs.Stat(t.fsys, p)
	if err != nil {
		return nil, readError(p, err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a folder", p)
	}
	if info.Size() > maxBytes {
		return nil, fmt.Errorf("%s has %d bytes: no configuration file is that large", p, info.Size())
	}
	data, err := fs.ReadFile(t.fsys, p)
	if err != nil {
		return nil, readError(p, err)
	}
	t.used[p] = true
	return data, nil
}

// find returns the path in the folder of the file that the apiserver knows by an absolute path:
// at that path (as the container or the host has it) below the folder, otherwise the one with the
// same name, otherwise "".
func (t *tree) find(name string) (string, error) {
	name = path.Clean("/" + strings.TrimPrefix(name, "file://"))
	candidates := []string{name}
	for _, m := range t.mounts {
		if rest, ok := strings.CutPrefix(name, m.container); ok && (rest == "" || rest[0] == '/') {
			candidates = []string{path.Clean(m.host + rest), name}
			break
		}
	}
	for _, c := range candidates {
		if p := strings.TrimPrefix(c, "/"); slices.Contains(t.files, p) {
			return p, nil
		}
	}
	// The longest common tail wins: pki/ca.crt before etcd/ca.crt.
	best, longest, ties := "", 0, 0
	for _, f := range t.files {
		n := 0
		for _, c := range candidates {
			n = max(n, commonTail(c, "/"+f))
		}
		switch {
		case n > longest:
			best, longest, ties = f, n, 1
		case n == longest && n > 0:
			ties++
		}
	}
	if ties > 1 {
		return "", fmt.Errorf("%w: %s", errAmbiguous, path.Base(name))
	}
	return best, nil
}

// commonTail returns how many trailing path segments two paths have in common.
func commonTail(a, b string) int {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	n := 0
	for n < len(x) && n < len(y) && x[len(x)-1-n] == y[len(y)-1-n] && x[len(x)-1-n] != "" {
		n++
	}
	return n
}

// folderTime parses a folder's name as a time: RFC 3339, or the same with characters that file
// systems do not allow omitted or replaced (2026-11-20T18-30-00Z, 20261120T183000Z,
// 2026-11-20).
func folderTime(name string) (time.Time, bool) {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15-04-05Z07-00", "2006-01-02T15-04-05.999999999Z", "2006-01-02T15-04-05Z", "2006-01-02T15_04_05Z",
		"20060102T150405Z", "20060102T150405.999999999Z", "2006-01-02",
	} {
		if t, err := time.Parse(layout, name); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
