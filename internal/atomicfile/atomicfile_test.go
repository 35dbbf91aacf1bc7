package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWriteReplacesContentAndMode(t *testing.T) {
	old := unix.Umask(0o077) // the mode asked for counts, not the umask
	t.Cleanup(func() { unix.Umask(old) })
	path := filepath.Join(t.TempDir(), "key")
	for _, tc := range []struct {
		text string
		mode fs.FileMode
	}{{"first", 0o644}, {"second", 0o600}, {"", 0o640}} {
		if err := Write(path, []byte(tc.text), tc.mode); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || string(text) != tc.text {
			t.Errorf("read %q, %v; want %q", text, err, tc.text)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != tc.mode {
			t.Errorf("mode %v, %v; want %v", info.Mode(), err, tc.mode)
		}
	}
	holds(t, filepath.Dir(path), "key")
}

func TestNothingChangesBeforeCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("half a fi"); err != nil {
		t.Fatal(err)
	}
	if err := f.Cleanup(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
		t.Errorf("read %q, %v; want the old content", text, err)
	}
	holds(t, filepath.Dir(path), "config")
}

func TestWriteLeavesNothingBehindWhenItFails(t *testing.T) {
	folder := t.TempDir()
	taken := filepath.Join(folder, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(taken, []byte("x"), 0o600); err == nil {
		t.Error("Write replaced a folder that is not empty")
	}
	if err := Write(filepath.Join(folder, "missing", "file"), []byte("x"), 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Write into a missing folder = %v, want fs.ErrNotExist", err)
	}
	holds(t, folder, "taken")
}

func TestRename(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "next.key"), filepath.Join(folder, "ca.key")
	for path, text := range map[string]string{from: "new", to: "old"} {
		if err := Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "new" {
		t.Errorf("read %q, %v; want what was renamed", text, err)
	}
	holds(t, folder, "ca.key")
}

// holds fails unless folder holds the one entry want.
func holds(t *testing.T, folder, want string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != want {
		t.Errorf("%s holds %v, want %s alone", folder, entries, want)
	}
}

// TestFolder: the files come together, into a new folder or an empty one; what is there goes only where that is allowed, and all of it
// stays when something fails.
func TestFolder(t *testing.T) {
	files := map[string][]byte{"README.md": []byte("read"), "a/b.yaml": []byte("b"), "run.sh": []byte("run")}
	never := func(names []string) error { return errors.New("holds " + names[0]) }
	path := filepath.Join(t.TempDir(), "folder")
	if err := Folder(path, files, "README.md", never); err != nil {
		t.Fatal(err)
	}
	names := func() (out []string) {
		err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				name, _ := filepath.Rel(path, p)
				out = append(out, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := names(); !slices.Equal(got, []string{"README.md", "a/b.yaml", "run.sh"}) {
		t.Errorf("it holds %q", got)
	}
	if info, err := os.Stat(filepath.Join(path, "run.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v for a script", info.Mode(), err)
	}
	if err := Folder(path, files, "README.md", never); err == nil || len(names()) != 3 {
		t.Errorf("%v, %q: want what was there, and an error", err, names())
	}
	// A path that is a folder and a file cannot be written.
	if err := Folder(path, map[string][]byte{"x": nil, "x/y": nil}, "x", func([]string) error { return nil }); err == nil ||
		len(names()) != 3 {
		t.Errorf("%v, %q: want what was there, and an error", err, names())
	}
	if err := Folder(path, map[string][]byte{"README.md": nil}, "README.md", func([]string) error { return nil }); err != nil ||
		!slices.Equal(names(), []string{"README.md"}) {
		t.Errorf("%v, %q: want the new file alone", err, names())
	}
	holds(t, path, "README.md")
	fresh := filepath.Join(filepath.Dir(path), "fresh")
	if err := Folder(fresh, map[string][]byte{"x": nil, "x/y": nil}, "x", never); err == nil {
		t.Error("no error")
	}
	holds(t, filepath.Dir(path), "folder")
	if err := Folder(filepath.Join(path, "README.md"), files, "README.md", never); err == nil {
		t.Error("a file became a folder")
	}
}
