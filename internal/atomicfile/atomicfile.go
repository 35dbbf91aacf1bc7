// Package atomicfile writes files whole or not at all.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write makes a file whole or not at all, also when the power fails.
func Write(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when the rename took place
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
