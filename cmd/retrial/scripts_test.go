package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestCheckMachine asks what is missing on machines made of the tools named.
func TestCheckMachine(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("NOT RUN: check-machine.sh: what it says of Linux on x86-64 shows there alone")
	}
	tools := func(t *testing.T, more ...string) string {
		dir := t.TempDir()
		for _, name := range append([]string{"awk", "bash", "df", "dirname", "grep", "head", "ldd", "sed", "sort", "tr", "uname", "cat"},
			more...) {
			path, err := exec.LookPath(name)
			if err != nil {
				path = "/bin/true" // that it is there is all that matters
			}
			if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	home := t.TempDir() // without a cache folder
	for name, tc := range map[string]struct {
		tools []string
		env   []string
		want  string // "" is that nothing is missing
	}{
		"all there":           {[]string{"go", "npm"}, []string{"HOME=" + home}, ""},
		"no Go":               {[]string{"npm"}, []string{"HOME=" + home}, "missing: Go"},
		"no npm":              {[]string{"go"}, []string{"HOME=" + home}, "missing: npm"},
		"a library, no npm":   {[]string{"go"}, []string{"HOME=" + home, "RETRIAL_LIBCHDB=/x/libchdb.so"}, ""},
		"a package, no npm":   {[]string{"go"}, []string{"HOME=" + home, "RETRIAL_LIBCHDB_TGZ=/x/p.tgz"}, ""},
		"no home":             {[]string{"go", "npm"}, nil, "missing: a home"},
		"an older libchdb":    {[]string{"go"}, []string{"XDG_CACHE_HOME=" + oldLibrary(t)}, "missing: npm"},
		"a cache, but no Go ": {nil, []string{"XDG_CACHE_HOME=" + oldLibrary(t)}, "missing: Go"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "bash", "scripts/check-machine.sh", "run")
			cmd.Dir = filepath.Join("..", "..")
			cmd.Env = append(tc.env, "PATH="+tools(t, tc.tools...), "GOTOOLCHAIN=auto", "GOCACHE="+home, "GOENV=off")
			out, err := cmd.CombinedOutput()
			switch {
			case tc.want == "": // the processor and the disk are those of this machine
				for _, missing := range []string{"missing: Go", "missing: npm", "missing: a home"} {
					if strings.Contains(string(out), missing) {
						t.Errorf("something is missing: %s", out)
					}
				}
			case tc.want != "" &&
				(err == nil || !strings.Contains(string(out), tc.want) || !strings.Contains(string(out), "nothing was downloaded")):
				t.Errorf("want %q, got: %s", tc.want, out)
			}
		})
	}
}

// oldLibrary is a cache folder with the library of another version.
func oldLibrary(t *testing.T) string {
	t.Helper()
	cache := t.TempDir()
	dir := filepath.Join(cache, "retrial", "libchdb", "1.0.0")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "libchdb.so"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return cache
}
