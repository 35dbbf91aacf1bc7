// Package testfile reads the recorded logs and states that tests work on.
package testfile

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/retrial-io/retrial/internal/inflate"
)

// Read returns a file's content, inflated. A path that does not exist stands for the file
// with .zst behind it, so that a test can name a large recording by what it holds.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	r, err := inflate.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		r, err = inflate.Open(path + ".zst")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}
