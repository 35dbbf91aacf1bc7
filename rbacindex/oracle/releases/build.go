package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed answer/main.go.txt
var program []byte

// build makes the program that asks a release's own authorizers, in a module of its own below
// the user's cache. What is there already is taken as it is.
func build(r release) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "retrial-oracle", r.asked)
	binary := filepath.Join(dir, "answer")
	source := filepath.Join(dir, "main.go")
	if old, err := os.ReadFile(source); err == nil && bytes.Equal(old, program) {
		if _, err := os.Stat(binary); err == nil {
			return binary, nil
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	mod, err := goMod(r)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o644); err != nil {
		return "", err
	}
	if err := os.WriteFile(source, program, 0o644); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-p", "2", "-trimpath", "-o", "answer", "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s in %s: %w: %s", args[0], dir, err, last(out, 2000))
		}
	}
	return binary, nil
}

// goMod returns the module: Kubernetes, and what it keeps beside itself at the version published
// with it.
func goMod(r release) ([]byte, error) {
	m, err := fetch("k8s.io/kubernetes", r.asked)
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(m.dir, "go.mod")).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.dir, err)
	}
	var upstream struct {
		Go      string
		Replace []struct{ Old, New struct{ Path string } }
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &upstream); err != nil {
		return nil, err
	}
	beside := map[string]bool{}
	for _, x := range upstream.Replace {
		beside[x.Old.Path] = true
	}
	for _, x := range upstream.Require { // newer ones keep them in a workspace and say v0.0.0
		if strings.HasPrefix(x.Path, "k8s.io/") && x.Version == "v0.0.0" {
			beside[x.Path] = true
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "module answer\n\ngo %s\n\nrequire k8s.io/kubernetes %s\n", upstream.Go, r.asked)
	for _, path := range slices.Sorted(maps.Keys(beside)) {
		fmt.Fprintf(&b, "replace %s => %s %s\n", path, path, staged(r.asked))
	}
	return b.Bytes(), nil
}

// last returns the end of an output.
func last(out []byte, n int) string { return string(out[max(0, len(out)-n):]) }
