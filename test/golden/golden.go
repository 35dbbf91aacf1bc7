// Package golden holds generated documents and recorded outputs to the files of the
// repository; with -update it writes them.
package golden

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite generated documents and golden files")

// Updating tells whether files are to be written anew.
func Updating() bool { return *update }

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
func root(t testing.TB) string {
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

// Constants returns the values of the text constants of a Go file of the repository whose names begin with a prefix.
func Constants(t testing.TB, path, prefix string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), path), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && strings.HasPrefix(spec.Names[0].Name, prefix) {
			if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
				text, _ := strconv.Unquote(value.Value)
				values = append(values, text)
			}
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no text constant %s…", path, prefix)
	}
	return values
}

// Folder reads the files of a folder of the repository, by name.
func Folder(t *testing.T, path string) map[string][]byte {
	t.Helper()
	files := os.DirFS(filepath.Join(root(t), path))
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if out[e.Name()], err = fs.ReadFile(files, e.Name()); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Documented fails where a document of the repository has no row of a table for each of the names.
func Documented(t *testing.T, path string, names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "\n| `"+name+"` | ") {
			t.Errorf("%s has no row about %s", path, name)
		}
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
