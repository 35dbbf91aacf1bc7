// Package golden holds generated documents and recorded outputs to the files of the
// repository; with -update it writes them.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite generated documents and golden files")

// File compares a text with a file, whose path is relative to the repository.
func File(t *testing.T, path, got string) {
	t.Helper()
	path = filepath.Join(root(t), path)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		line, is, was := firstDifference(got, string(want))
		t.Errorf("%s is not what the code says; run make golden and read the diff, which begins in line %d:\n got %.300q\nwant %.300q",
			path, line, is, was)
	}
}

// root returns the folder of the module that the test is of.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("the test runs in no module")
		}
		dir = filepath.Dir(dir)
	}
}

// firstDifference returns the first line, counted from 1, in which two texts differ.
func firstDifference(a, b string) (line int, inA, inB string) {
	for line = 1; ; line++ {
		x, restA, moreA := strings.Cut(a, "\n")
		y, restB, moreB := strings.Cut(b, "\n")
		if x != y || !moreA || !moreB {
			return line, x, y
		}
		a, b = restA, restB
	}
}
