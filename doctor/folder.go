package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/retrial-io/retrial/internal/atomicfile"
)

// CheckFolder creates a folder, readable by its owner only, if it does not exist, and checks that
// files can be written into it.
func CheckFolder(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(dir, ".retrial-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("output folder: %w; choose another with --output", err)
	}
	return nil
}

// WriteFolder writes files into a folder, each atomically. Files in keep are left as they are if
// their content differs, because they were changed by hand; it returns their names.
func WriteFolder(dir string, files []File) (kept []string, err error) {
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return kept, fmt.Errorf("output folder: %w", err)
		}
		if f.Keep {
			old, err := os.ReadFile(path)
			if err == nil && !bytes.Equal(old, f.Content) {
				kept = append(kept, f.Name)
				continue
			}
		}
		if err := atomicfile.Write(path, f.Content, f.Mode); err != nil {
			return kept, fmt.Errorf("output folder: %w", err)
		}
	}
	return kept, nil
}
